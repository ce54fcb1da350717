# SPDX-License-Identifier: Apache-2.0
"""The options `--only` and `--skip`, which every command that stamps takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_TERM = "FIELD=GLOB over kind, side, role, barrier, method, function, file; several joined by ',' must all hold."


def selection_options(command: Command) -> Command:
    """Add `--only` and `--skip` as tuples of terms."""
    only = click.option("--only", multiple=True, metavar="TERM", help=f"Stamp only sites that match. {_TERM}")
    skip = click.option("--skip", multiple=True, metavar="TERM", help="Leave out sites that match.")
    return only(skip(command))
