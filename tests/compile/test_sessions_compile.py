# SPDX-License-Identifier: Apache-2.0
"""Sessions around compilations: twice in one, after one, after an exception, and with no session at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

from autostamp.passes.stamp_check import ptx_stamps
from tests.builds import build_once
from tests.compile import ptx_text

Scenario = Callable[[str], tuple[Path, dict]]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    def run(name: str) -> tuple[Path, dict]:
        folder = build_once(tmp_path_factory, f"scenario-{name}", "tests.compile.scenarios", name)
        return folder, json.loads((folder / "result.json").read_text())

    return run


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, "kernels-sm_90a-clean", "tests.compile.compile_kernels", "sm_90a", "clean")


def text(folder: Path, name: str) -> str:
    return (folder / f"{name}.ptx").read_text()


def test_compiling_again_changes_nothing(scenario):
    folder, result = scenario("again")
    assert "// autostamp 1\n" in text(folder, "two_pipelines.first")
    assert text(folder, "two_pipelines.first") == text(folder, "two_pipelines.second")
    assert len(result["first"]) == 1
    assert result["first"] == result["second"]


def test_after_a_session_builds_are_clean(scenario, clean):
    folder, _ = scenario("closed")
    for name in ("two_pipelines", "participants"):  # the second is compiled for the first time
        assert text(folder, f"{name}.closed") == text(clean, name)
    assert text(folder, "two_pipelines.open") != text(clean, "two_pipelines")


def test_a_second_session_knows_what_the_first_stamped(scenario):
    folder, result = scenario("closed")
    assert text(folder, "two_pipelines.reopened") == text(folder, "two_pipelines.open")
    assert result["second"] == result["first"]
    assert [Path(path).name for path in result["files"]] == ["two_pipelines.py"]
    assert result["findings"] == 0


def test_an_exception_while_tracing_leaves_other_kernels_alone(scenario):
    folder, result = scenario("raised")
    plain, _ = scenario("plain")
    again, other = scenario("again")
    assert "the trap was sprung" in result["message"]
    assert text(folder, "plain.stamped-helper") == text(plain, "plain.plain-helper")
    (after,), (before,) = result["traces"], other["first"]
    assert after["instances"] == before["instances"]  # no role and no open wait is left from the kernel that failed
    assert ptx_stamps(text(folder, "two_pipelines.after"), after["symbol"]) == ptx_stamps(
        text(again, "two_pipelines.first"), before["symbol"]
    )


def test_a_buffer_passed_by_hand_reaches_every_kernel(scenario, clean):
    folder, result = scenario("by_hand")
    assert text(folder, "two_kernels.without") == text(clean, "two_kernels")
    stamped = text(folder, "two_kernels.with")
    assert [(trace["kernel"], trace["region"], len(trace["instances"])) for trace in result["traces"]] == [
        ("scale", 0, 1),
        ("shift", 0, 2),
    ]
    for trace in result["traces"]:
        kernel = ptx_text.body(stamped, trace["symbol"])
        expected = [row[key] for row in trace["instances"] for key in ("enter", "exit", "signal") if row[key]]
        assert sorted(ptx_stamps(kernel, trace["symbol"]).events) == expected
        parameters = re.findall(rf"\.param [^\n]*{re.escape(trace['symbol'])}_param_\d+", kernel)
        assert len(parameters) == 2  # x and the buffer


def test_a_buffer_passed_by_hand_is_where_stamps_write(scenario):
    folder, result = scenario("by_hand")
    for trace in result["traces"]:
        kernel = ptx_text.body(text(folder, "two_kernels.with"), trace["symbol"])
        (register,) = re.findall(r"ld\.param\.b64\s+(%rd\d+), \[\w+_param_1\];", kernel)
        for stamp in ptx_text.stamps(kernel):
            assert register in ptx_text.registers_behind(kernel, stamp.low)
            assert register in ptx_text.registers_behind(kernel, stamp.high)
