# SPDX-License-Identifier: Apache-2.0
"""`benchmarks.replayed`: the commands it gives, held against the programs that they run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autostamp.cli.run import command as run_command
from benchmarks.overhead_programs import TIME
from benchmarks.replayed import Replayed, cases, take_on
from benchmarks.replayed_program import named, replayed

ROOT = Path(__file__).resolve().parents[2]
CASES = cases("/cutlass")
NATIVE = [case for case in CASES if case.source]


def test_every_python_case_is_one_of_the_programs() -> None:
    assert [case.name for case in CASES if not case.source] == [case.name for case in replayed(is_real=False)]


def test_a_case_that_is_not_there_is_said() -> None:
    with pytest.raises(SystemExit, match="no case 'FA9'"):
        named("FA9", is_real=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder)
def test_the_replay_command_is_one_that_autostamp_takes(case: Replayed, tmp_path: Path) -> None:
    (tmp_path / "placement.json").touch()
    words = case.replay(tmp_path, ["--runs", "4", "--sets", "6"])
    own = words[words.index("run") + 1 :]
    parsed = run_command.make_context("run", own, resilient_parsing=False).params
    assert parsed["replay"]
    assert parsed["runs"] == 4
    assert list(parsed["results"]) == [tmp_path / "results.bin"]
    assert str(tmp_path / "results.bin") in words[words.index("--") :]


@pytest.mark.parametrize("case", NATIVE, ids=lambda case: case.folder)
def test_a_native_program_is_built_under_the_name_that_is_run(case: Replayed) -> None:
    words = case.replay(Path("/out folder"), [])
    build, program = words[words.index("--build") + 1], words[words.index("--") + 1]
    assert program == "/out folder/app_{set}"
    assert "-o '/out folder/app_'{set}" in build
    assert (ROOT / case.source).is_file()
    assert case.source in build


@pytest.mark.parametrize("case", NATIVE, ids=lambda case: case.folder)
def test_the_pattern_for_times_is_what_the_program_prints(case: Replayed) -> None:
    source = ROOT / case.source
    driver = source.parent / "driver.cuh"  # the gallery's variants share one
    text = (driver if driver.is_file() else source).read_text()
    printed = re.sub(r"%\.\df", "12.50", text)
    assert {found[1] for found in re.finditer(TIME, printed)} == {"12.50"}
    assert all(f'"{word}"' in text for word in case.arguments if word.startswith("--"))


@pytest.mark.parametrize("learnt", ["RUN/placement.json", "RUN-placement.json"])
def test_an_earlier_session_is_gone_on_from(learnt: str, tmp_path: Path) -> None:
    (tmp_path / "RUN").mkdir()
    (tmp_path / "placement.json").write_text("searched")
    (tmp_path / learnt).write_text("learnt")
    for _ in range(2):
        take_on(tmp_path)
        assert (tmp_path / "placement.json").read_text() == "learnt"


@pytest.mark.parametrize("case", NATIVE, ids=lambda case: case.folder)
def test_what_is_searched_for_is_the_instance_that_runs(case: Replayed) -> None:
    words = case.place(Path("/out"))
    pattern = words[words.index("--kernel") + 1]
    # The gallery's kernels are templates on the type, whose name the mangled one holds.
    assert ("bf16" in case.arguments) == (pattern == "*bfloat16*")
    assert words[-1] == case.source
