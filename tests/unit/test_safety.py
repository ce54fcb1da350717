# SPDX-License-Identifier: Apache-2.0
"""Comparing a stamped kernel with the clean one: what is counted, what is a finding, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.model.manifest import Instance, KernelTrace, Manifest, Payload
from autostamp.passes import safety, schedule
from autostamp.passes.stamp_check import PtxStamps, check, ptx_stamps
from autostamp.runtime import cubin, manifest_file
from tests.listing import facts

WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R10\n"
LANE = "CS2R.32 R8, SR_CLOCKLO\n@P0 STG.E desc[UR4][R6.64], R8\n"


def stamp(event: int) -> str:
    return f"CS2R.32 R8, SR_CLOCKLO\nIMAD.MOV.U32 R9, RZ, RZ, {event:#x}\n@P0 STG.E.64 desc[UR4][R6.64], R8\n"


UNTRACEABLE = "CS2R.32 R8, SR_CLOCKLO\nLDG.E R9, desc[UR4][R2.64]\n@P0 STG.E.64 desc[UR4][R6.64], R8\n"


def ptx(*events: int | str, kernel: str = "k") -> str:
    body = "".join(f"\t// begin inline asm\n\t{{\n// autostamp {event}\n\tmov.u32 c, %clock;\n" for event in events)
    return f".version 8.8\n.target sm_90a\n.visible .entry {kernel}(\n\t.param .u64 p\n)\n{{\n{body}\tret;\n}}\n"


def instance(number: int, **events: int) -> Instance:
    kind = "signal" if "signal" in events else "wait"
    return Instance(
        number=number, file="f", site=number, role="mma", call_path=(), kind=kind, side="full", barrier=1,
        payload=Payload.NONE, **events,
    )  # fmt: skip


def trace_of(*instances: Instance, number: int = 1, symbol: str = "k") -> KernelTrace:
    return KernelTrace(
        number=number, kernel="K.kernel", file="f", capacity=64, block=(0, 0, 0), region=1, signature=0, barriers=(),
        instances=instances, symbol=symbol,
    )  # fmt: skip


TRACE = trace_of(instance(1, enter=1, exit=2), instance(2, signal=3))
CLEAN = facts(WAIT + "EXIT")
STAMPED = facts(LANE + stamp(1) + WAIT + stamp(2) + stamp(3) + LANE + "EXIT")
PTX = ptx("bind", 1, 2, 3, "release")


def codes(found: Iterable[object]) -> list[str]:
    return [str(getattr(each, "message", "")) for each in found]


def test_a_kernel_that_only_gained_stamps_has_no_findings() -> None:
    report = safety.compare(CLEAN, STAMPED, PTX, TRACE)
    assert safety.findings(report) == ()
    assert report.stamps is not None
    assert (report.stamps.expected, report.stamps.ptx_comments) == (3, 5)
    assert (report.stamps.clock_reads, report.stamps.identified) == (5, 3)
    assert (report.stamps.around, report.stamps.misplaced, report.stamps.unplaced) == ((1,), (), ())
    deltas = {each.name: (each.clean, each.stamped, each.change) for each in report.resources}
    assert deltas["instructions"] == (2, 15, 13)
    assert deltas["clock reads"] == (0, 5, 5)
    assert {each.name: (each.clean, each.stamped) for each in report.syncs} == {"SYNCS.PHASECHK": (1, 1)}


def test_without_ptx_or_trace_stamps_are_not_judged() -> None:
    assert safety.compare(CLEAN, STAMPED).stamps is None
    assert check(CLEAN, STAMPED, None, None) is None


@pytest.mark.parametrize(
    ("clean", "stamped", "is_found"),
    [(168, 168, False), (161, 168, False), (168, 169, True), (90, 96, False), (96, 97, True), (168, 120, False)],
)
def test_registers_count_by_what_is_allocated(clean: int, stamped: int, is_found: bool) -> None:
    report = safety.compare(facts("EXIT", registers=clean), facts("EXIT", registers=stamped))
    assert [f"registers: {clean} in the clean" in each for each in codes(safety.findings(report))] == [True] * is_found


def test_new_spills_are_found() -> None:
    report = safety.compare(facts("EXIT"), facts("STL.64 [R1], R2\nLDL R4, [R1]\nEXIT"))
    assert codes(safety.findings(report)) == [
        "safety: spill stores (bytes): 0 in the clean kernel, 8 in the stamped one",
        "safety: spill loads (bytes): 0 in the clean kernel, 4 in the stamped one",
    ]
    assert safety.findings(safety.compare(facts("STL [R1], R2\nEXIT"), facts("EXIT"))) == ()


def test_other_shared_memory_is_found() -> None:
    report = safety.compare(facts("EXIT"), facts("EXIT", shared_bytes=1040))
    assert codes(safety.findings(report)) == [
        "safety: static shared memory (bytes): 1024 in the clean kernel, 1040 in the stamped one"
    ]


@pytest.mark.parametrize(
    "instruction",
    [
        "BAR.SYNC 0x0",
        "WARPGROUP.ARRIVE",
        "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24",
        "UTMALDG.2D [UR8], [UR4]",
        "MUFU.EX2 R1, R2",
    ],
)
def test_another_number_of_sync_instructions_is_found(instruction: str) -> None:
    lines = instruction + "\n"
    report = safety.compare(facts(lines * 20), facts(lines * 21))
    family = schedule.family(instruction.split(maxsplit=1)[0])
    assert codes(safety.findings(report)) == [f"safety: {family}: 20 in the clean kernel, 21 in the stamped one"]


def softmax(k: int) -> CubinFacts:
    """66 exponentials after QK's wait, with PV's wait after `k` of them: the loop of FlashAttention forward."""
    mufu = "MUFU.EX2 R1, R2\n"
    return facts(f"WARPGROUP.DEPBAR.LE gsb0, 0x1\n{mufu * k}WARPGROUP.DEPBAR.LE gsb0, 0x0\n{mufu * (66 - k)}")


@pytest.mark.parametrize(("k", "is_found"), [(10, False), (12, False), (7, False), (0, True), (66, True)])
def test_a_wait_moved_among_exponentials_is_found(k: int, is_found: bool) -> None:
    found = codes(safety.findings(safety.compare(softmax(10), softmax(k))))
    moved = (
        f"wait 2 (WARPGROUP.DEPBAR.LE) moved: after {k} MUFU and 0 matrix instructions, 10 and 0 in the clean kernel"
    )
    assert found == [f"safety: {moved}"] * is_found


def test_limits_can_be_set() -> None:
    report = safety.compare(softmax(10), softmax(12))
    assert len(safety.findings(report, safety.Limits(shift=0.02))) == 1


def test_lost_order_is_found() -> None:
    # 2 of 10 core opcodes changed places with all the others: 8 of 10 stay in order.
    clean = facts("FADD R1, R1, R1\n" * 2 + "FMUL R2, R2, R2\n" * 8)
    stamped = facts("FMUL R2, R2, R2\n" * 8 + "FADD R1, R1, R1\n" * 2)
    report = safety.compare(clean, stamped)
    assert codes(safety.findings(report)) == ["safety: 20.0% of the core opcodes left the clean order (limit 10%)"]
    assert safety.findings(report, safety.Limits(distance=0.2)) == ()


def test_a_stamp_absent_from_the_ptx_is_missing() -> None:
    report = safety.compare(CLEAN, STAMPED, ptx("bind", 1, 2, "release"), TRACE)
    assert codes(safety.findings(report)) == ["stamp of instance 2 is missing in the compiled kernel"]
    assert [each.code for each in safety.findings(report)] == ["AS3102"]


def test_a_stamp_absent_from_the_sass_is_missing() -> None:
    stamped = facts(LANE + stamp(1) + WAIT + stamp(3) + LANE + "EXIT")
    found = safety.findings(safety.compare(CLEAN, stamped, PTX, TRACE))
    assert codes(found) == ["stamp of instance 1 is missing in the compiled kernel"]


def test_a_missing_stamp_is_not_hidden_by_copies_of_another() -> None:
    stamped = facts(LANE + (stamp(1) + WAIT + stamp(2)) * 3 + LANE + "EXIT")
    result = check(CLEAN, stamped, PTX, TRACE)
    assert result is not None
    assert (result.clock_reads, result.identified, result.missing) == (8, 6, (2,))


def test_more_stamps_than_comments_is_unrolling() -> None:
    stamped = facts(LANE + (stamp(1) + WAIT + stamp(2) + stamp(3)) * 4 + LANE + "EXIT")
    result = check(CLEAN, stamped, PTX, TRACE)
    assert result is not None
    assert (result.missing, result.unnamed, result.around) == ((), 0, (1,))


def test_a_clock_that_cannot_be_traced_may_be_any_stamp() -> None:
    stamped = facts(LANE + stamp(1) + WAIT + stamp(2) + UNTRACEABLE + LANE + "EXIT")
    result = check(CLEAN, stamped, PTX, TRACE)
    assert result is not None
    assert (result.identified, result.missing, result.unnamed) == (2, (), 0)


def test_too_few_clock_reads_are_counted_where_they_cannot_be_named() -> None:
    stamped = facts(LANE + stamp(1) + WAIT + UNTRACEABLE + LANE + "EXIT")
    report = safety.compare(CLEAN, stamped, PTX, TRACE)
    assert report.stamps is not None
    assert (report.stamps.missing, report.stamps.unnamed) == ((), 1)
    assert codes(safety.findings(report)) == ["safety: 1 stamps have no clock read in the compiled kernel"]


def test_clock_reads_of_the_kernel_itself_are_not_stamps() -> None:
    own = "CS2R.32 R30, SR_CLOCKLO\nSTG.E desc[UR4][R6.64], R30\n"
    clean, stamped = facts(own * 3 + WAIT), facts(own * 3 + LANE + stamp(1) + WAIT + stamp(3) + LANE)
    result = check(clean, stamped, PTX, TRACE)
    assert result is not None
    assert (result.clock_reads, result.missing) == (4, (1,))


def test_a_trace_alone_is_enough() -> None:
    result = check(CLEAN, facts(LANE + stamp(1) + WAIT + stamp(2) + LANE), None, TRACE)
    assert result is not None
    assert (result.ptx_comments, result.missing) == (-1, (2,))


def test_ptx_alone_names_events() -> None:
    result = check(CLEAN, facts(LANE + stamp(1) + WAIT + stamp(2) + LANE), PTX, None)
    assert result is not None
    assert (result.expected, result.missing, result.around) == (3, (3,), ())


def test_stamps_on_one_side_of_the_wait_are_found() -> None:
    stamped = facts(LANE + WAIT + stamp(1) + stamp(2) + stamp(3) + LANE + "EXIT")
    found = safety.findings(safety.compare(CLEAN, stamped, PTX, TRACE))
    assert codes(found) == ["safety: the stamps of instance 1 are not on both sides of its wait"]


def test_comments_are_read_from_the_kernel_asked_for() -> None:
    text = ptx("bind", 1, 1, 2, "release", kernel="one") + ptx("bind", 7, "release", "release", kernel="two")
    assert ptx_stamps(text, "one") == PtxStamps((1, 1, 2), lane=2)
    assert ptx_stamps(text, "two") == PtxStamps((7,), lane=3)
    assert ptx_stamps(text, "unheard of") == PtxStamps((1, 1, 2, 7), lane=5)
    assert ptx_stamps(text, "two").total == 4


def test_only_whole_comments_count() -> None:
    assert ptx_stamps("// autostamp\n// autostamp 12x\n// autostampede 4\n", "k") == PtxStamps((), 0)
    assert ptx_stamps("\t// autostamp 12\n", "k") == PtxStamps((12,), 0)


def test_kernels_are_paired_by_name_then_in_order() -> None:
    clean = [facts("EXIT", "main_1"), facts("EXIT", "pre"), facts("EXIT", "post_1")]
    stamped = [facts("EXIT", "pre"), facts("EXIT", "main_2"), facts("EXIT", "post_2")]
    names = [(before.kernel, after.kernel) for before, after in safety.pair(clean, stamped)]
    assert names == [("pre", "pre"), ("main_1", "main_2"), ("post_1", "post_2")]


def test_other_numbers_of_kernels_cannot_be_paired() -> None:
    with pytest.raises(AutostampError, match="AS9001 the clean cubin holds 1 kernels, the stamped one 0"):
        safety.pair([CLEAN], [])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments naming files whose facts are those above; `clean` is read as stamped where both name it."""
    known = {"clean.cubin": (CLEAN,), "stamped.cubin": (STAMPED,), "bad.cubin": (facts(LANE + WAIT + WAIT + LANE),)}
    for name in known:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "k.ptx").write_text(PTX)
    monkeypatch.setattr(cubin, "read_file", lambda path: known[path.name])
    monkeypatch.chdir(tmp_path)
    return ["safety", "--clean", "clean.cubin", "--stamped", "stamped.cubin"]


