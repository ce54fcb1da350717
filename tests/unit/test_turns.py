# SPDX-License-Identifier: Apache-2.0
"""A program that is started before its turn waits with its first kernel."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from autostamp.hooks import turns
from autostamp.runtime.recorder import RECORDER


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RECORDER, "at_entry", lambda: None)


def test_the_first_kernel_waits_for_its_turn(tmp_path: Path) -> None:
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


def test_later_kernels_do_not(tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    turn.touch()
    turns.wait_for(turn)
    RECORDER.at_entry()
    turn.unlink()
    RECORDER.at_entry()


def test_a_program_whose_parent_is_gone_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns.wait_for(tmp_path / "turn")
    monkeypatch.setattr(turns.os, "getppid", lambda: 1)
    with pytest.raises(SystemExit):
        RECORDER.at_entry()
