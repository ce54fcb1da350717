# SPDX-License-Identifier: Apache-2.0
"""Probes without a compiler or a GPU: figures from records, the table of probes, and machine files."""

from __future__ import annotations

import math
import re
import tomllib

import numpy as np
import pytest

from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts, Instruction
from autostamp.model.machine import Constant, ConstantKind
from autostamp.model.run import MachineFacts
from autostamp.runtime.probes import machine_code, pipes, results, smem_port, wgmma
from autostamp.runtime.probes.build import folder
from autostamp.runtime.probes.probe import SAMPLES, WORDS, Launched, Loop, Pair, Role, Word
from autostamp.runtime.probes.readings import copied, counted_each, cycles_each, gigahertz, rate, smallest_step
from autostamp.runtime.probes.registry import DERIVED, PROBES, families, select
from autostamp.runtime.probes.session import DeviceFacts
from tests.builds import ROOT

UNITS = {"FLOP/clk/SM", "B/clk/SM", "thread-instr/clk/SM", "cycles", "ns", "GHz", "ratio"}


def launched(trips: int, *warps: tuple[int, int, int], ctas: int = 1) -> Launched:
    """A launch whose CTAs have the same warps: (role, begin, end)."""
    records = np.zeros((ctas, len(warps), WORDS), np.int64)
    for number, (role, begin, end) in enumerate(warps):
        records[:, number, Word.ROLE], records[:, number, Word.BEGIN], records[:, number, Word.END] = role, begin, end
    return Launched(records, trips)


def test_a_trip_is_the_difference_of_two_launches():
    # 1,000 cycles once and 50 a trip; the warps begin and end apart, and a copier's span does not count.
    few = launched(10, (Role.MEASURED, 100, 1500), (Role.MEASURED, 110, 1600), (Role.COPIER, 0, 9999))
    many = launched(30, (Role.MEASURED, 5000, 7400), (Role.MEASURED, 4990, 7490), (Role.NONE, 0, 0))
    pair = Pair(few, many)
    assert few.cycles == 1500
    assert many.cycles == 2500
    assert pair.cycles == 50
    assert cycles_each(5)(pair) == 10
    assert rate(400)(pair) == 8


def test_the_slowest_cta_counts():
    many = launched(30, (Role.MEASURED, 0, 1000), ctas=3)
    many.records[1, 0, Word.END] = 1700
    assert many.cycles == 1700


def test_a_cta_without_a_record_is_refused():
    many = launched(30, (Role.MEASURED, 0, 1000), ctas=3)
    many.records[2, 0, Word.ROLE] = Role.NONE
    with pytest.raises(ValueError, match="1 of 3 CTAs"):
        _ = many.cycles


def test_counted_by_the_probe():
    pair = Pair(launched(10, (Role.MEASURED, 0, 1)), launched(30, (Role.MEASURED, 0, 1)))
    pair.few.records[0, 0, Word.COUNT], pair.many.records[0, 0, Word.COUNT] = 8_100, 24_100
    assert counted_each(16)(pair) == 50


def test_smallest_step():
    pair = Pair(launched(1, (Role.MEASURED, 0, 1)), launched(2, (Role.MEASURED, 0, 1)))
    with pytest.raises(ValueError, match="never went on"):
        smallest_step(pair)
    pair.many.records[0, 0, SAMPLES : SAMPLES + 5] = [1000, 1032, 1032, 1160, 1192]
    assert smallest_step(pair) == 32


def test_copied_bytes():
    pair = Pair(launched(1, (Role.COPIER, 0, 1)), launched(2, (Role.MEASURED, 0, 1), (Role.COPIER, 100, 2148)))
    pair.many.records[0, 1, Word.COUNT] = 8
    assert copied(16384)(pair) == 64
    with pytest.raises(ValueError, match="role copier"):
        copied(16384)(Pair(pair.few, launched(2, (Role.MEASURED, 0, 1))))