def write_manifest(*traces: KernelTrace) -> None:
    manifest_file.write_manifest(
        Path("m.json"), Manifest(version=manifest_file.MANIFEST_VERSION, tool="t", files=(), traces=traces)
    )


def test_command_prints_the_comparison(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    write_manifest(TRACE)
    assert cli.main([*files, "--ptx", "k.ptx", "--manifest", "m.json"]) == 0
    out, err = capsys.readouterr()
    assert ["instructions", "2", "15", "+13"] in [line.split() for line in out.splitlines()]
    assert "stamps: 3 expected, 5 clock reads added, 3 of them traced to their event" in out
    assert "waits with a stamp on each side: 1 of 1; 0 not judged" in out
    assert err == ""


def test_command_exits_1_with_a_finding(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*files[:-1], "bad.cubin", "--ptx", "k.ptx"]) == 1
    out, err = capsys.readouterr()
    assert "AS3101 safety: SYNCS.PHASECHK: 1 in the clean kernel, 2 in the stamped one" in err
    assert "AS3102 stamp of instance 3 is missing" in err
    assert "AS3" not in out


def test_command_writes_json(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*files[:-1], "bad.cubin", "--json"]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["schema_version"] == 1
    (kernel,) = document["kernels"]
    assert kernel["kernel"] == "k"
    assert {"name": "clock reads", "clean": 0, "stamped": 2} in kernel["resources"]
    assert kernel["schedule_distance"] == 0.5  # one of two core opcodes is the clean kernel's
    assert {each["code"] for each in kernel["findings"]} == {"AS3101"}
    assert err == ""


