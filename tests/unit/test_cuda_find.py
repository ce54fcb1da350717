# SPDX-License-Identifier: Apache-2.0
"""Every folder of tests/cases/cuda/find: what is found in its sources, as comments beginning with `//~` say, written by hand.

Items of a line are separated by ` ~ ` and come in the order of their columns. A site is `KIND FORM BARRIER` with any of its
fields as `field=value` (`span` is the bracketed text, `operand` the stamp's operands, `conditions` the guards, both joined by
`; `), a skip is its code, and `finding=CODE` a finding. A line without a comment holds nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from autostamp.model.sync import Kind
from autostamp.passes.cuda.find import find
from autostamp.passes.cuda.found import Form, FoundFile, FoundSite, OperandKind
from autostamp.passes.cuda.functions import Index, index
from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.recognise import Recognizer
from autostamp.passes.cuda.source import Source, parse

FOLDER = Path(__file__).parents[1] / "cases" / "cuda" / "find"
NAMES = sorted(path.name for path in FOLDER.iterdir())
_MARK = re.compile(r"//~ (.*)")


def read(folder: Path) -> dict[Path, bytes]:
    return {Path(path.name): path.read_bytes() for path in sorted(folder.iterdir())}


def analysed(files: Mapping[Path, bytes]) -> tuple[dict[Path, Source], Index, Recognizer, dict[Path, FoundFile]]:
    macros = learn(files.values())
    sources = {path: parse(data, macros) for path, data in files.items()}
    functions = index(sources)
    recognizer = Recognizer(functions, sources)
    return sources, functions, recognizer, find(sources, functions, recognizer)


def expected(data: bytes) -> dict[int, list[list[str]]]:
    """The items that the comments of a file call for, by line."""
    found = {}
    for number, line in enumerate(data.decode().splitlines(), 1):
        if mark := _MARK.search(line):
            found[number] = [shlex.split(item) for item in mark[1].split(" ~ ")]
    return found


def fields_of(found: FoundSite, data: bytes) -> dict[str, str]:
    site = found.site
    return {
        "span": " ".join(re.sub(r"//[^\n]*", "", data[found.start : found.end].decode()).split()),
        "operand": "; ".join(found.operand),
        "conditions": "; ".join(site.conditions),
        "kind": site.kind.value,
        "side": site.side.value,
        "shape": site.shape.value,
        "loop_depth": str(site.loop_depth),
        **{name: getattr(site, name) for name in ("role", "guard", "root", "iteration", "stage", "payload", "barrier")},
    }


def check_site(found: FoundSite, data: bytes, wanted: list[str], where: str) -> None:
    fields = fields_of(found, data)
    kind, form, barrier, *rest = wanted
    assert (fields["kind"], found.form.value, fields["barrier"]) == (kind, form, barrier), where
    for item in rest:
        name, _, value = item.partition("=")
        assert fields[name] == value, f"{where}: {name}"


def check_line(file: FoundFile, data: bytes, number: int, wanted: list[list[str]], where: str) -> None:
    items = [each for each in (*file.sites, *file.skips) if span_of(each).line == number]
    items.sort(key=lambda each: (span_of(each).column, -span_of(each).end))
    codes = [each.code for each in file.findings if each.position is not None and each.position.line == number]
    assert codes == [
        part.removeprefix("finding=") for item in wanted for part in item if part.startswith("finding=")
    ], where
    plain = [kept for item in wanted if (kept := [part for part in item if not part.startswith("finding=")])]
    assert len(items) == len(plain), f"{where}: {[span_of(each) for each in items]}"
    for each, item in zip(items, plain, strict=True):
        if isinstance(each, FoundSite):
            check_site(each, data, item, where)
        else:
            assert [each.code] == item, where


def span_of(item: object) -> object:
    return item.site.span if isinstance(item, FoundSite) else item.span


def check(files: Mapping[Path, bytes], found: Mapping[Path, FoundFile]) -> None:
    for path, data in files.items():
        wanted = expected(data)
        lines = {span_of(each).line for each in (*found[path].sites, *found[path].skips)}
        lines |= {each.position.line for each in found[path].findings}
        assert lines <= wanted.keys(), f"{path}: not called for on lines {sorted(lines - wanted.keys())}"
        for number, items in wanted.items():
            check_line(found[path], data, number, items, f"{path}:{number}")


def test_cases_were_found() -> None:
    assert len(NAMES) >= 9


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    files = read(FOLDER / name)
    check(files, analysed(files)[3])


def with_crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def with_mark(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def with_tabs(data: bytes) -> bytes:
    return data.replace(b"  ", b"\t")


def without_last_newline(data: bytes) -> bytes:
    return data.removesuffix(b"\n")


def with_comments(data: bytes) -> bytes:
    """A comment that looks like code after every statement that ends a line."""
    return re.sub(rb";(?=[ \t]*(?://~[^\n]*)?\n)", b"; /* if (x) full[0].wait(0); */", data)


VARIANTS = (with_crlf, with_mark, with_tabs, without_last_newline, with_comments)


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("shapes", "spins", "operands")])
def test_case_in_other_dress(name: str, change: Callable[[bytes], bytes]) -> None:
    files = {path: change(data) for path, data in read(FOLDER / name).items()}
    check(files, analysed(files)[3])


@pytest.mark.parametrize("name", NAMES)
def test_every_recognised_call_is_in_one_list(name: str) -> None:
    files = read(FOLDER / name)
    _, functions, recognizer, found = analysed(files)
    for function in functions.functions:
        places = [each.start for each in function.calls if recognizer.call(each, function) is not None]
        places += [each.start for each in function.asms if recognizer.asm(each, function) is not None]
        file = found[function.file]
        listed = [span_of(each).start for each in (*file.sites, *file.skips)]
        for place in places:
            assert listed.count(place) == places.count(place), f"{function.qualified} at byte {place}"


@pytest.mark.parametrize("name", NAMES)
def test_sites_are_sound(name: str) -> None:
    """Numbers count from 1 in source order, stamps bracket the call, and operands are on one line without effects."""
    files = read(FOLDER / name)
    for path, file in analysed(files)[3].items():
        data = files[path]
        assert [each.site.number for each in file.sites] == list(range(1, len(file.sites) + 1))
        starts = [each.site.span.start for each in file.sites]
        assert starts == sorted(starts)
        for each in file.sites:
            span = each.site.span
            if each.start < each.end:
                assert each.start <= span.start < span.end <= each.end
            else:
                assert (each.site.kind, each.form) == (Kind.SIGNAL, Form.STATEMENT)
                assert each.start <= span.start
            assert data[: span.start].count(b"\n") + 1 == span.line
            assert data[: span.start].rpartition(b"\n")[2].__len__() + 1 == span.column
            assert each.site.kind in (Kind.WAIT, Kind.SIGNAL)
            assert len(each.operand) == {OperandKind.NONE: 0, OperandKind.PIPELINE: 2}.get(each.operand_kind, 1)
            assert not any(mark in text for text in each.operand for mark in ("\n", "++", "--"))
