# SPDX-License-Identifier: Apache-2.0
"""What `autostamp place` says meanwhile where stderr is no terminal."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

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
    target = Target("_Z4gemmIfEv", b"", (), (), "", others=("_Z4gemmIdEv", "x" * 97))
    assert place._others(target) == (
        f"note: this is of _Z4gemmIfEv; --kernel PATTERN chooses another: _Z4gemmIdEv, {'x' * 95}…"
    )


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """What runs in the background of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    """SIGINT to this very thread; its handler runs at the latest when the sleep is over."""
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.01)


@pytest.mark.usefixtures("_interruptible")
def test_a_signal_that_is_ignored_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopped = []
    with place._until_signal(lambda: stopped.append(True)) as came:
        interrupt()
        assert not came()
    assert stopped == []
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("_interruptible")
def test_a_second_signal_does_what_it_did_before():
    stopped = []
    with place._until_signal(lambda: stopped.append(True)) as came:
        assert not came()
        interrupt()
        assert came()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert stopped == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