def test_clock():
    many = launched(1, (Role.MEASURED, 1000, 1_801_000), ctas=2)
    many.records[:, 0, Word.BEGIN_NS], many.records[:, 0, Word.END_NS] = 500, 1_000_500
    assert gigahertz(Pair(many, many)) == 1.8


def test_derived_figures():
    # 2 ex2 at 16 take 1/8, 1 cvt at 64 takes 1/64: alone the slower needs 0.125; three together at 24 need as much.
    assert pipes.mixed_over_slower(2, 1, 24, 16, 64) == 1
    assert pipes.mixed_over_slower(2, 1, 12, 16, 64) == 2
    # 2 * 64 * 256 * 16 FLOP in 128 cycles; (64 + 32) * 32 bytes in 24 cycles.
    rows = {row.name: row.compute for row in DERIVED}
    assert rows["tensor_bf16"](128) == 4096
    assert rows["smem_wgmma"](24) == 128
    # Reads fall from 128 to 68 bytes a cycle while 60 are written: each written byte takes one that was read.
    assert smem_port.write_share(128, 68, 60) == 1
    assert rows["smem_write_share"](24, 48, 64) == 1
    assert rows["smem_write_share"](24, 24, 64) == 0


def test_names_are_unique_and_units_known():
    names = [row.name for probe in PROBES for row in probe.yields] + [row.name for row in DERIVED]
    assert len(set(names)) == len(names)
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in names)  # bare keys of TOML
    assert {row.unit for probe in PROBES for row in probe.yields} | {row.unit for row in DERIVED} <= UNITS
    assert {name for row in DERIVED for name in row.needs} <= set(names)


def test_table_and_sources_agree():
    header = (folder() / "probe.cuh").read_text()
    words = {name: int(value) for name, value in re.findall(r"constexpr int (\w+) = (\d+);", header)}
    assert words["WORDS"] == WORDS
    assert words["SAMPLES"] == SAMPLES
    assert {name: words[name] for name in Word.__members__} == {word.name: int(word) for word in Word}
    sources = "".join(path.read_text() for path in folder().glob("*.cu"))
    for probe in PROBES:
        kernel = re.sub(r"_n\d+$", "_n##N", probe.kernel) if probe.file == "wgmma.cu" else probe.kernel
        assert f"PROBE({kernel})" in sources
        assert probe.launch.trips[0] < probe.launch.trips[1]


def test_every_size_of_wgmma_has_both_forms():
    assert {probe.name for probe in wgmma.PROBES} == {
        f"wgmma_{form}_n{n}" for form in ("ss", "rs") for n in wgmma.SIZES
    }


def test_selection():
    assert select(()) == PROBES
    assert [probe.name for probe in select(("ex2",))] == ["ex2"]
    assert [probe.name for probe in select(("fma_fp32",))] == ["fma_rate"]  # by the constant
    assert select(("pipes", "ex2")) == families()["pipes"]
    with pytest.raises(AutostampError, match="there is no probe ex3"):
        select(("ex2", "ex3"))


def test_architectures():
    by_name = {probe.name: probe for probe in PROBES}
    assert [arch for arch in ("sm_90", "sm_90a", "sm_100a") if by_name["wgmma_ss_n64"].runs_on(arch)] == ["sm_90a"]
    assert [arch for arch in ("sm_80", "sm_90", "sm_120a") if by_name["hbm"].runs_on(arch)] == ["sm_90", "sm_120a"]
    assert [arch for arch in ("sm_86", "sm_89") if by_name["cvt_e4m3x2"].runs_on(arch)] == ["sm_89"]


def function(*instructions: tuple[str, tuple[str, ...]]) -> CubinFacts:
    rows = tuple(Instruction(16 * number, opcode, operands) for number, (opcode, operands) in enumerate(instructions))
    return CubinFacts("probe", 16, 0, 0, 0, rows)


def test_local_memory_is_a_finding():
    assert machine_code.findings(function(("STL", ("[R1]", "R2"))), ()) == ["it uses local memory"]


