# SPDX-License-Identifier: Apache-2.0
"""Builds of a native program: which are run, with what, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.hooks.native import NativeOptions
from autostamp.hooks.replay_builds import Builds
from autostamp.hooks.replay_program import CLEAN, Program
from autostamp.model.options import InstrumentOptions, RecordOptions
from autostamp.model.placement import PLACEMENT_SCHEMA, Form, Placement, ReplaySet, ScheduleFeatures
from autostamp.runtime.placement_file import read_placement, write_placement

FEATURES = ScheduleFeatures(1.0, {}, (1.0, 1.0), (32, 32), (0, 0), 0.0)


def placement(*numbers: int) -> Placement:
    sets = tuple(ReplaySet(number, ((f"a.cu:{number}:1@k", Form.BOTH),), (), FEATURES) for number in numbers)
    return Placement(PLACEMENT_SCHEMA, "k", "0", (), sets, (), 0, complete=True)


@pytest.fixture
def builds(tmp_path: Path) -> Callable[..., Builds]:
    def made(command: str, jobs: int = 1) -> Builds:
        record = RecordOptions()
        words = ("./app_{set}",) if "{set}" in command else ("./app",)
        program = Program((), words, words, (), record, InstrumentOptions(), NativeOptions(record))
        return Builds(replace(program, build=f"cd {tmp_path}; {command}"), tmp_path / "sets", jobs)

    return made


def test_a_build_is_told_its_set(builds: Callable[..., Builds], tmp_path: Path) -> None:
    made = builds('echo "$AUTOSTAMP $AUTOSTAMP_SET $AUTOSTAMP_PLACEMENT" >> log')
    assert made.ready(placement(1, 2, 5), CLEAN) is None
    assert made.ready(placement(1, 2, 5), 5) is None
    clean, stamped = (tmp_path / "log").read_text().splitlines()
    assert clean.split() == ["0"]
    number, file = stamped.split()
    (chosen,) = read_placement(Path(file)).sets
    # A file of one set, numbered from 1 as such files are.
    assert (number, chosen.number, chosen.sites[0][0]) == ("1", 1, "a.cu:5:1@k")


def test_a_build_in_place_is_run_where_another_set_was_built_last(
    builds: Callable[..., Builds], tmp_path: Path
) -> None:
    made = builds("echo ${AUTOSTAMP_SET:-clean} >> log")
    made.prepare(placement(1, 2), [CLEAN, 1, 2])
    for number in (CLEAN, 1, 1, CLEAN):
        assert made.ready(placement(1, 2), number) is None
    assert (tmp_path / "log").read_text().split() == ["clean", "1", "clean"]


def test_sets_with_outputs_of_their_own_are_built_once(builds: Callable[..., Builds], tmp_path: Path) -> None:
    made = builds("echo {set} >> log; touch app_{set}")
    made.prepare(placement(1, 2), [CLEAN, 1, 2, 2, 1, CLEAN])
    for number in (CLEAN, 1, 2, 1):
        assert made.ready(placement(1, 2), number) is None
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2"]
    made.prepare(placement(7), [CLEAN, 7])  # a set that came of taking others apart
    assert made.ready(placement(7), 7) is None
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "7"]
    assert read_placement(tmp_path / "sets" / "set_7.json").sets[0].sites[0][0] == "a.cu:7:1@k"


def test_builds_run_side_by_side(builds: Callable[..., Builds], tmp_path: Path) -> None:
    # Each waits until the other has begun, so one after another they would not end.
    made = builds("touch begun_{set}; until [ -e begun_1 ] && [ -e begun_2 ]; do sleep 0.01; done", jobs=2)
    made.prepare(placement(1, 2), [1, 2])
    assert made.ready(placement(1, 2), 1) is None
    assert made.ready(placement(1, 2), 2) is None


@pytest.mark.parametrize("command", ["echo broken; exit 3", "echo broken {set}; exit 3"])
def test_a_build_that_fails_is_a_fault(
    builds: Callable[..., Builds], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = builds(command).ready(placement(1), 1)
    assert found is not None
    assert (found.status, found.run) == (3, None)
    assert "status 3" in found.fault
    assert "broken" in capsys.readouterr().err


@pytest.mark.parametrize(("build", "program"), [("make app", "./app_{set}"), ("make app_{set}", "./app")])
def test_build_and_program_are_named_alike(
    build: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_placement(tmp_path / "p.json", placement(1))
    assert main(["run", "--replay", "--placement", "p.json", "--build", build, "--", program]) == 2
    assert "{set}" in capsys.readouterr().err
