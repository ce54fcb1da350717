# SPDX-License-Identifier: Apache-2.0
"""What `autostamp place` says meanwhile where stderr is no terminal."""

from __future__ import annotations

import os
import signal

import pytest

from autostamp.cli import place
from autostamp.hooks.variants import Target


def test_a_line_every_half_minute(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 29.9, 30.0, 59.0, 61.0])
    monkeypatch.setattr(place.time, "monotonic", lambda: next(clock))
    with place._progress(quiet=False) as say:
        for done in range(1, 6):
            say("k.py:10", done, 9 * (done < 5))
    assert capsys.readouterr().err.splitlines() == ["k.py:10: 3 of 9", "k.py:10: 5 of ?"]


def test_nothing_where_quiet_was_asked_for(capsys):
    with place._progress(quiet=True) as say:
        say("k.py:10", 1, 9)
    assert capsys.readouterr().err == ""


def test_other_instances_are_named():
    target = Target("_Z4gemmIfEv", b"", (), (), "", others=("_Z4gemmIdEv", "x" * 61))
    assert place._others(target) == (
        f"note: this is of _Z4gemmIfEv; --kernel PATTERN chooses another: _Z4gemmIdEv, {'x' * 57}..."
    )


def test_a_second_signal_does_what_it_did_before():
    before = signal.getsignal(signal.SIGINT)
    stopped = []
    with place._until_signal(lambda: stopped.append(True)) as came:
        assert not came()
        os.kill(os.getpid(), signal.SIGINT)
        assert came()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert stopped == [True]
    assert signal.getsignal(signal.SIGINT) is before
