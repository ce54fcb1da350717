# SPDX-License-Identifier: Apache-2.0
"""Options that mean the same on every command: `--json`, `-q` and `--no-color`."""

from __future__ import annotations

import os
from collections.abc import Callable
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


def output_options(command: Command) -> Command:
    """Add all three."""
    return json_option(quiet_option(no_color_option(command)))
