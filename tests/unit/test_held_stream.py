# SPDX-License-Identifier: Apache-2.0
"""A held stream starts nothing before the block ends, and goes on by itself where the block waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from autostamp.runtime.cuda.held_stream import held


class Stream:
    """Does what it is given in order, on a thread of its own, as a GPU does."""

    def __init__(self) -> None:
        self._work: queue.Queue[Callable[[], None]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._work.get()()

    def launch_host_func(self, callback: Callable[[object], None], arg: object) -> None:
        self._work.put(lambda: callback(arg))

    def launch(self) -> threading.Event:
        """Work that says when it is done."""
        done = threading.Event()
        self._work.put(done.set)
        return done


def test_nothing_starts_before_the_block_ends():
    stream = Stream()
    with held(stream, most=60) as hold:
        done = stream.launch()
        assert not done.wait(0.05)
    assert done.wait(10)
    assert not hold.is_late


def test_a_launch_that_waits_for_the_stream_does_not_hang():
    stream = Stream()
    with held(stream, most=0.02) as hold:
        assert stream.launch().wait(10)
    assert hold.is_late


def test_an_error_in_the_block_lets_the_stream_go():
    stream = Stream()
    hold = held(stream, most=60)
    hold.__enter__()
    done = stream.launch()
    assert not hold.__exit__(RuntimeError, RuntimeError("no"), None)  # False: the error goes on
    assert done.wait(10)
