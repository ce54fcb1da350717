# SPDX-License-Identifier: Apache-2.0
"""One replay as a process: what it is told, and what is read of it."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.hooks.native import NativeOptions
from autostamp.hooks.replay_program import CLEAN, Program, replay, start_early
from autostamp.model.options import InstrumentOptions, RecordOptions
from autostamp.model.placement import PLACEMENT_SCHEMA, Form, Placement, ReplaySet, ScheduleFeatures
from tests.cuda_drains import SIGNATURE, entry, region, write_drain

FEATURES = ScheduleFeatures(1.0, {}, (1.0, 1.0), (32, 32), (0, 0), 0.0)


def placement() -> Placement:
    sets = tuple(ReplaySet(number, ((f"a.cu:{number}:1@k", Form.BOTH),), (), FEATURES) for number in (1, 2, 5))
    return Placement(PLACEMENT_SCHEMA, "k", "0", (), sets, (), 0, complete=True)


def native(script: str, **fields: object) -> Program:
    words = ("sh", "-c", script, "app_{set}")
    record = RecordOptions()
    made = Program((), words, words, (), record, InstrumentOptions(), NativeOptions(record))
    return replace(made, **fields)  # type: ignore[arg-type]


def test_the_clean_program_runs_with_its_own_number(tmp_path: Path) -> None:
    found = replay(native(f'echo "$0" > {tmp_path}/name; exit 4'), placement(), CLEAN, tmp_path / "clean")
    assert (tmp_path / "name").read_text() == "app_0\n"
    assert (found.status, found.run, found.times) == (4, None, ())


def test_times_and_results_are_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "c.bin"
    program = native(f"echo us 41.5; echo us none; echo us 42; printf abc > {result}")
    found = replay(replace(program, time="us ([0-9a-z.]+)", results=(result,)), placement(), CLEAN, tmp_path / "clean")
    assert found.times == (41.5, 42.0)
    assert found.results == (hashlib.sha256(b"abc").hexdigest(),)
    assert "us 41.5" in capfd.readouterr().err


def test_results_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    result = tmp_path / "c.bin"
    result.write_bytes(b"old")
    assert replay(native("true", results=(result,)), placement(), CLEAN, tmp_path / "clean").results == ("",)


def test_a_program_without_stamps_is_a_fault(tmp_path: Path) -> None:
    found = replay(native("echo us 1", time="us ([0-9]+)"), placement(), 1, tmp_path / "set")
    assert (found.status, found.run, found.times) == (0, None, (1.0,))
    assert found.fault.startswith("AS5010")


def test_records_that_no_manifest_explains_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOSTAMP_STATE", str(tmp_path / "state"))
    write_drain(
        tmp_path / "left.bin", [(entry(sequence=1, slot=1), region(0, {0: [(1100, 5), (1200, 6)]}))], drained="exit"
    )
    found = replay(native(f'cp {tmp_path}/left.bin "$AUTOSTAMP_RUN/drain-1-0.bin"'), placement(), 1, tmp_path / "set")
    assert (found.status, found.run) == (0, None)
    assert found.fault.startswith(f"AS5013 no manifest of unit {SIGNATURE:08x} was found")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    program = replace(native("true"), words=("./no_such_{set}",))
    with pytest.raises(AutostampError) as error:
        replay(program, placement(), CLEAN, tmp_path / "clean")
    assert error.value.diagnostic.code == "AS5007"


def test_a_program_started_ahead_leaves_its_results_and_its_time(tmp_path: Path) -> None:
    result = tmp_path / "c.bin"
    script = tmp_path / "bench.py"
    script.write_text(f"open({str(result)!r}, 'w').write('abc')\nprint('us 41.5')\n")
    program = replace(
        native(""), python=(sys.executable,), words=(str(script),), results=(result,), time="us ([0-9.]+)"
    )
    early = start_early(program, placement(), CLEAN, tmp_path / "run")
    assert early is not None
    digests = early.take_turn(program)
    assert digests == (hashlib.sha256(b"abc").hexdigest(),)
    result.write_text("the next program's")
    found = early.outcome(program, CLEAN, tmp_path / "run", digests)
    assert (found.status, found.times, found.results) == (0, (41.5,), digests)


def test_a_program_that_fails_before_its_turn_is_over(tmp_path: Path) -> None:
    script = tmp_path / "bench.py"
    script.write_text("raise SystemExit(3)\n")
    program = replace(native(""), python=(sys.executable,), words=(str(script),), time="us ([0-9.]+)")
    early = start_early(program, placement(), CLEAN, tmp_path / "run")
    assert early is not None
    assert early.outcome(program, CLEAN, tmp_path / "run", early.take_turn(program)).status == 3