@pytest.mark.parametrize(
    ("traces", "arguments", "message"),
    [
        ((), [], "AS9001 choose the kernel's trace with --trace (the manifest holds none)"),
        ((trace_of(symbol=""), trace_of(number=2, symbol="")), [], "with --trace (the manifest holds 1, 2)"),
        ((trace_of(),), ["--trace", "9"], "AS9001 the manifest holds no trace 9 (it holds 1)"),
    ],
)
def test_command_needs_one_trace(
    files: list[str],
    capsys: pytest.CaptureFixture[str],
    traces: tuple[KernelTrace, ...],
    arguments: list[str],
    message: str,
) -> None:
    write_manifest(*traces)
    assert cli.main([*files, "--manifest", "m.json", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--trace", "2"]])
def test_command_takes_the_trace_of_the_symbol_or_the_one_asked_for(
    files: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    mine, other = ("x", "k") if not arguments else ("k", "x")
    traces = {"k": TRACE.instances, "x": (instance(1, enter=1, exit=2),)}
    write_manifest(trace_of(*traces["x"], number=1, symbol=mine), trace_of(*traces["k"], number=2, symbol=other))
    assert cli.main([*files, "--manifest", "m.json", *arguments]) == 0
    assert "stamps: 3 expected" in capsys.readouterr().out


def test_command_names_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["safety", "--clean", "none.cubin", "--stamped", "none.cubin"]) == 2
    assert "none.cubin" in capsys.readouterr().err


SERIAL = (
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient "
    "register resources for the wgmma pipeline in the function '{}'\n"
)
INJECTED = (
    "ptxas info    : (C7517) warpgroup.wait is injected in around line {} by compiler to allow use of registers defined by "
    "GMMA in function '{}'\n"
)


def test_a_message_of_ptxas_that_only_the_stamped_build_gives_is_a_finding():
    (found,) = safety.log_findings(INJECTED.format(105, "k"), INJECTED.format(260, "kS") + SERIAL.format("kS"))
    assert found.code == "AS3101"
    assert "C7511" in found.message
    assert "kS" in found.message


def test_a_message_of_both_builds_is_none_even_under_another_name_and_line():
    assert (
        safety.log_findings(
            INJECTED.format(1, "k") + SERIAL.format("k"), INJECTED.format(9, "kS") + SERIAL.format("kS")
        )
        == ()
    )
    twice = INJECTED.format(1, "k") * 2
    assert len(safety.log_findings(INJECTED.format(1, "k"), twice)) == 1


def test_a_threaded_parameter_lengthens_the_name_of_a_kernel():
    clean = (facts(WAIT + "EXIT", "_Z1kPf"), facts("EXIT", "_Z2k2Pf"))
    stamped = (facts("EXIT", "_Z2k2PfN9autostamp4SlotE"), facts(WAIT + "EXIT", "_Z1kPfN9autostamp4SlotE"))
    assert [(a.kernel, b.kernel) for a, b in safety.pair(clean, stamped)] == [
        ("_Z2k2Pf", "_Z2k2PfN9autostamp4SlotE"),
        ("_Z1kPf", "_Z1kPfN9autostamp4SlotE"),
    ]
