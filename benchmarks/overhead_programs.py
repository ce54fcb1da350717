# SPDX-License-Identifier: Apache-2.0
"""Native programs for `benchmarks/overhead.py`: each time is one run of a clean or a stamped build of the same program.

A program takes `--repeat R` (launches that it times as one) and `--dump FILE` (its result as raw bytes), and prints the time
of a launch as `us_per_launch 12.3` or `12.3 us a launch`.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.overhead_statistics import Round
from benchmarks.overhead_timing import DIFFERS, EQUAL, VARIES, Result, say

TIME = r"(?:us_per_launch |(?=[\d.]+ us a launch))([\d.]+)"
"""How a program prints microseconds; group 1 is the number."""
LAUNCHES = 200
DUMPS = 3
"""Results of each build that are compared: a program that adds atomically may give another one every time."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program in two builds, with the arguments that both get."""

    name: str
    clean: Path
    stamped: Path
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Program:
        """`NAME=CLEAN,STAMPED[,ARGUMENT...]`. Raises ValueError for anything else."""
        name, separator, rest = text.partition("=")
        clean, comma, others = rest.partition(",")
        stamped, *arguments = others.split(",")
        if not (separator and comma and stamped):
            message = f"{text!r} is not NAME=CLEAN,STAMPED[,ARGUMENT...]"
            raise ValueError(message)
        return cls(name, Path(clean), Path(stamped), tuple(arguments))


def measure(program: Program, rounds: int) -> Result:
    """Times and outputs of one program; what goes wrong is its result."""
    result = Result(program.name, launches=LAUNCHES, method="runs of the program")
    try:
        with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
            result.outputs = {"result": _compare(program, Path(folder))}
            for number in range(rounds):
                say(f"{program.name}: round {number + 1} of {rounds}")
                builds = (program.clean, program.stamped, program.stamped, program.clean)
                times = [_time(build, program.arguments, Path(folder)) for build in builds]
                result.rounds.append(Round(*times))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        result.error = f"{type(error).__name__}: {error}".splitlines()[0]
    return result


def _compare(program: Program, folder: Path) -> str:
    """EQUAL, or VARIES where the clean build alone gives different results, or DIFFERS."""
    dumps = {}
    for build in (program.clean, program.stamped):
        dumps[build] = set()
        for _ in range(DUMPS):
            _run(build, (*program.arguments, "--dump", str(folder / "dump")), folder)
            dumps[build].add((folder / "dump").read_bytes())
    if len(dumps[program.clean]) > 1:
        return VARIES
    return EQUAL if dumps[program.clean] == dumps[program.stamped] else DIFFERS


def _time(build: Path, arguments: tuple[str, ...], folder: Path) -> float:
    """Microseconds of a launch. Raises ValueError when the program does not print them."""
    printed = _run(build, (*arguments, "--repeat", str(LAUNCHES)), folder)
    found = re.search(TIME, printed)
    if found is None:
        message = f"{build} printed no time: {printed.strip()[-80:]!r}"
        raise ValueError(message)
    return float(found[1])


def _run(build: Path, arguments: tuple[str, ...], folder: Path) -> str:
    """Run one build; a stamped one records, as it does under `autostamp run`."""
    records = folder / "records"
    records.mkdir(exist_ok=True)
    environment = {**os.environ, "AUTOSTAMP_RUN": str(records)}
    done = subprocess.run(
        [str(build.resolve()), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout
