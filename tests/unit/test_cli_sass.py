# SPDX-License-Identifier: Apache-2.0
"""`autostamp sass`: what it prints, its JSON, its exit statuses, and files that it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.runtime import cubin, toolchain
from tests.listing import facts
from tests.unit.test_loop_report import ARRIVE, CLEAN, LOADS, MMA_BODY, WAIT, looped

CUBIN = b"\x7fELF" + bytes(14) + (190).to_bytes(2, "little")
DRAINED = facts(looped(WAIT + ARRIVE + LOADS, MMA_BODY.replace("0x1", "0x0") + "FADD R1, R2, R3\n"), kernel="k")


@pytest.fixture
def cubins(monkeypatch, tmp_path):
    """Make files of which the disassembler is said to read these kernels."""

    def make(*kernels: Iterable[CubinFacts]) -> list[str]:
        held = {}
        for number, each in enumerate(kernels):
            file = tmp_path / f"{number}.cubin"
            file.write_bytes(CUBIN)
            held[file] = tuple(each)
        monkeypatch.setattr(cubin, "read_file", held.__getitem__)
        return [str(file) for file in held]

    return make


def test_the_main_loops_are_shown_with_their_mix(cubins, capsys):
    assert cli.main(["sass", *cubins([CLEAN])]) == 0
    printed = capsys.readouterr().out
    assert "168 registers, 0 B stack" in printed
    assert "mma loop 0x0050-0x00d0, one trip: 9 instructions" in printed
    assert "MMA: 4 x HGMMA.64x128x16.F32.BF16: 64 x 128 x 16 bf16, A from shared memory" in printed
    # The wait follows the group of four at once and leaves it in flight: the group before is a whole trip back.
    assert "leaves 1 in flight: 9 instructions after its group (0 MUFU, 4 MMA), issued one trip before" in printed


def test_json_holds_the_same(cubins, capsys):
    assert cli.main(["sass", "--json", *cubins([CLEAN])]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["schema_version"] == 1
    (kernel,) = value["kernels"]
    loops = {loop["role"]: loop for loop in kernel["loops"]}
    assert loops["mma"]["is_main"]
    assert loops["mma"]["facts"]["counts"]["HGMMA"] == 4
    assert loops["mma"]["facts"]["mma"][0] == {
        "opcode": "HGMMA.64x128x16.F32.BF16", "m": 64, "n": 128, "k": 16, "dtype": "bf16", "operand_a": "smem", "count": 4,
    }  # fmt: skip
    assert loops["load"]["facts"]["counts"]["UTMALDG"] == 2


def test_two_builds_side_by_side(cubins, capsys):
    assert cli.main(["sass", *cubins([CLEAN], [DRAINED])]) == 0
    printed = capsys.readouterr().out
    assert "load loop 0x0000-0x0040 and 0x0000-0x0040: distance 0.000, 4 core opcodes in order of 4 and 4" in printed
    # The wait, the arrive and the FADD: 8 core opcodes in A, 9 in B.
    assert "mma loop 0x0050-0x00d0 and 0x0050-0x00e0: distance 0.111, 8 core opcodes in order of 8 and 9" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["FP32", "0", "1", "+1"] in rows
    assert ["stall-prone:", "wgmma", "drained", "at", "once", "0", "1", "+1"] in [
        row for row in rows if row[:1] == ["stall-prone:"]
    ]


@pytest.mark.parametrize(("limit", "status"), [("0.2", 0), ("0.1", 1)])
def test_fail_over(limit, status, cubins, capsys):
    assert cli.main(["sass", *cubins([CLEAN], [DRAINED]), "--fail-over", limit]) == status
    assert ("AS4032 k: the order of its core opcodes is 0.111" in capsys.readouterr().err) == bool(status)


def test_json_of_two(cubins, capsys):
    assert cli.main(["sass", "--json", *cubins([CLEAN], [CLEAN])]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["distance"] == found["order_distance"] == 0
    assert [(pair["role"], pair["first"], pair["second"], pair["distance"]) for pair in found["loops"]] == [
        ("load", 0, 0, 0), ("mma", 80, 80, 0)
    ]  # fmt: skip


def test_fail_over_needs_two(cubins, capsys):
    assert cli.main(["sass", *cubins([CLEAN]), "--fail-over", "0.1"]) == 2
    assert "B.cubin" in capsys.readouterr().err


def test_kernels_are_chosen_and_paired_by_name(cubins, capsys):
    one, other, third = (facts(looped(MMA_BODY), kernel=name) for name in ("gemm", "attention", "init"))
    assert cli.main(["sass", "--json", "--kernel", "g*", *cubins([one, other])]) == 0
    assert [each["kernel"] for each in json.loads(capsys.readouterr().out)["kernels"]] == ["gemm"]
    assert cli.main(["sass", "--json", *cubins([one, other], [third, other, one])]) == 0
    printed = capsys.readouterr()
    pairs = json.loads(printed.out)["comparisons"]
    assert [(each["first"]["kernel"], each["second"]["kernel"]) for each in pairs] == [
        ("gemm", "gemm"), ("attention", "attention")
    ]  # fmt: skip
    assert "1.cubin has init" in printed.err


def test_one_kernel_in_each_is_a_pair_whatever_the_names(cubins):
    one, other = facts(looped(MMA_BODY), kernel="gemm"), facts(looped(MMA_BODY), kernel="gemm_v2")
    assert cli.main(["sass", *cubins([one], [other])]) == 0


def test_no_kernel_matches(cubins, capsys):
    assert cli.main(["sass", "--kernel", "x*", *cubins([CLEAN])]) == 2
    assert "AS9001 no kernel of" in capsys.readouterr().err


def test_no_kernel_in_common(cubins, capsys):
    names = [facts(looped(MMA_BODY), kernel=name) for name in "abc"]
    assert cli.main(["sass", *cubins(names[:2], names[2:])]) == 2
    assert "AS7010" in capsys.readouterr().err


def test_a_kernel_without_a_loop(cubins, capsys):
    straight = facts("FADD R0, R1, R2\nEXIT", kernel="init")
    assert cli.main(["sass", *cubins([straight])]) == 1
    assert "AS4031 no loop found in init" in capsys.readouterr().err
    assert cli.main(["sass", *cubins([CLEAN, straight])]) == 0
    assert "AS4031" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"", "it is empty"),
        (b"//\n// Generated by NVIDIA NVVM Compiler\n.version 8.8", "no ELF file"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00", "an archive of several (fatbin)"),
        (b"\x7fELF" + bytes(14) + (62).to_bytes(2, "little"), "an ELF file for machine 62"),  # x86-64
        (b"\x7fELF", "an ELF file for machine 0"),
    ],
)
def test_what_is_no_cubin_is_refused(content, detail, tmp_path, capsys):
    file = tmp_path / "given"
    file.write_bytes(content)
    assert cli.main(["sass", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"AS4030 {file} is not a cubin: {detail}" in printed.err


def test_a_missing_file_is_wrong_usage(capsys):
    assert cli.main(["sass", "none.cubin"]) == 2
    assert "none.cubin" in capsys.readouterr().err


def test_without_a_disassembler(tmp_path, capsys, monkeypatch):
    def missing(tool: str) -> Path:
        raise AutostampError.of("AS4002", tool=tool)

    monkeypatch.setattr(toolchain, "find", missing)
    file = tmp_path / "k.cubin"
    file.write_bytes(CUBIN)
    assert cli.main(["sass", str(file)]) == 3
    assert "AS4002 nvdisasm was not found" in capsys.readouterr().err


def test_a_broken_cubin_is_the_disassemblers_failure(tmp_path, capsys):
    try:
        toolchain.find("nvdisasm")
    except AutostampError as error:
        pytest.skip(str(error))
    file = tmp_path / "k.cubin"
    file.write_bytes(CUBIN + bytes(100))
    assert cli.main(["sass", str(file)]) == 2
    assert "AS4003 nvdisasm failed" in capsys.readouterr().err
