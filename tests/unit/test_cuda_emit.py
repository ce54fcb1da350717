# SPDX-License-Identifier: Apache-2.0
"""Every pair of files in tests/cases/cuda/stamp, and the edits of a site by themselves.

`name.cu` is a source, `name.expected.cu` what it must become, with KEY for the file's key and without the seal. `name.skips`
lists calls that are not stamped (`line:column CODE`), those of wrappers, polls and fences apart; `name.kernels` says how each
kernel gets its slot. All were written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autostamp.model.edit import Edit
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.passes import edits
from autostamp.passes.cuda import emit
from autostamp.passes.cuda.found import Form, FoundSite, OperandKind
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument
from autostamp.passes.stamped import Stamped

FOLDER = Path(__file__).parents[1] / "cases" / "cuda" / "stamp"
EXPECTED = ".expected.cu"
NAMES = sorted(path.name.removesuffix(EXPECTED) for path in FOLDER.glob(f"*{EXPECTED}"))
SEAL = re.compile(rb"// autostamp: stamped [0-9a-f]{64} \S+\r?\n\Z")
HEAD = b'#include "autostamp.cuh"\n#line 1\n'
COUNTED = ("AS2101", "AS2102", "AS2103")


def source_of(name: str) -> bytes:
    return (FOLDER / f"{name}.cu").read_bytes()


def expected_of(name: str) -> bytes:
    return (FOLDER / f"{name}{EXPECTED}").read_bytes()


def stamp(data: bytes, name: str = "case.cu", options: CudaOptions | None = None) -> Project:
    """Stamp one text; the wrappers of sync.cuh are known and stay as they are."""
    context = {Path("sync.cuh"): (FOLDER / "sync.cuh").read_bytes()}
    return instrument({Path(name): data}, context, options)


def only(project: Project) -> Stamped:
    (item,) = project.stamped.values()
    return item


def without_seal(stamped: Stamped) -> bytes:
    """The stamped text as a case file holds it."""
    assert SEAL.search(stamped.text), "no seal at the end"
    text = SEAL.sub(b"", stamped.text)
    if not stamped.original.endswith(b"\n"):
        text = text.removesuffix(b"\n").removesuffix(b"\r")
    return text.replace(stamped.file.key.encode(), b"KEY")


def test_cases_were_found() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    project = stamp(source_of(name))
    item = only(project)
    assert without_seal(item).decode() == expected_of(name).decode()
    assert project.findings == ()
    assert edits.strip(item.text, "case.cu") == item.original
    assert only(stamp(item.text)).text == item.text
    assert item.text.count(b"\n") == item.original.count(b"\n") + 3  # the head's two lines and the seal


@pytest.mark.parametrize("name", NAMES)
def test_skips(name: str) -> None:
    file = only(stamp(source_of(name))).file
    listed = FOLDER / f"{name}.skips"
    found = [f"{skip.span.line}:{skip.span.column} {skip.code}" for skip in file.skips if skip.code not in COUNTED]
    assert found == (listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else [])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.kernels")), ids=lambda path: path.stem)
def test_kernels(path: Path) -> None:
    file = only(stamp(source_of(path.stem))).file
    found = [
        f"{kernel.number} {kernel.name} {kernel.carrier}" + (f": {kernel.reason}" if kernel.reason else "")
        for kernel in file.kernels
    ]
    assert found == path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_sites_and_stamps_agree(name: str) -> None:
    item = only(stamp(source_of(name)))
    stamped = {int(number) for number in re.findall(rb"(?:ENTER|SIGNAL|AROUND|AFTER)\w*\([0-9a-f]+,(\d+)", item.text)}
    assert stamped == {site.number for site in item.file.sites}
    exits = re.findall(rb"EXIT\([0-9a-f]+,(\d+)\)", item.text)
    assert len(exits) == len(set(exits))


def with_crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def with_mark(text: bytes) -> bytes:
    return b"\xef\xbb\xbf" + text


def with_tabs(text: bytes) -> bytes:
    return re.sub(rb"^(?:  )+(?=[^ *])", lambda blanks: b"\t" * (len(blanks[0]) // 2), text, flags=re.MULTILINE)


def without_last_newline(text: bytes) -> bytes:
    return text.removesuffix(b"\n")


def after_other_text(text: bytes) -> bytes:
    head = HEAD if text.startswith(HEAD) else b""
    return head + "// größer als → 🚀 \\\n// still the comment: __syncthreads();\n".encode() + text.removeprefix(head)


VARIANTS = (with_crlf, with_mark, with_tabs, without_last_newline, after_other_text)


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_case_in_other_dress(name: str, change: Callable[[bytes], bytes]) -> None:
    """The same case with other newlines, a byte-order mark, tabs, no newline at the end, or text that is not ASCII."""
    item = only(stamp(change(source_of(name))))
    assert without_seal(item) == change(expected_of(name))
    assert edits.strip(item.text, "case.cu") == item.original


def site(number: int, kind: Kind = Kind.WAIT) -> Site:
    span = Span(0, 1, 1, 1)
    return Site(
        number, span, "", "", "", kind, Side.MBARRIER, StageFrom.NONE, Shape.STATEMENT, "", "", "", 0
    )  # fmt: skip


def applied(text: str, *sites: FoundSite) -> str:
    """The text with the stamps of `sites`, whose places are given by their first and last characters."""
    code = text.encode()
    out = code
    for edit in reversed(edits.ordered(emit.stamps(sites, "K", code))):
        out = out[: edit.start] + edit.text.encode() + out[edit.start :]
    return out.decode()


def place(text: str, part: str) -> tuple[int, int]:
    start = text.index(part)
    return start, start + len(part)


@pytest.mark.parametrize(
    ("kind", "operand", "expected"),
    [
        (OperandKind.NONE, (), "AUTOSTAMP_ENTER(K,3) f(); AUTOSTAMP_EXIT(K,3)"),
        (OperandKind.ADDRESS, ("b[i]",), "AUTOSTAMP_ENTER_AT(K,3,(b[i])) f(); AUTOSTAMP_EXIT(K,3)"),
        (OperandKind.PIPELINE, ("p", "s"), "AUTOSTAMP_ENTER_PIPE(K,3,(p),(s)) f(); AUTOSTAMP_EXIT(K,3)"),
        (OperandKind.BARRIER_ID, ("X<1, 2>::id",), "AUTOSTAMP_ENTER_ID(K,3,(X<1, 2>::id)) f(); AUTOSTAMP_EXIT(K,3)"),
    ],
)
def test_operands(kind: OperandKind, operand: tuple[str, ...], expected: str) -> None:
    assert applied("f();", FoundSite(site(3), Form.STATEMENT, 0, 4, kind, operand)) == expected


def test_an_operand_stands_on_one_line_without_comments() -> None:
    operand = "bars[stage] // the stage's\n    .full /* side */ + \\\n 1"
    found = FoundSite(site(1), Form.STATEMENT, 0, 4, OperandKind.ADDRESS, (operand,))
    assert applied("f();", found) == "AUTOSTAMP_ENTER_AT(K,1,(bars[stage] .full + 1)) f(); AUTOSTAMP_EXIT(K,1)"


def test_two_sites_of_one_statement_nest() -> None:
    text = "if (x) full.wait(full.arrive());"
    start, end = place(text, "full.wait(full.arrive());")
    found = applied(
        text, FoundSite(site(1), Form.BRANCH, start, end), FoundSite(site(2, Kind.SIGNAL), Form.BRANCH, start, end)
    )
    assert found == (
        "if (x) AUTOSTAMP_OPEN AUTOSTAMP_ENTER(K,1) full.wait(full.arrive()); AUTOSTAMP_SIGNAL(K,2)"
        " AUTOSTAMP_EXIT(K,1) AUTOSTAMP_CLOSE"
    )


def test_a_signal_of_no_length_comes_before_its_wait_and_inside_the_braces() -> None:
    text = "if (x) full.wait(full.arrive());"
    start, end = place(text, "full.wait(full.arrive());")
    wait = FoundSite(site(2), Form.BRANCH, start, end)
    signal = FoundSite(site(1, Kind.SIGNAL), Form.STATEMENT, start, start, OperandKind.ADDRESS, ("full",))
    assert applied(text, wait, signal) == (
        "if (x) AUTOSTAMP_OPEN  AUTOSTAMP_SIGNAL_AT(K,1,(full))AUTOSTAMP_ENTER(K,2) full.wait(full.arrive());"
        " AUTOSTAMP_EXIT(K,2) AUTOSTAMP_CLOSE"
    )


def test_what_whole_warps_execute_is_said() -> None:
    wait = FoundSite(site(1), Form.STATEMENT, 0, 4, OperandKind.ADDRESS, ("b",), is_warp_wide=True)
    signal = FoundSite(site(1, Kind.SIGNAL), Form.STATEMENT, 0, 4, OperandKind.BARRIER_ID, ("3",), is_warp_wide=True)
    assert applied("f();", wait) == "AUTOSTAMP_WARP_ENTER_AT(K,1,(b)) f(); AUTOSTAMP_WARP_EXIT(K,1)"
    assert applied("f();", signal) == "f(); AUTOSTAMP_WARP_SIGNAL_ID(K,1,(3))"


def test_a_loop_encloses_the_sites_in_it() -> None:
    text = "while (!t()) w();x();"
    loop = FoundSite(site(1), Form.LOOP, *place(text, "while (!t()) w();"))
    inner = FoundSite(site(2), Form.BRANCH, *place(text, "w();"))
    after = FoundSite(site(3), Form.STATEMENT, *place(text, "x();"))
    assert applied(text, after, inner, loop) == (
        "AUTOSTAMP_ENTER(K,1) while (!t()) AUTOSTAMP_OPEN AUTOSTAMP_ENTER(K,2) w(); AUTOSTAMP_EXIT(K,2) AUTOSTAMP_CLOSE"
        " AUTOSTAMP_EXIT(K,1)AUTOSTAMP_ENTER(K,3) x(); AUTOSTAMP_EXIT(K,3)"
    )


def test_around_inside_around_and_beside_a_word() -> None:
    text = "a(b())or c();"
    outer = FoundSite(site(1), Form.AROUND, *place(text, "a(b())"))
    inner = FoundSite(site(2, Kind.SIGNAL), Form.AROUND, *place(text, "b()"))
    assert applied(text, outer, inner) == (
        "AUTOSTAMP_AROUND(K,1) a(AUTOSTAMP_AFTER(K,2) b() AUTOSTAMP_AROUND_END) AUTOSTAMP_AROUND_END or c();"
    )


@pytest.mark.parametrize(
    ("original", "line_name", "expected"),
    [
        (b"x", "", Edit(0, 0, '#include "autostamp.cuh"\n#line 1\n', emit.RANK_HEAD)),
        (b"\xef\xbb\xbfx\r\n", "", Edit(3, 3, '#include "autostamp.cuh"\r\n#line 1\r\n', emit.RANK_HEAD)),
        (b"x", 'a\\b"c', Edit(0, 0, '#include "autostamp.cuh"\n#line 1 "a\\\\b\\"c"\n', emit.RANK_HEAD)),
    ],
)
def test_head(original: bytes, line_name: str, expected: Edit) -> None:
    assert emit.head(original, line_name=line_name) == expected


def test_unit_header() -> None:
    assert emit.unit_header(0xAB, [("00ff", 0, 0), ("01aa", 14, 2)], 3, 5).decode().splitlines() == [
        "// Generated by autostamp with the stamped files of this folder.",
        "#pragma once",
        "#define AUTOSTAMP_UNIT 0x000000abu",
        "#define AUTOSTAMP_UNIT_SLOTS 3",
        "#define AUTOSTAMP_UNIT_LAUNCHES 5",
        "#define AUTOSTAMP_EVENTS_00ff 0",
        "#define AUTOSTAMP_KERNELS_00ff 0",
        "#define AUTOSTAMP_EVENTS_01aa 14",
        "#define AUTOSTAMP_KERNELS_01aa 2",
    ]


def test_unit_header_lists_exits_of_waits_that_let_the_warp_go_on() -> None:
    calls = b'asm volatile("bar.arrive 1, 64;"); __syncthreads(); __syncwarp(); __syncthreads();'
    project = stamp(b"__global__ void k() { " + calls + b" }\n")
    assert [(site.kind, site.side) for site in only(project).file.sites] == [
        ("signal", "named"),
        ("wait", "cta"),
        ("wait", "warp"),
        ("wait", "cta"),
    ]
    # Site n exits as event 2n: the two __syncthreads are sites 2 and 4.
    assert b"#define AUTOSTAMP_UNIT_DEFERRED 4, 8\n" in project.unit_header


def test_selection_keeps_numbers_and_lists_what_it_leaves_out() -> None:
    options = CudaOptions(InstrumentOptions(Selection(skip=("kind=wait",))))
    item = only(stamp(source_of("statements"), options=options))
    assert [found.number for found in item.file.sites] == [5]
    assert [skip.span.line for skip in item.file.skips if skip.code == "AS2106"] == [5, 7, 19, 21, 25, 26]
    assert b"AUTOSTAMP_ENTER" not in item.text
    assert b"AUTOSTAMP_INLINE" not in item.text  # no function but the kernel holds a stamp now


def test_a_file_without_device_code_stays_as_it_is() -> None:
    data = b"#include <vector>\nint wait(std::vector<int>& v) { v.wait(); return 1; }\n"
    project = stamp(data, "host.cpp")
    assert only(project).text == data
    assert not project.changed
    assert project.unit.files == ()


def test_a_stamped_file_that_was_edited_is_refused() -> None:
    text = only(stamp(source_of("loops"))).text.replace(b"out[1] = 2", b"out[1] = 3")
    with pytest.raises(Exception, match="AS3002"):
        stamp(text)
