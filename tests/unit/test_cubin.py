# SPDX-License-Identifier: Apache-2.0
"""Reading the binary tools' output, and finding and running them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts, Instruction, is_opcode
from autostamp.runtime import cubin, sass, toolchain

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cubin"
DISASSEMBLY = (FIXTURES / "spill.nvdisasm.json").read_text()
USAGE = (FIXTURES / "spill.res-usage.txt").read_text()


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> dict[str, CubinFacts]:
    """The fixture's two kernels, read with stored output in place of the tools."""
    monkeypatch.setattr(toolchain, "run", lambda tool, *_: {"nvdisasm": DISASSEMBLY, "cuobjdump": USAGE}[tool])
    return {each.kernel: each for each in cubin.read(b"not looked at")}


def test_resources_are_those_that_ptxas_printed(facts: dict[str, CubinFacts]) -> None:
    spill, plain = facts["spill"], facts["plain"]
    assert (spill.registers, spill.stack_bytes) == (24, 48)
    assert (spill.spill_store_bytes, spill.spill_load_bytes) == (44, 44)
    assert (plain.registers, plain.stack_bytes) == (8, 0)
    assert (plain.spill_store_bytes, plain.spill_load_bytes) == (0, 0)
    assert (spill.shared_bytes, spill.local_bytes) == (0, 0)


def test_instructions_have_the_addresses_of_the_text_listing(facts: dict[str, CubinFacts]) -> None:
    # `nvdisasm -c`: /*02d0*/ BAR.SYNC.DEFER_BLOCKING 0x0 ;  and  /*0570*/ EXIT ;
    by_address = {each.address: each for each in facts["spill"].instructions}
    assert by_address[0x2D0] == Instruction(0x2D0, "BAR.SYNC.DEFER_BLOCKING", ("0x0",))
    assert by_address[0x570].opcode == "EXIT"


def test_waits_are_found(facts: dict[str, CubinFacts]) -> None:
    assert [each.address for each in facts["spill"].waits] == [0x2D0]
    assert facts["plain"].waits == ()


def test_clock_reads_are_found(facts: dict[str, CubinFacts]) -> None:
    assert facts["spill"].clock_reads == 0
    assert facts["plain"].clock_reads == 1


def test_padding_is_not_counted(facts: dict[str, CubinFacts]) -> None:
    # plain: six instructions, the branch to itself that ends every function, then NOPs up to 256 bytes.
    assert facts["plain"].instruction_count == 7
    assert len(facts["plain"].instructions) == 256 // 16


def test_every_ptx_store_is_one_opcode_in_order(facts: dict[str, CubinFacts]) -> None:
    ptx = (FIXTURES / "spill.ptx").read_text()
    opcodes = facts["spill"].opcodes
    assert opcodes.count("STG.E.STRONG.SYS") == ptx.count("st.volatile")
    assert opcodes.count("LDG.E.STRONG.SYS") == ptx.count("ld.volatile")
    assert opcodes.index("BAR.SYNC.DEFER_BLOCKING") < opcodes.index("STG.E.STRONG.SYS")


@pytest.mark.parametrize(
    ("opcode", "operands", "is_wait"),
    [
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", ("P0", "[UR33+0x20]", "R0"), True),
        ("SYNCS.ARRIVE.TRANS64", ("RZ", "[UR33]", "R3"), False),
        ("WARPGROUP.DEPBAR.LE", ("gsb0", "0x0"), True),
        ("WARPGROUP.ARRIVE", (), False),
        ("DEPBAR.LE", ("SB0", "0x0"), True),
        ("LDGDEPBAR", (), False),
        ("BAR.ARV", ("0x1", "0x100"), False),
        ("UCGABAR_WAIT", (), True),
    ],
)
def test_which_opcodes_wait(opcode: str, operands: tuple[str, ...], is_wait: bool) -> None:
    assert Instruction(0, opcode, operands).is_wait is is_wait


@pytest.mark.parametrize(
    ("opcode", "width"),
    [("STL", 4), ("STL.64", 8), ("LDL.LU.128", 16), ("LDL.U8", 1), ("STL.U16", 2), ("LDL.LU", 4)],
)
def test_width_of_local_accesses(opcode: str, width: int) -> None:
    assert Instruction(0, opcode).width_bytes == width


