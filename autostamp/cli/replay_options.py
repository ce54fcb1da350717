# SPDX-License-Identifier: Apache-2.0
"""The options of `autostamp run --replay`, and the program that they describe."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.cli.run_native import NativeChoices
    from autostamp.hooks.replay_program import Program
    from autostamp.model.options import RecordOptions

Command = TypeVar("Command", bound=Callable[..., Any])

BAR: Final = 1.02
RUNS: Final = 4
"""Runs of each set where --runs is not given. One launch of each is kept: keeping several takes code in the kernel, and a set
that was chosen without that code may be another kernel with it."""

LEAST_RUNS: Final = 2
SETS: Final = 6
"""Sets that are kept where --sets is not given."""


_OPTIONS: Final = (
    click.option("--replay", is_flag=True, help="Run once for each set of the placement, and join what they record."),
    click.option(
        "--bar",
        type=click.FloatRange(1.0, 10.0),
        default=BAR,
        show_default=True,
        help="Replay: largest stamped ÷ clean time of a set. One above is taken apart.",
    ),
    click.option(
        "--runs",
        type=click.IntRange(LEAST_RUNS, 64),
        default=RUNS,
        show_default=True,
        help="Replay: run each set that is kept so often. Its launches show what varies; three or more are needed.",
    ),
    click.option(
        "--sets",
        type=click.IntRange(1, 64),
        default=SETS,
        show_default=True,
        help="Replay: keep so many sets at most, those that cover most; the others' sites are named with their cost.",
    ),
    click.option(
        "--try-uncovered",
        "with_untried",
        is_flag=True,
        help="Replay: also run the sites that the placement leaves out, and split them until those that cost are found.",
    ),
    click.option(
        "--as-placed",
        is_flag=True,
        help="Replay: run the placement's sets as they are, and no others.",
    ),
    click.option(
        "--time",
        default="",
        metavar="REGEX",
        help="Replay: finds the kernel's time in what the program prints; group 1 is a number in microseconds.",
    ),
    click.option(
        "--results",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Replay: a file that the program writes, compared with the clean run's byte by byte.",
    ),
    click.option(
        "--budget",
        type=click.FloatRange(0.0),
        metavar="SECONDS",
        help="Replay: try no other sets once so much time has gone.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        default=1,
        show_default=True,
        help="Replay: start Python programs so many at a time; they compile side by side, and launches wait for their turn. "
        "Or run so many --build commands at a time.",
    ),
    click.option(
        "--build",
        default="",
        metavar="COMMAND",
        help="Replay, CUDA C++: builds the program with autostamp nvcc. With {set} (the set's number, 0: clean) here and in "
        "the program's name each set is built once, else before each run. Without --build, {set} names programs that are there.",
    ),
)


def replay_options(command: Command) -> Command:
    """Add `--replay` and the options that only it takes: the command gets these as `asked`, with its own `placement` in them."""

    @functools.wraps(command)
    def packed(**given: Any) -> Any:  # noqa: ANN401 - options of every type
        chosen = {each.name: given.pop(each.name) for each in fields(ReplayChoices) if each.name != "placement"}
        return command(asked=ReplayChoices(placement=given["placement"], **chosen), **given)

    for decorate in reversed(_OPTIONS):
        packed = decorate(packed)
    return packed  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class ReplayChoices:
    """What the options of replays say, each under its name."""

    bar: float
    time: str
    results: tuple[Path, ...]
    build: str
    placement: Path | None
    with_untried: bool = False
    jobs: int = 1
    budget: float | None = None
    runs: int = RUNS
    sets: int = SETS
    as_placed: bool = False

    @property
    def given(self) -> list[str]:
        """The options that were given and say nothing without `--replay`."""
        options = {
            "--time": self.time,
            "--results": self.results,
            "--build": self.build,
            "--try-uncovered": self.with_untried,
            "--as-placed": self.as_placed,
        }
        return [name for name, value in options.items() if value]

    def program(
        self,
        words: tuple[Sequence[str], Sequence[str]],
        command: tuple[str, ...],
        targets: tuple[str, ...],
        record: RecordOptions,
        native: NativeChoices,
    ) -> Program:
        """The program to run. `words` are the interpreter with its flags (none: a native program) and the rest.

        Raises AS9001 for a pattern without a group, for --build with a Python program, and where `{set}` is in one of --build
        and the program's name alone.
        """
        from autostamp.cli import config
        from autostamp.hooks.native import NativeOptions
        from autostamp.hooks.replay_program import Program

        python, arguments = words
        try:
            groups = re.compile(self.time).groups if self.time else 1
        except re.error as error:
            raise AutostampError.of(
                "AS9001", detail=f"--time {self.time!r} is no regular expression: {error}"
            ) from error
        if not groups:
            raise AutostampError.of("AS9001", detail=f"--time {self.time!r} has no group for the number")
        if python and self.build:
            raise AutostampError.of("AS9001", detail="--build: kernels of a Python program are compiled when it runs")
        if self.build and any("{set}" in word for word in arguments) != ("{set}" in self.build):
            raise AutostampError.of(
                "AS9001", detail="{set}: --build and the program's name must both have it, or neither"
            )
        options = NativeOptions(record, native.launch, native.kernel, native.is_mapped, native.manifests)
        return Program(
            tuple(python),
            tuple(arguments),
            command,
            targets,
            record,
            config.load(Path.cwd()),
            options,
            self.build,
            self.results,
            self.time,
        )
