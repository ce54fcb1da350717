# SPDX-License-Identifier: Apache-2.0
"""A program that is started before its turn compiles, and waits with its first launch."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from autostamp.hooks import turns
from autostamp.runtime.recorder import RECORDER


class JitExecutor:
    """Stands for the DSL's class of this name."""

    launches: list[int]

    def __init__(self) -> None:
        self.launches = []

    def run_compiled_program(self, number: int) -> int:
        self.launches.append(number)
        return number


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RECORDER, "at_entry", lambda: None)
    for module in [name for name in sys.modules if name.partition(".")[0] == "cutlass"]:
        monkeypatch.delitem(sys.modules, module)
    method = JitExecutor.run_compiled_program
    yield
    assert JitExecutor.run_compiled_program is method


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> JitExecutor:
    module = ModuleType("cutlass.base_dsl.jit_executor")
    module.JitExecutor = JitExecutor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return JitExecutor()


def test_the_first_launch_waits_and_the_compilation_does_not(tmp_path: Path, executor: JitExecutor) -> None:
    turn = tmp_path / "turn"
    turns.wait_for(turn)
    RECORDER.at_entry()
    RECORDER.at_entry()
    thread = threading.Thread(target=executor.run_compiled_program, args=(7,))
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    assert executor.launches == []
    turn.touch()
    thread.join(10)
    assert executor.launches == [7]


def test_a_way_to_launch_that_is_imported_after_the_trace_is_held_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "cutlass"
    for folder, name in (("base_dsl", "jit_executor"), ("cutlass_dsl", "tvm_ffi_provider")):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").touch()
        (package / folder / f"{name}.py").touch()
    (package / "__init__.py").touch()
    text = "class TVMFFIJitCompiledFunction:\n    def __call__(self, number):\n        return number\n"
    (package / "cutlass_dsl" / "tvm_ffi_provider.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("cutlass")
    turn = tmp_path / "turn"
    turns.wait_for(turn)
    RECORDER.at_entry()
    function = importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider").TVMFFIJitCompiledFunction()
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(function(7)))
    thread.start()
    thread.join(0.1)
    assert not done
    turn.touch()
    thread.join(10)
    assert done == [7]
    for name in [name for name in sys.modules if name.partition(".")[0] == "cutlass"]:
        monkeypatch.delitem(sys.modules, name)


def test_later_launches_do_not(tmp_path: Path, executor: JitExecutor) -> None:
    turn = tmp_path / "turn"
    turn.touch()
    turns.wait_for(turn)
    RECORDER.at_entry()
    assert executor.run_compiled_program(1) == 1
    turn.unlink()
    RECORDER.at_entry()
    assert executor.run_compiled_program(2) == 2


def test_without_a_launch_to_hold_the_trace_waits(tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    turns.wait_for(turn)
    passed = threading.Event()

    def compile_a_kernel() -> None:
        RECORDER.at_entry()
        passed.set()

    thread = threading.Thread(target=compile_a_kernel)
    thread.start()
    assert not passed.wait(0.1)
    turn.touch()
    thread.join(10)
    assert passed.is_set()


def test_a_program_whose_parent_is_gone_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: JitExecutor
) -> None:
    turns.wait_for(tmp_path / "turn")
    RECORDER.at_entry()
    monkeypatch.setattr(turns.os, "getppid", lambda: 1)
    with pytest.raises(SystemExit):
        executor.run_compiled_program(1)
    monkeypatch.undo()
    (tmp_path / "turn").touch()
    executor.run_compiled_program(1)