@pytest.mark.parametrize("opcode", ["CS2R.32", "CS2R", "S2R", "S2UR"])
def test_every_way_to_read_the_clock_counts(opcode: str) -> None:
    assert Instruction(0, opcode, ("R0", "SR_CLOCKLO")).is_clock_read


def test_global_timer_is_not_the_clock() -> None:
    assert not Instruction(0, "S2UR", ("UR4", "SR_GLOBALTIMERLO")).is_clock_read


def test_a_name_matches_whole_components_only() -> None:
    assert is_opcode("BAR.SYNC.DEFER_BLOCKING", "BAR.SYNC")
    assert not is_opcode("BAR.SYNCALL", "BAR.SYNC")
    assert not is_opcode("BARRIER", "BAR")


def test_operands_lose_the_reuse_hint_and_keep_the_guard() -> None:
    text = """[{}, [{"function-name": "k", "start": 0, "length": 32, "sass-instructions": [
        {"predicate": "@!P0", "opcode": "IMAD.WIDE", "operands": "R2,R4.reuse,0x8,R6"}, {"opcode": "EXIT"}]}]]"""
    assert sass.parse_disassembly(text) == {
        "k": (
            Instruction(0, "IMAD.WIDE", ("R2", "R4", "0x8", "R6"), "@!P0"),
            Instruction(16, "EXIT"),
        )
    }


@pytest.mark.parametrize("text", ["", "nvdisasm fatal", "[]", "[{}, [{}]]"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nvdisasm"):
        sass.parse_disassembly(text)


def test_usage_without_functions_is_refused() -> None:
    with pytest.raises(ValueError, match="no resource usage"):
        sass.parse_usage("\nResource usage:\n Common:\n  GLOBAL:0\n")


def test_a_function_without_usage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    only_plain = USAGE[: USAGE.index(" Function spill")]
    monkeypatch.setattr(toolchain, "run", lambda tool, *_: {"nvdisasm": DISASSEMBLY, "cuobjdump": only_plain}[tool])
    with pytest.raises(AutostampError, match=r"AS4003 cuobjdump.*spill"):
        cubin.read(b"")


def fake_tool(folder: Path, script: str) -> Path:
    path = folder / "bin" / "nvdisasm"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "DISTRIBUTIONS", {})
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.mark.usefixtures("no_wheels")
def test_a_missing_tool_is_as4002() -> None:
    with pytest.raises(AutostampError, match="AS4002 nvdisasm was not found"):
        toolchain.find("nvdisasm")


@pytest.mark.usefixtures("no_wheels")
@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_a_toolkit_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    path = fake_tool(tmp_path, "echo hello\n")
    monkeypatch.setenv(variable, str(tmp_path))
    assert toolchain.find("nvdisasm") == path


@pytest.mark.usefixtures("no_wheels")
def test_path_is_searched_and_stdout_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_tool(tmp_path, 'printf "%s %s" "$1" "$2"; echo warning >&2\n')
    monkeypatch.setenv("PATH", str(path.parent))
    assert toolchain.run("nvdisasm", "-json", Path("k.cubin")) == "-json k.cubin"


@pytest.mark.usefixtures("no_wheels")
def test_a_failing_tool_is_as4003_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_tool(tmp_path, "echo first >&2; echo 'nvdisasm fatal: no' >&2; exit 7\n")
    monkeypatch.setenv("PATH", str(path.parent))
    with pytest.raises(
        AutostampError, match=r"AS4003 nvdisasm failed: `.*-json k\.cubin` ended with status 7: nvdisasm fatal: no$"
    ):
        toolchain.run("nvdisasm", "-json", Path("k.cubin"))


@pytest.mark.usefixtures("no_wheels")
def test_a_tool_that_cannot_start_is_as4003(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_tool(tmp_path, "")
    path.write_bytes(b"\x7fELF not really")
    monkeypatch.setenv("PATH", str(path.parent))
    with pytest.raises(AutostampError, match="AS4003"):
        toolchain.run("nvdisasm", "-json", Path("k.cubin"))


def test_junk_is_as4003_with_the_real_tool() -> None:
    try:
        toolchain.find("nvdisasm")
    except AutostampError:
        pytest.skip("nvdisasm is not installed")
    with pytest.raises(AutostampError, match="AS4003 nvdisasm failed"):
        cubin.read(b"this is not a cubin")
