# SPDX-License-Identifier: Apache-2.0
"""Which kernel traces of a run a command is about: the RUN argument, `--kernel`, `--trace`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.trace import Trace
    from autostamp.runtime.store import RunData

Command = TypeVar("Command", bound=Callable[..., Any])

NO_LANES_HINT = "Check that the stamped kernel ran, with the CTA that was chosen, before the run ended."


def run_argument(command: Command) -> Command:
    """Add the argument RUN, a run folder, as the parameter `run` (a Path)."""
    return click.argument("run", metavar="RUN", type=click.Path(path_type=Path))(command)


def trace_option(command: Command) -> Command:
    """Add `--trace N` as the parameter `trace` (None: all)."""
    return click.option("--trace", type=int, metavar="N", help="Only kernel trace number N of the manifest.")(command)


def kernel_option(command: Command) -> Command:
    """Add `--kernel REGEX` as the parameter `kernel`, compiled (None: all)."""
    text = "Only kernels whose name the regular expression finds."
    return click.option("--kernel", metavar="REGEX", callback=_compiled, help=text)(command)


def select(data: RunData, kernel: re.Pattern[str] | None = None, trace: int | None = None) -> list[Trace]:
    """The traces with records that the options name, in the order of kernel trace, launch and CTA.

    What was asked for without records is noted on stderr. Raises AS7002 when the options name no kernel trace, AS5003 when
    no lane of those they name was ever entered.
    """
    named = [
        found
        for found in data.recorded
        if trace in (None, found.kernel.number) and (kernel is None or kernel.search(found.kernel.kernel))
    ]
    if not named:
        there = ", ".join(f"{number} {found.kernel.kernel}" for number, found in data.traces.items()) or "none"
        raise AutostampError.of("AS7002", detail=f"no such kernel trace; the run has: {there}")
    for empty in (found for found in named if not found.lanes):
        why = "; ".join(empty.warnings) or "none of its lanes was entered"
        click.echo(f"note: kernel trace {empty.kernel.number} ({empty.kernel.kernel}) has no records: {why}", err=True)
    recorded = [found for found in named if found.lanes]
    if not recorded:
        raise AutostampError.of("AS5003", detail=f"no lane in {data.path} was entered", hint=NO_LANES_HINT)
    return recorded


def _compiled(_context: click.Context, _parameter: click.Parameter, value: str | None) -> re.Pattern[str] | None:
    try:
        return None if value is None else re.compile(value)
    except re.error as error:
        message = f"{value!r} is no regular expression: {error}"
        raise click.BadParameter(message) from error
