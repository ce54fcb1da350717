# SPDX-License-Identifier: Apache-2.0
"""The headers of CUDA C++ stamps, compiled: for every target, off without a trace, and the host side at work.

The host side runs against a CUDA runtime that needs no GPU (cuda/stand_in_cudart.cc); the records that it leaves are the
stand-in's, one bind, some visits and one release for each warp.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from autostamp.hooks.native import NativeOptions, run
from autostamp.model.manifest import MANIFEST_VERSION, Manifest, SourceFile, Unit, UnitFile
from autostamp.model.options import Blocks, RecordOptions
from autostamp.model.sync import Kind, Side
from autostamp.runtime import cubin, store
from autostamp.runtime.cuda import header
from autostamp.runtime.cuda.drain import Drained, Head, notes_of, read_drains
from autostamp.runtime.manifest_file import write_manifest
from tests.cuda_drains import kernel, site

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SOURCES = Path(__file__).with_name("cuda")
TARGETS = ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"]
UNIT = 0x1000
UNIT_TEXT = """\
#pragma once
#define AUTOSTAMP_UNIT {unit:#010x}u
#define AUTOSTAMP_UNIT_SLOTS {slots}
#define AUTOSTAMP_UNIT_LAUNCHES {launches}
#define AUTOSTAMP_EVENTS_aa 0
#define AUTOSTAMP_KERNELS_aa 0
{more}
"""
MACRO = re.compile(r" ?AUTOSTAMP_[A-Z_]+\b(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))? ?")


def unit_header(folder: Path, slots: int, launches: int = 1, more: str = "", unit: int = UNIT) -> Path:
    folder.mkdir(exist_ok=True)
    text = UNIT_TEXT.format(unit=unit, slots=slots, launches=launches, more=more)
    (folder / header.UNIT_HEADER).write_text(text, encoding="ascii")
    return folder


def nvcc(*options: object, folder: Path | None = None) -> str:
    """Run nvcc; what it said."""
    command = ["nvcc", "-std=c++17", "-O3", *map(str, options)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


@pytest.fixture(scope="module")
def includes(tmp_path_factory) -> list[str]:
    folder = unit_header(tmp_path_factory.mktemp("unit"), 4)
    return [f"-I{header.folder()}", f"-I{folder}"]


@pytest.fixture(scope="module")
def ptx(includes, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("ptx") / "operands.ptx"
    nvcc("-arch=sm_90a", "-ptx", "-DAUTOSTAMP", *includes, "-o", out, SOURCES / "operands.cu")
    return out.read_text(encoding="utf-8")


LEAN = """\
#define AUTOSTAMP_UNIT_LEAN_KERNELS 0, 1, 2, 3
#define AUTOSTAMP_UNIT_LEAN_EVENTS {}
""".format(", ".join(str(2 * number - 1) for number in range(1, 40)))


@pytest.fixture(scope="module")
def lean_includes(tmp_path_factory) -> list[str]:
    """A unit whose stamps are all lean, also those of kernels with a parameter, whose slot is the symbol's here."""
    folder = unit_header(tmp_path_factory.mktemp("lean"), 4, more=LEAN)
    return [f"-I{header.folder()}", f"-I{folder}", "-DBIND_BY_SYMBOL"]


