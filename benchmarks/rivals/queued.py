# SPDX-License-Identifier: Apache-2.0
"""Times of launches that wait in the stream, so that what the host takes for a launch is not in them.

A CuTe-DSL call takes the host some 30 us, as long as the kernels here: between two events around one call the GPU mostly waits.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, Final

from autostamp.runtime.cuda.held_stream import held

BATCH: Final = 10
"""Launches between two events."""
LATE: Final = "the launches waited for the host"
"""Printed where the stream ran dry: then the host's time is in the figure, as it is where a tool waits for each launch."""


def us_per_launch(launch: Callable[[Any], None], launches: int) -> float:
    """Median over batches of the time of a launch, in microseconds. `launch` puts one into the stream that it is given.

    Prints LATE where the stream was not held for long enough.
    """
    import cupy

    stream = cupy.cuda.get_current_stream()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    launch(stream)
    times = []
    is_late = False
    for _ in range(max(1, launches // BATCH)):
        with held(stream) as hold:
            start.record(stream)
            for _ in range(BATCH):
                launch(stream)
            stop.record(stream)
        stop.synchronize()
        is_late |= hold.is_late
        times.append(1e3 * cupy.cuda.get_elapsed_time(start, stop) / BATCH)
    if is_late:
        print(LATE, flush=True)
    return float(median(times))
