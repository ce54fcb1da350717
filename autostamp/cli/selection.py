# SPDX-License-Identifier: Apache-2.0
"""The options that say which sites to stamp: `--only` and `--skip`, or the replay set of a placement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from autostamp.model.options import Selection

Command = TypeVar("Command", bound=Callable[..., Any])

_TERM = "FIELD=GLOB over kind, side, role, barrier, method, function, file; several joined by ',' must all hold."


def selection_options(command: Command) -> Command:
    """Add `--only` and `--skip` as tuples of terms."""
    only = click.option("--only", multiple=True, metavar="TERM", help=f"Stamp only sites that match. {_TERM}")
    skip = click.option("--skip", multiple=True, metavar="TERM", help="Leave out sites that match.")
    return only(skip(command))


def placement_options(command: Command) -> Command:
    """Add `--placement` and `--set`, as `placement` and `set_number`."""
    file = click.option(
        "--placement",
        type=click.Path(path_type=Path),
        envvar="AUTOSTAMP_PLACEMENT",
        metavar="FILE",
        help="Stamp the sites of one set of a placement (autostamp place), and no others. [AUTOSTAMP_PLACEMENT]",
    )
    number = click.option(
        "--set",
        "set_number",
        type=click.IntRange(min=1),
        envvar="AUTOSTAMP_SET",
        metavar="N",
        help="Which set of the placement, where it has several. [AUTOSTAMP_SET]",
    )
    return file(number(command))


def placed(placement: Path | None, number: int | None) -> Selection | None:
    """The sites of one set; None without a placement. Raises AS8101, AS8102, and a usage error for one without the other."""
    if placement is None:
        if number is not None:
            raise click.UsageError("--set chooses among the sets of --placement: give that too")
        return None
    from autostamp.runtime.placement_file import read_placement, selection_of

    found = read_placement(placement)
    if number is None and len(found.sets) > 1:
        raise click.UsageError(f"{placement} has {len(found.sets)} sets: choose one with --set")
    return selection_of(found, number or 1, str(placement))
