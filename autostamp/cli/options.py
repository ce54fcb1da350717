# SPDX-License-Identifier: Apache-2.0
"""Options that mean the same on every command: `--json`, `-q`, `--no-color`, and those of the cost of measuring."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _turn_color_off(_context: click.Context, _parameter: click.Parameter, is_off: bool) -> None:
    # The variable is what rich, click's own users and child processes all read (no-color.org), so nothing is passed on.
    if is_off:
        os.environ["NO_COLOR"] = "1"


def no_color_option(command: Command) -> Command:
    """Add `--no-color`, which acts as the variable NO_COLOR does; the command gets no parameter for it."""
    return click.option(
        "--no-color", is_flag=True, expose_value=False, callback=_turn_color_off, help="Plain text (as NO_COLOR does)."
    )(command)


def json_option(command: Command) -> Command:
    """Add `--json` as the parameter `as_json`: print one JSON object with a `schema_version` instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")(command)


def quiet_option(command: Command) -> Command:
    """Add `-q` as the parameter `quiet`: print the result and no notes."""
    return click.option("-q", "--quiet", is_flag=True, help="Print the result only, no notes.")(command)


def cost_options(command: Command) -> Command:
    """Add `--safety`, `--overhead` and `--case`: what is known of the cost of measuring."""
    file = click.Path(path_type=Path, dir_okay=False, exists=True)
    for option in (
        click.option("--case", metavar="NAME", help="The case of --overhead that this run is."),
        click.option("--overhead", type=file, metavar="FILE", help="What benchmarks/overhead.py --json wrote."),
        click.option("--safety", type=file, metavar="FILE", help="What `autostamp safety --json` printed."),
    ):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add `--json`, `-q` and `--no-color`."""
    return json_option(quiet_option(no_color_option(command)))
