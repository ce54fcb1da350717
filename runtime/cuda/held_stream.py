# SPDX-License-Identifier: Apache-2.0
"""A stream that waits until work has been put into it, so that events around a launch do not time the host.

The host takes 10 to 30 us for a launch, as long as a small kernel runs: a GPU that has nothing to do meanwhile waits between two
events for the launch to arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

MOST_S: Final = 0.05
"""How long a stream waits at most. A launch may itself wait for the GPU, as where local memory has to grow."""


class Stream(Protocol):
    """A cupy stream."""

    def launch_host_func(self, callback: Callable[[object], None], arg: object) -> None:
        """Have the stream call the function when it comes to it, and wait for it."""


@dataclass
class Hold:
    """`is_late` once the stream has gone on by itself: then the host's time is in what was timed."""

    is_late: bool = False


@contextmanager
def held(stream: Stream, most: float = MOST_S) -> Iterator[Hold]:
    """What the block puts into a cupy stream runs when the block ends, or after `most` seconds."""
    go = threading.Event()
    hold = Hold()

    def wait(_: object) -> None:
        hold.is_late = not go.wait(most)

    stream.launch_host_func(wait, None)
    try:
        yield hold
    finally:
        go.set()
