# SPDX-License-Identifier: Apache-2.0
"""The probes compiled for several architectures: each finds in its machine code what it measures, or says so."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.runtime import cubin, toolchain
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.probes import build as building
from autostamp.runtime.probes import machine_code, tensor_map, tma
from autostamp.runtime.probes.probe import Loop
from autostamp.runtime.probes.registry import PROBES, families, select

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

# Without an elected thread that this compiler sees, a copy on sm_120a is a loop over the lanes; with a tensor map among the
# parameters it also keeps a table of addresses in local memory.
UNFIT = {"sm_120a": {"tma_issue", *(probe.name for probe in tensor_map.PROBES)}}
EARLY = """\
extern "C" __global__ void early(long long* out) { __syncthreads(); out[threadIdx.x] = clock64(); }
extern "C" __global__ void held(long long* out) {
    __syncthreads();
    asm volatile("st.volatile.global.b64 [%0], %1;" ::"l"(out + threadIdx.x), "l"(0LL) : "memory");
    out[threadIdx.x] = clock64();
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> building.Built:
    return building.build(PROBES, "sm_90a", tmp_path_factory.mktemp("probes"), (tma.FILE,))


def test_every_probe_holds_what_it_measures(built):
    assert [finding.message for finding in built.findings] == []
    assert built.good == PROBES
    assert built.absent == ()


@pytest.mark.parametrize(
    ("arch", "lacks"),
    [("sm_80", {"wgmma", "tma", "tensor_map", "smem_port"}), ("sm_100a", {"wgmma"}), ("sm_120a", {"wgmma"})],
)
def test_other_architectures(arch, lacks, tmp_path):
    there = building.build(PROBES, arch, tmp_path)
    assert {re.search(r"probe (\w+)", found.message)[1] for found in there.findings} == UNFIT.get(arch, set())
    assert {found.code for found in there.findings} <= {"AS4040"}
    of_family = families()
    assert all(probe in there.absent for name in lacks for probe in of_family[name])
    assert {probe.name for probe in there.good} >= {"ex2", "fma_rate", "cvt_bf16x2", "named_barrier", "clock_step"}


def test_another_tool_finds_the_boxes(built):
    # One UTMALDG in each loop: of the latency one, of the stream its prologue and its loop, of the issue 8 in a row.
    text = toolchain.run("cuobjdump", "-sass", built.cubins["tensor_map.cu"])
    listings = dict(re.findall(r"Function : (\w+)\n(.*?)(?=\n\t\tFunction|\Z)", text, re.DOTALL))
    found = {name: len(re.findall(r"\bUTMALDG\.2D\b", listing)) for name, listing in listings.items()}
    assert found == {"box_latency": 1, "box_stream": 2, "box_issue": 8}
    assert all("UBLKCP" not in listing for listing in listings.values())


def test_another_tool_counts_the_same(built):
    # cuobjdump's listing, one instruction a line; the functions of pipes.cu hold their opcode in the loop alone.
    text = toolchain.run("cuobjdump", "-sass", built.cubins["pipes.cu"])
    listings = dict(re.findall(r"Function : (\w+)\n(.*?)(?=\n\t\tFunction|\Z)", text, re.DOTALL))
    counts = {
        "ex2": ("MUFU.EX2", 256), "ex2_latency": ("MUFU.EX2", 64), "cvt_bf16x2": ("F2FP.BF16", 256),
        "cvt_e4m3x2": ("F2FP.SATFINITE.E4M3", 512), "ex2_cvt_bf16x2": ("MUFU.EX2", 256), "fma_ex2": ("MUFU.EX2", 64),
    }  # fmt: skip
    for kernel, (opcode, number) in counts.items():
        assert len(re.findall(rf"\b{re.escape(opcode)}\b", listings[kernel])) == number, kernel


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"counts": {"MUFU.EX2": 255}},
            "hold 255 MUFU.EX2 and at most 16 other instructions; the nearest has 256 MUFU.EX2 among",
        ),
        ({"counts": {"MUFU.RCP": 256}}, "0 loops instead of 1 hold 256 MUFU.RCP"),
        ({"others": 2}, "at most 2 other instructions"),
        ({"copies": 2}, "1 loops instead of 2"),
    ],
)
def test_a_loop_that_is_not_as_said(built, change, says):
    functions = {facts.kernel: facts for facts in cubin.read_file(built.cubins["pipes.cu"])}
    (loop,) = select(("ex2",))[0].loops
    assert machine_code.findings(functions["ex2"], (loop,)) == []
    (found,) = machine_code.findings(functions["ex2"], (replace(loop, **change),))
    assert says in found


def test_the_same_opcode_elsewhere(built):
    # FFMA also makes the inputs.
    functions = {facts.kernel: facts for facts in cubin.read_file(built.cubins["pipes.cu"])}
    (found,) = machine_code.findings(functions["fma_rate"], (Loop({"FFMA": 256}, 16),))
    assert "of which 256 in the loop" in found


def test_forms_of_wgmma_are_told_apart(built):
    functions = {facts.kernel: facts for facts in cubin.read_file(built.cubins["wgmma.cu"])}
    (loop,) = select(("wgmma_rs_n64",))[0].loops
    assert machine_code.findings(functions["rs_n64"], (loop,)) == []
    assert machine_code.findings(functions["ss_n64"], (loop,)) != []


def test_a_clock_read_behind_a_barrier(tmp_path):
    compiled = nvcc.compile_unit(
        nvcc.find(), tmp_path / "early.cu", EARLY.encode(), nvcc.Flags("sm_90a"), tmp_path / "out"
    )
    functions = {facts.kernel: facts for facts in cubin.read_file(compiled.cubin)}
    (found,) = machine_code.findings(functions["early"], ())
    assert "right behind a barrier" in found
    assert machine_code.findings(functions["held"], ()) == []


def test_serialized_wgmma_is_a_finding(tmp_path, monkeypatch):
    folder = tmp_path / "probes"
    shutil.copytree(building.folder(), folder)
    text = (folder / "wgmma.cuh").read_text()
    # The accumulators are read while a group runs, so ptxas has to wait for each instruction.
    broken = text.replace(
        'wgmma.wait_group.sync.aligned 1;\\n\\t"',
        'add.f32 c000, c000, c001;\\n\\twgmma.wait_group.sync.aligned 1;\\n\\t"',
    )
    assert broken != text
    (folder / "wgmma.cuh").write_text(broken)
    monkeypatch.setattr(building, "folder", lambda: folder)
    there = building.build(select(("wgmma_ss_n64",)), "sm_90a", tmp_path / "out")
    assert there.good == ()
    assert "C75" in there.findings[0].message


def test_a_file_that_does_not_compile(tmp_path, monkeypatch):
    (tmp_path / "pipes.cu").write_text("nonsense;\n")
    monkeypatch.setattr(building, "folder", lambda: tmp_path)
    with pytest.raises(AutostampError, match=r"AS4041.*pipes\.cu"):
        building.build(select(("ex2",)), "sm_90a", tmp_path / "out")


def test_command(capsys):
    assert main(["probe", "--compile-only", "--only", "ex2,clocks", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["arch"] == "sm_90a"
    assert value["constants"] == {}
    assert set(value["probes"]) == {
        "ex2",
        "clock_read",
        "clock64_read",
        "globaltimer_read",
        "clock_step",
        "globaltimer_step",
    }
    assert main(["probe", "--compile-only", "--only", "ex2"]) == 0
    assert "256 MUFU.EX2" in capsys.readouterr().out


def test_files_are_short():
    assert all(len(path.read_text().splitlines()) <= 250 for path in Path(building.folder()).glob("*.cu*"))
