# SPDX-License-Identifier: Apache-2.0
"""The options of `autostamp run --replay`, and the program that they describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


def replay_options(command: Command) -> Command:
    """Add `--replay` and the options that only it takes."""
    decorators = (
        click.option(
            "--replay", is_flag=True, help="Run once for each set of the placement, and join what they record."
        ),
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
            "time_pattern",
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
            help="Replay: start Python programs so many at a time. They compile side by side; launches wait for their turn.",
        ),
        click.option(
            "--build",
            default="",
            metavar="COMMAND",
            help="Replay, CUDA C++: builds the program with autostamp nvcc before each run. Without, {set} in the command "
            "line stands for the set's number (0: clean) in the names of programs that were built beforehand.",
        ),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


@dataclass(frozen=True, slots=True)
class ReplayChoices:
    """What the options of replays say."""

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

    def program(
        self,
        words: tuple[Sequence[str], Sequence[str]],
        command: tuple[str, ...],
        targets: tuple[str, ...],
        record: RecordOptions,
        native: NativeChoices,
    ) -> Program:
        """The program to run. `words` are the interpreter with its flags (none: a native program) and the rest.

        Raises AS9001 for a pattern without a group, and for --build with a Python program.
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
