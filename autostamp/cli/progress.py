# SPDX-License-Identifier: Apache-2.0
"""Long commands: how far one has come, on a terminal, and no time lost on collecting garbage that is not there.

In a pipe, and with `-q`, nothing is shown and rich is not imported.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection meanwhile. A decoded run is millions of objects without cycles, which the collector walks in vain: it
    takes a quarter of the time that a million records need.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def steps(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that says on stderr what is being done now; the line is gone when the command is done."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("reading the run") as status:
        yield lambda text: status.update(escape(text))
