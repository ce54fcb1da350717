# SPDX-License-Identifier: Apache-2.0
"""Native programs in `benchmarks/overhead.py`, with shell scripts in the place of kernels."""

from __future__ import annotations

import pytest

from benchmarks.overhead_programs import Program, measure

SCRIPT = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in --dump) shift; printf '%s' "{result}" > "$1";; esac
  shift
done
echo "{line}"
"""


def script(path, result="1", line="us_per_launch 10.0"):
    path.write_text(SCRIPT.format(result=result, line=line))
    path.chmod(0o755)
    return path


def test_a_program_is_named_with_its_builds_and_arguments():
    program = Program.of("gemm=a/clean,b/stamped,1024,512")
    assert (program.name, str(program.clean), str(program.stamped)) == ("gemm", "a/clean", "b/stamped")
    assert program.arguments == ("1024", "512")
    for wrong in ("gemm", "gemm=clean", "gemm=clean,"):
        with pytest.raises(ValueError, match="is not NAME=CLEAN,STAMPED"):
            Program.of(wrong)


def test_times_of_both_builds_are_read_in_the_order_clean_stamped_stamped_clean(tmp_path):
    clean = script(tmp_path / "clean")
    stamped = script(tmp_path / "stamped", line="M=1: 12.50 us a launch (mean of 3), 4 TFLOP/s")
    result = measure(Program("p", clean, stamped, ("1",)), rounds=2)
    assert result.is_good
    assert [item.ratio for item in result.rounds] == [1.25, 1.25]
    assert result.outputs == {"result": "equal"}


def test_a_changed_result_is_said(tmp_path):
    builds = script(tmp_path / "clean"), script(tmp_path / "stamped", result="2")
    result = measure(Program("p", *builds, ()), rounds=1)
    assert result.outputs == {"result": "DIFFERS"}
    assert not result.is_good


def test_a_result_that_varies_by_itself_proves_nothing(tmp_path):
    clean = script(tmp_path / "clean", result="$(cat /proc/sys/kernel/random/uuid)")
    result = measure(Program("p", clean, script(tmp_path / "stamped"), ()), rounds=1)
    assert result.outputs == {"result": "varies"}


def test_a_program_that_fails_or_prints_no_time_is_an_error(tmp_path):
    silent = script(tmp_path / "silent", line="done")
    assert "printed no time" in measure(Program("p", silent, silent, ()), rounds=1).error
    assert "FileNotFoundError" in measure(Program("p", tmp_path / "absent", silent, ()), rounds=1).error