def test_a_loop_is_from_the_target_to_the_branch():
    facts = function(("FFMA", ()), ("FFMA", ()), ("MUFU.EX2", ()), ("BRA", ("P0", "0x10")), ("BRA", ("0x40",)))
    assert [[each.address for each in body] for body in machine_code.loops_of(facts.instructions)] == [[16, 32, 48]]
    assert machine_code.findings(facts, (Loop({"MUFU.EX2": 1, "FFMA": 1}, 1),)) == []
    (found,) = machine_code.findings(facts, (Loop({"FFMA": 1}, 2),))
    assert found == "FFMA stands 2 times in the function, of which 1 in the loop"
    (found,) = machine_code.findings(function(("FFMA", ())), (Loop({"FFMA": 1}, 2),))
    assert found.endswith("there is no loop")


def test_products():
    named = {
        "NVIDIA H200": "h200", "NVIDIA H100 80GB HBM3": "h100_sxm", "NVIDIA H100 PCIe": "h100_pcie", "NVIDIA B200": "b200",
        "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA GeForce RTX 5090": "rtx_5090", "NVIDIA L4": "l4",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_pro_6000", "NVIDIA GeForce RTX 4070 Ti": "geforce_rtx_4070_ti",
    }  # fmt: skip
    assert {device: results.product_of(device) for device in named} == named


def result(name: str, value: float, repeats: int = 3, unit: str = "cycles") -> results.Result:
    constant = Constant(value, unit, 'a "case"', results.SOURCE, ConstantKind.MEASURED)
    return results.Result(name, constant, value - 1, value + 1, repeats, "probe")


def test_machine_file():
    rows = [
        result("a", 20.25),
        result("b", -1),
        result("c", math.nan),
        *results.of_driver(DeviceFacts("GPU", 132, 62914560, 232448)),
    ]
    table = results.machine_table(rows, "NVIDIA H200", "sm_90a")
    facts = MachineFacts(gpu="NVIDIA H200", driver="580.1", recorded_at="2026-11-30T00:00:00+00:00")
    value = tomllib.loads(results.machine_file(table, facts))
    assert (value["product"], value["title"], value["arch"]) == ("h200", "NVIDIA H200", "sm_90a")
    # What is no number above zero is unknown, and unknown is absent.
    assert list(value["constants"]) == ["a", "sms", "l2_bytes", "smem_bytes_per_cta"]
    assert value["constants"]["a"] == {
        "value": 20.25, "unit": "cycles", "kind": "measured", "source": "autostamp probe",
        "condition": 'a "case"; 3 repeats: 19.25 to 21.25',
    }  # fmt: skip
    assert value["constants"]["l2_bytes"]["value"] == 62914560
    assert value["sources"] == {
        "autostamp probe": "autostamp probe: NVIDIA H200, driver 580.1, recorded 2026-11-30T00:00:00+00:00"
    }


def test_derived_need_everything():
    some = [result("wgmma_ss_n256", 128)]
    assert [(each.name, each.constant.value) for each in results.derive(DERIVED, some)] == [("tensor_bf16", 4096)]
    assert next(results.derive(DERIVED, some)).constant.kind is ConstantKind.DERIVED
    assert list(results.derive(DERIVED, [result("wgmma_ss_n256", 0)])) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "nothing"], "there is no probe nothing"),
        (["--compile-only", "--out", "m.toml"], "nothing is measured"),
        (["--arch", "sm_80"], "compiled for this GPU"),
    ],
)
def test_wrong_usage(words, says, capsys):
    assert main(["probe", *words]) == 2
    assert says in capsys.readouterr().err


def test_every_constant_is_explained():
    page = (ROOT / "docs" / "probes.md").read_text()
    names = [row.name for probe in PROBES for row in probe.yields] + [row.name for row in DERIVED]
    patterns = {re.sub(r"_n\d+", "_nN", name).removesuffix("_loaded") for name in names if name != "clock_loaded"}
    assert [name for name in sorted(patterns) if f"`{name}`" not in page] == []