@pytest.mark.parametrize("form", ["includes", "lean_includes"])
@pytest.mark.parametrize("target", TARGETS)
def test_stamps_compile_without_a_word(target, form, request, tmp_path):
    includes = request.getfixturevalue(form)
    known = subprocess.run(["nvcc", "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    if target.rstrip("a") not in known:
        pytest.skip(f"this nvcc has no {target}")
    said = nvcc(
        f"-arch={target}",
        "-cubin",
        "-Xptxas=-warn-spills",
        "-DAUTOSTAMP",
        *includes,
        "-o",
        tmp_path / "x",
        SOURCES / "operands.cu",
    )
    assert said == ""
    assert b"\0autostamp_slots\0" in (tmp_path / "x").read_bytes()


@pytest.mark.parametrize(
    "flags",
    [
        ("-G",),
        ("-Xcicc=-O0", "-Xptxas=-O0"),
        ("--use_fast_math", "--expt-relaxed-constexpr", "--extended-lambda", "-lineinfo"),
        ("-std=c++20", "-default-stream=per-thread", "-Xcompiler=-Wall,-Wextra,-Wshadow,-Wno-unused-parameter"),
    ],
    ids=lambda flags: flags[0],
)
def test_stamps_compile_under_other_flags(flags, includes, tmp_path):
    said = nvcc("-arch=sm_90a", "-c", "-DAUTOSTAMP", *flags, *includes, "-o", tmp_path / "x.o", SOURCES / "operands.cu")
    assert [line for line in said.splitlines() if "incompatible redefinition" not in line] == []


def test_payloads_can_be_left_out(includes, tmp_path):
    out = tmp_path / "x.ptx"
    nvcc(
        "-w",
        "-arch=sm_90a",
        "-ptx",
        "-DAUTOSTAMP",
        "-DAUTOSTAMP_NO_PAYLOAD",
        *includes,
        "-o",
        out,
        SOURCES / "operands.cu",
    )
    assert "// probe" not in out.read_text(encoding="utf-8")


LINKED = """\
#include "autostamp.cuh"
#line 1
__global__ void NAME(int* out) { AUTOSTAMP_BIND(aa,1) AUTOSTAMP_ENTER(aa,1) __syncthreads(); AUTOSTAMP_EXIT(aa,1) *out = 1; }
"""


def test_linked_translation_units_share_nothing_by_accident(tmp_path):
    """Two units and, twice, the same one: of the first two each has its own slots, of the last two both have one."""
    objects = []
    for name, unit in (("a", 1), ("b", 2), ("c", 2)):
        folder = unit_header(tmp_path / name, 4, unit=unit)
        (folder / "k.cu").write_text(LINKED.replace("NAME", name), encoding="ascii")
        objects.append(folder / "k.o")
        flags = ("-arch=sm_90a", "-rdc=true", "-c", "-DAUTOSTAMP", f"-I{header.folder()}", f"-I{folder}")
        nvcc(*flags, "-o", objects[-1], folder / "k.cu")
    (tmp_path / "main.cu").write_text("int main() {}\n", encoding="ascii")
    nvcc("-arch=sm_90a", "-rdc=true", "-o", tmp_path / "linked", *objects, tmp_path / "main.cu")
    linked = (tmp_path / "linked").read_bytes()
    assert b"autostamp_slots_0x00000001u" in linked
    assert b"autostamp_slots_0x00000002u" in linked


def test_a_linked_cubin_can_show_its_slots_by_name(includes, tmp_path):
    (tmp_path / "k.cu").write_text(LINKED.replace("NAME", "k"), encoding="ascii")
    flags = ("-arch=sm_90a", "-rdc=true", "-cubin", "-DAUTOSTAMP", "-DAUTOSTAMP_EXPORT_SLOTS")
    nvcc(*flags, *includes, "-o", tmp_path / "x", tmp_path / "k.cu")
    assert b"\0autostamp_slots\0" in (tmp_path / "x").read_bytes()


def test_off_the_cubin_is_that_of_the_original(includes, tmp_path):
    stamped = (SOURCES / "operands.cu").read_text(encoding="ascii")
    original = MACRO.sub(" ", stamped.replace('#include "autostamp.cuh"\n#line 1\n', "", 1))
    assert "AUTOSTAMP" not in original
    cubins = []
    for name, text in (("stamped", stamped), ("original", original)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.cu").write_text(text, encoding="ascii")
        nvcc("-arch=sm_90a", "-cubin", *includes, "-o", "k.cubin", "k.cu", folder=tmp_path / name)
        cubins.append((tmp_path / name / "k.cubin").read_bytes())
    assert cubins[0] == cubins[1]
    assert b"autostamp" not in cubins[0]


def test_every_stamp_is_in_the_ptx(ptx):
    found = {int(number) for number in re.findall(r"// autostamp (\d+)$", ptx, re.MULTILINE)}
    text = (SOURCES / "operands.cu").read_text(encoding="ascii")
    waits = {int(n) for n in re.findall(r"AUTOSTAMP_(?:WARP_)?(?:ENTER|AROUND)(?:_[A-Z]+)?\(aa,(\d+)", text)}
    signals = {int(n) for n in re.findall(r"AUTOSTAMP_(?:WARP_)?(?:SIGNAL|AFTER)(?:_[A-Z]+)?\(aa,(\d+)", text)}
    assert waits | signals == set(range(1, 39))
    assert found == {2 * n - 1 for n in waits | signals} | {2 * n for n in waits}


def test_a_stamp_is_no_branch_and_no_call(ptx):
    blocks = re.findall(
        r"// begin inline asm\n(\{ \.reg[^\n]*\n// autostamp \d+\n.*?)// end inline asm",
        ptx.replace("\t", ""),
        re.DOTALL,
    )
    assert len(blocks) == len(re.findall(r"// autostamp \d", ptx)) > 30
    assert not [block for block in blocks if re.search(r"\b(bra|call|ret|bar|membar|atom)\b", block)]
    assert not re.search(r"\bcall\b", ptx)


@pytest.mark.parametrize("target", TARGETS)
def test_a_thread_that_records_nothing_reads_no_clock_in_a_lean_kernel(target, lean_includes, tmp_path):
    """ptxas makes predicated instructions of the branch; binding and releasing read the clock beside the global timer."""
    nvcc(f"-arch={target}", "-cubin", "-DAUTOSTAMP", *lean_includes, "-o", tmp_path / "x", SOURCES / "operands.cu")
    facts = cubin.read_file(tmp_path / "x")
    instructions = [each for kernel in facts for each in kernel.instructions]
    clocks = [each for each in instructions if each.is_clock_read]
    timers = [each for each in instructions if "SR_GLOBALTIMERLO" in each.operands]
    assert len(clocks) > len(timers) >= 2 * len(facts)
    assert sum(not each.predicate for each in clocks) == len(timers)


def test_an_operand_is_evaluated_once(ptx):
    assert ptx.count("// probe") == 1


@pytest.mark.parametrize(
    ("number", "payload"),
    [
        (10, 0x400 // 8),
        (11, 0x408 // 8),
        (12, 0),  # no barrier at all
        (19, 0x8000 | 5),
        (20, 0x8000 | 6),
        (21, 7),
        (22, 3),
        (34, 7),
        (36, 0x400 // 8),
    ],
)
def test_payloads(ptx, number, payload):
    """The word of a constant operand is a constant: the payload in the upper half, the event in the lower one."""
    word = payload << 16 | (2 * number - 1)
    signed = word - (1 << 32) if word >> 31 else word
    block = re.search(rf"// autostamp {2 * number - 1}\n.*?\{{c, (%r\d+)\}}", ptx.replace("\t", ""), re.DOTALL)
    assert block is not None
    assert re.search(rf"mov\.[ub]32\s+{block[1]}, {signed};", ptx)


# ---------------------------------------------------------------------------------------------------------- the host side


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory) -> Path:
    """The folder with the stand-in for the CUDA runtime, and programs that use it."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "map").write_text("libcudart.so.13 { global: *; };\n", encoding="ascii")
    flags = ["-x", "c++", "-cudart=none", "-shared", "-Xcompiler=-fPIC,-Wall,-Wextra"]
    release = re.search(
        r"release (\d+)\.", subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    )
    assert release is not None
    name = f"libcudart.so.{release[1]}"
    (folder / "map").write_text(f"{name} {{ global: *; }};\n", encoding="ascii")
    linking = f"-Xlinker=-soname={name},--version-script={folder / 'map'}"
    assert nvcc(*flags, linking, "-o", folder / name, SOURCES / "stand_in_cudart.cc") == ""
    return folder


def build(stand_in: Path, name: str, launches: int, *flags: str, more: str = "") -> Path:
    unit = unit_header(stand_in / f"{name}.unit", 2, launches, more)
    common = ["-arch=sm_90a", "-cudart=shared", "-Xcompiler=-Wall,-Wextra", f"-I{header.folder()}", f"-I{unit}"]
    said = nvcc(*common, *flags, "-o", stand_in / name, SOURCES / "host_program.cu")
    assert said == ""
    return stand_in / name


@pytest.fixture(scope="module")
def program(stand_in) -> Path:
    return build(stand_in, "program", 2, "-DAUTOSTAMP")


class Ran:
    """A program after its end, with what it left."""

    def __init__(self, program: Path, folder: Path, words: str, **variables: str) -> None:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent), "AUTOSTAMP_CAPACITY": "16"}
        environment |= {"AUTOSTAMP_RUN": str(folder), **variables}
        done = subprocess.run([program, *words.split()], env=environment, capture_output=True, text=True, check=False)
        self.status, self.out, self.said = done.returncode, done.stdout, done.stderr
        self.heads: tuple[Head, ...]
        self.regions: tuple[Drained, ...]
        self.heads, self.regions = read_drains(folder)

    def launches(self) -> list[tuple[str, int, int]]:
        """Carrier, number of the launch, and how many records its first warp has."""
        return [(each.entry.carrier, each.entry.launch, records(each)) for each in self.regions]


def records(drained: Drained) -> int:
    """Records that the first warp stored and lost, by its header; 0 for one that was never bound."""
    if not drained.data[36:40].any():
        return 0
    remaining = int(drained.data[32:36].view("<i4")[0])
    return drained.entry.capacity - remaining // 8


def test_both_carriers(program, tmp_path):
    ran = Ran(program, tmp_path, "p3 s2")
    assert (ran.status, ran.out, ran.said) == (0, "left 0\n", "")
    assert ran.launches() == [("param", 1, 6), ("symbol", 1, 4)]
    (head,) = ran.heads
    assert (head.drained, head.keep, head.block, head.errors, head.dropped) == ("exit", "last", (0, 0, 0), (), ())
    assert (head.program, head.units[0].signature, head.units[0].slots) == (str(program), UNIT, 2)
    assert (head.devices[0].name, head.devices[0].sm_count) == ('Stand-in "GPU"', 132)
    param, symbol = ran.regions
    assert (param.entry.slot, symbol.entry.slot) == (0, 1)
    assert param.entry.name == "void ns::param(int) [with T = float; int N = 4]"
    assert (param.geometry.grid, param.geometry.block) == ((2, 1, 1), (64, 1, 1))
    assert re.search(r"host_program\.cu:\d+$", param.entry.place)
    assert param.entry.function == "void launch_param(int, int, cudaStream_t)"
    assert list(tmp_path.iterdir()) == [param.path]


def test_regions_are_zeroed_by_pieces(program, tmp_path):
    """The stand-in fills what it allocates, and speaks up at a memset of more than 128 KiB."""
    ran = Ran(program, tmp_path, "p1 s1", AUTOSTAMP_CAPACITY="5000")
    assert ran.said == ""
    assert [int((each.data == 0xEE).sum()) for each in ran.regions] == [0, 0]
    assert [each.data.size for each in ran.regions] == [64 * (64 + 5000 * 8)] * 2


def test_nothing_happens_without_a_folder(program, tmp_path):
    ran = Ran(program, tmp_path, "p3 s2 r l", AUTOSTAMP_RUN="")
    assert (ran.status, ran.out, ran.said, ran.heads) == (0, "last error 0\nleft 0\n", "", ())


def test_off_there_is_no_host_side(stand_in, tmp_path):
    off = build(stand_in, "off", 2, "-Dautostamp_drain=std::abort")
    assert b"autostamp" not in off.read_bytes().replace(b"autostamp_drain", b"")


def test_the_last_launch_overwrites(program, tmp_path):
    ran = Ran(program, tmp_path, "p3 p1 p2 s5 s4")
    assert ran.launches() == [("param", 3, 4), ("symbol", 2, 8)]
    assert [notes_of(each.data, 16) for each in ran.regions] == [[], []]


def test_every_stream_has_its_region_where_the_slot_is_a_parameter(program, tmp_path):
    ran = Ran(program, tmp_path, "t1 p1 s1 t2 p2 s2")
    assert ran.launches() == [("param", 1, 2), ("param", 2, 4), ("symbol", 2, 4)]
    assert len({each.entry.stream for each in ran.regions}) == 2


def test_all_launches(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s2 p3 s4 P5", AUTOSTAMP_LAUNCH="all")
    assert ran.launches() == [("param", 1, 2), ("symbol", 1, 4), ("param", 2, 6), ("symbol", 2, 8), ("param", 3, 10)]
    assert [each.entry.slot for each in ran.regions] == [0, -1, 0, -1, 0]


def test_more_launches_than_are_kept(program, tmp_path):
    ran = Ran(program, tmp_path, " ".join(["p1"] * 70 + ["s1"] * 65), AUTOSTAMP_LAUNCH="all")
    assert len(ran.regions) == 128
    assert {dropped.of: dropped.count for dropped in ran.heads[0].dropped} == {f"0:{UNIT}:0": 6, f"0:{UNIT}:-1": 1}


def test_one_launch(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 p2 p3 s1 s2", AUTOSTAMP_LAUNCH="2")
    # Whose launch a symbol serves is known when the drain is read: each has a region.
    assert ran.launches() == [("param", 2, 4), ("symbol", 1, 2), ("symbol", 2, 4)]
    assert (ran.heads[0].keep, ran.heads[0].launch) == ("one", 2)


@pytest.mark.parametrize(
    ("words", "copies", "launches"),
    [
        # What launches is prepared by itself: from the second time on its symbol has the right values already.
        ("n1 n2 n3", 2, [("symbol", 3, 6)]),
        ("N1 N2 N3", 3, [("symbol", 3, 6)]),
        ("t1 n1 n2", 2, [("symbol", 2, 4)]),
        ("s1 s2 s3", 1, [("symbol", 3, 6)]),
        # Out of sight of all but the launcher: its preparation is all that there is.
        ("o1 o2 o3", 1, [("symbol", 3, 6)]),
        ("n1 o2 n3 o4", 5, [("symbol", 3, 6), ("symbol", 4, 8)]),
    ],
)
def test_launchers(program, tmp_path, words, copies, launches):
    ran = Ran(program, tmp_path, f"{words} c")
    assert (ran.status, ran.out, ran.said) == (0, f"symbol copies {copies}\nleft 0\n", "")
    assert ran.launches() == launches


@pytest.mark.parametrize("keep", ["all", "2"])
def test_launchers_count_a_launch_once(program, tmp_path, keep):
    ran = Ran(program, tmp_path, "n1 N2 o3 s4 n5", AUTOSTAMP_LAUNCH=keep)
    assert ran.launches() == [("symbol", i, 2 * i) for i in range(1, 6)]
    places = [each.entry.function.split("(")[0] for each in ran.regions]
    own, elsewhere = "void launch_symbol", "void launch_elsewhere"
    assert places == [own, own, elsewhere, own, own]


def test_another_block(program, tmp_path):
    assert Ran(program, tmp_path, "p1 s1", AUTOSTAMP_BLOCK="1,0,0").launches() == [("param", 1, 2), ("symbol", 1, 2)]


def test_a_block_that_is_not_in_the_grid(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s1", AUTOSTAMP_BLOCK="0,1,0")
    # One region for the parameter, one for each slot of the symbol.
    assert (ran.launches(), ran.heads[0].unused) == ([], 3)


def ctas(ran: Ran) -> list[tuple[str, int, tuple[int, int, int] | None, int]]:
    """Carrier, number among the chosen CTAs, block index, and records of its first warp."""
    return [(each.entry.carrier, each.cta, each.block, records(each)) for each in ran.regions]


def test_a_range_of_blocks(program, tmp_path):
    """The grid has two CTAs: of the regions of three the drain holds those up to the last that ran."""
    ran = Ran(program, tmp_path, "p1 s2", AUTOSTAMP_BLOCK="0..2")
    assert ctas(ran) == [
        ("param", 0, (0, 0, 0), 2),
        ("param", 1, (1, 0, 0), 2),
        ("symbol", 0, (0, 0, 0), 4),
        ("symbol", 1, (1, 0, 0), 4),
    ]
    assert (ran.heads[0].blocks, ran.heads[0].block) == ("0..2", (0, 0, 0))
    assert {each.entry.name for each in ran.regions} == {
        "void ns::param(int) [with T = float; int N = 4]",
        "void symbol(int) [with T = float; int N = 4]",
    }


def test_a_range_that_begins_later(program, tmp_path):
    assert ctas(Ran(program, tmp_path, "p3", AUTOSTAMP_BLOCK="1..8")) == [("param", 0, (1, 0, 0), 6)]


def test_listed_blocks(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s2", AUTOSTAMP_BLOCK="7,0,0;1,0,0")
    assert [each for each in ctas(ran) if each[3]] == [("param", 1, (1, 0, 0), 2), ("symbol", 1, (1, 0, 0), 4)]
    assert ran.heads[0].block == (7, 0, 0)
    # The first CTA of the list is not in the grid: its region is there, and nothing ran in it.
    assert [each[3] for each in ctas(ran)] == [0, 2, 0, 4]


def test_listed_blocks_while_a_stream_is_captured(program, tmp_path):
    ran = Ran(program, tmp_path, "t1 b p2 e g", AUTOSTAMP_BLOCK="1,0,0;0,0,0")
    assert (ran.said, ctas(ran)) == ("", [("param", 0, (1, 0, 0), 4), ("param", 1, (0, 0, 0), 4)])


@pytest.mark.parametrize("blocks", ["0..1", "0,0,0;1,0,0"])
def test_many_mapped_blocks(program, tmp_path, blocks):
    ran = Ran(program, tmp_path, "p1 a", AUTOSTAMP_MEMORY="mapped", AUTOSTAMP_BLOCK=blocks)
    assert ran.status == -6
    assert [each for each in ctas(ran) if each[3]] == [("param", 0, (0, 0, 0), 2), ("param", 1, (1, 0, 0), 2)]


def test_the_last_launches_take_turns(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 p2 p3 p4 s1 s2 s3", AUTOSTAMP_REPEAT="2")
    assert ran.launches() == [("param", 3, 6), ("param", 4, 8), ("symbol", 2, 4), ("symbol", 3, 6)]
    assert ran.heads[0].repeat == 2
    assert [notes_of(each.data, 16) for each in ran.regions] == [[]] * 4


def test_launches_of_many_blocks_take_turns(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 p2 p3", AUTOSTAMP_REPEAT="2", AUTOSTAMP_BLOCK="0..1")
    assert [(each.entry.launch, each.cta, records(each)) for each in ran.regions] == [
        (2, 0, 4),
        (2, 1, 4),
        (3, 0, 6),
        (3, 1, 6),
    ]


def test_two_devices(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s1 d1 p2 s2")
    assert [(each.entry.device, *launch) for each, launch in zip(ran.regions, ran.launches(), strict=True)] == [
        (0, "param", 1, 2),
        (0, "symbol", 1, 2),
        (1, "param", 1, 4),
        (1, "symbol", 1, 4),
    ]
    assert [device.device for device in ran.heads[0].devices] == [0, 1]


def test_launches_that_are_captured(program, tmp_path):
    """A global capture forbids cudaMalloc and synchronising calls to everyone but us; the graph's last replay is kept."""
    ran = Ran(program, tmp_path, "t1 b p2 s3 e g g l")
    assert (ran.out, ran.said) == ("last error 0\nleft 0\n", "")
    assert ran.launches() == [("param", 1, 4), ("symbol", 1, 6)]
    assert [each.entry.is_captured for each in ran.regions] == [True, True]
    # Replays are launches of their own: bound and released twice.
    assert [each.data[40:48].view("<u4").tolist() for each in ran.regions] == [[2, 2], [2, 2]]


def test_a_graph_sets_the_symbol_that_it_was_captured_with(program, tmp_path):
    ran = Ran(program, tmp_path, "t1 b s3 e s4 g", AUTOSTAMP_LAUNCH="all")
    assert ran.launches() == [("symbol", 1, 6), ("symbol", 2, 8)]


def test_an_error_of_the_program_is_left_to_it(program, tmp_path):
    ran = Ran(program, tmp_path, "x p1 s1 l p2")
    assert ran.out == "last error 101\nleft 0\n"
    assert ran.said == "autostamp: cannot prepare a launch: the program has an error pending: error 101\n"
    assert ran.heads[0].errors == ("cannot prepare a launch: the program has an error pending: error 101",)
    assert ran.launches() == [("param", 1, 4)]


def test_an_error_of_ours_is_not_the_programs(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s1 l", STAND_IN_NO_MEMORY="1")
    assert (ran.status, ran.out) == (0, "last error 0\nleft 0\n")
    assert (ran.said, ran.heads[0].errors) == (
        "autostamp: cannot allocate a region: error 2\n",
        ("cannot allocate a region: error 2",),
    )


def test_no_region_crosses_a_4_gib_boundary(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s1", STAND_IN_BOUNDARY="1")
    assert (ran.said, ran.launches()) == ("", [("param", 1, 2), ("symbol", 1, 2)])


def test_a_folder_that_cannot_be_written(program, tmp_path):
    ran = Ran(program, tmp_path, "p1", AUTOSTAMP_RUN=str(tmp_path / "nosuch"))
    assert (ran.status, ran.out) == (0, "left 0\n")
    assert ran.said.startswith("autostamp: cannot write ")


def test_a_drain_on_request(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 r p2 a")
    assert ran.status != 0
    assert (ran.heads[0].drained, ran.launches()) == ("request", [("param", 1, 2)])


def test_the_drain_at_the_end_replaces_the_one_on_request(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 r p2")
    assert ([head.drained for head in ran.heads], ran.launches()) == (["exit"], [("param", 2, 4)])


def test_records_in_device_memory_do_not_outlive_an_abort(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 a")
    assert (ran.status, list(tmp_path.iterdir())) == (-6, [])


def test_mapped_records_do(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 p2 s3 a", AUTOSTAMP_MEMORY="mapped")
    assert ran.status == -6
    assert {head.drained for head in ran.heads} == {"mapped"}
    assert [launch for launch in ran.launches() if launch[2]] == [("param", 2, 4), ("symbol", 1, 6)]


def test_mapped_records_of_a_program_that_ends(program, tmp_path):
    ran = Ran(program, tmp_path, "p1 s1", AUTOSTAMP_MEMORY="mapped")
    assert {head.drained for head in ran.heads} == {"exit"}
    named = {each.entry.name for each in ran.regions if records(each)}
    assert named == {"void ns::param(int) [with T = float; int N = 4]", "void symbol(int) [with T = float; int N = 4]"}


def test_a_program_without_a_launch_leaves_nothing(program, tmp_path):
    assert Ran(program, tmp_path, "l r").heads == ()


def test_launches_out_of_sight(stand_in, tmp_path):
    """No launch of the symbol's kernel is in sight: its slots are set when the program starts."""
    hidden = build(stand_in, "hidden", 0, "-DAUTOSTAMP", "-DWITHOUT_HOOK")
    ran = Ran(hidden, tmp_path, "s2 s3")
    assert (ran.out, ran.said, ran.launches()) == ("left 0\n", "", [("symbol", 1, 6)])


def test_launches_out_of_sight_beside_others(stand_in, tmp_path):
    """Where a launch of another kernel is in sight, that one's hook sets the symbol, too."""
    mixed = build(stand_in, "mixed", 1, "-DAUTOSTAMP", "-DWITHOUT_HOOK", more="#define AUTOSTAMP_UNIT_SYMBOLS 1")
    assert Ran(mixed, tmp_path, "p1 s2").launches() == [("symbol", 1, 4), ("param", 1, 2)]


def test_from_the_program_to_the_run_folder(program, tmp_path, monkeypatch):
    """`autostamp run -- ./program`, with the manifest that its unit would have."""
    waits = (site(1, "__syncthreads", Kind.WAIT, "CTA", owner="cuda", side=Side.CTA, payload="none"),)
    kernels = (kernel(1, "ns::param", [("aa", 1)]), kernel(2, "symbol", [("aa", 1)]))
    file = SourceFile("aa", "host_program.cu", "", "0" * 64, waits, (), kernels, "cuda")
    write_manifest(
        tmp_path / "unit.manifest.json",
        Manifest(MANIFEST_VERSION, "test", (file,), unit=Unit(UNIT, (UnitFile("aa", 0, 0),))),
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(program.parent))
    options = NativeOptions(manifests=(tmp_path,))
    result = run([str(program), "p3", "S2"], tmp_path / "RUN", options)
    assert (result.status, result.findings, result.was_written) == (0, (), True)
    data = store.load_run(tmp_path / "RUN")
    assert [trace.kernel for trace in data.manifest.traces] == ["ns::param<float, 4>", "symbol<float, 4>"]
    # A warp of 64 and of 96 threads; three visits of two records, and two.
    assert [[len(lane.events) for lane in trace.lanes] for trace in data.traces.values()] == [[6, 6], [4, 4, 4]]
    assert data.manifest.traces[0].instances[0].signals == ("cta",)
    assert (data.facts.gpu, data.facts.compute_capability, data.facts.cuda_runtime) == (
        'Stand-in "GPU"',
        "9.0",
        "12090",
    )
    # The clock of the stand-in passes 2^32 in the first warp: 20 cycles a visit all the same.
    assert [event.cycles for event in data.traces[1].lanes[0].events] == [10, 20, 30, 40, 50, 60]


def test_from_many_blocks_and_launches_to_the_run_folder(program, tmp_path, monkeypatch):
    """Of three launches of two CTAs the last two: one kernel trace with four regions."""
    waits = (site(1, "__syncthreads", Kind.WAIT, "CTA", owner="cuda", side=Side.CTA, payload="none"),)
    kernels = (kernel(1, "ns::param", [("aa", 1)]), kernel(2, "symbol", [("aa", 1)]))
    file = SourceFile("aa", "host_program.cu", "", "0" * 64, waits, (), kernels, "cuda")
    write_manifest(
        tmp_path / "unit.manifest.json",
        Manifest(MANIFEST_VERSION, "test", (file,), unit=Unit(UNIT, (UnitFile("aa", 0, 0),))),
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(program.parent))
    options = NativeOptions(RecordOptions(64, blocks=Blocks(0, 4), repeat=2), manifests=(tmp_path,))
    result = run([str(program), *["s1", "s2", "s3", "p1"]], tmp_path / "RUN", options)
    assert [(finding.code, finding.message[:34]) for finding in result.findings] == [
        ("AS5022", "ns::param<float, 4> was launched 1")
    ]
    data = store.load_run(tmp_path / "RUN")
    assert [(trace.kernel, trace.blocks) for trace in data.manifest.traces] == [
        ("symbol<float, 4>", "0..3"),
        ("ns::param<float, 4>", "0..3"),
    ]
    found = [
        (trace.kernel.number, trace.launch, trace.block, trace.grid[0], len(trace.lanes[0].events))
        for trace in data.recorded
    ]
    assert found == [
        (1, 0, (0, 0, 0), 2, 4),
        (1, 0, (1, 0, 0), 2, 4),
        (1, 1, (0, 0, 0), 2, 6),
        (1, 1, (1, 0, 0), 2, 6),
        (2, 0, (0, 0, 0), 2, 2),
        (2, 0, (1, 0, 0), 2, 2),
    ]
