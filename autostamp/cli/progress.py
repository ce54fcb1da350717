# SPDX-License-Identifier: Apache-2.0
"""How far a long command has come, on a terminal. In a pipe, and with `-q`, nothing is shown and rich is not imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
