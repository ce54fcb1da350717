# SPDX-License-Identifier: Apache-2.0
"""Builds of a native program for replays: one of each set, side by side where each has an output of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from autostamp.hooks.replay_program import SET_IN_COMMAND, Outcome, Program
from autostamp.model.placement import Placement
from autostamp.runtime.placement_file import write_placement


@dataclass
class Builds:
    """What `program.build` has built. A command that names its output by `{set}` is run once for each set, `jobs` at a time.

    One that does not builds in place: it is run before each run of another set than the one that it built last. `folder` gets
    the placements that the builds read.
    """

    program: Program
    folder: Path
    jobs: int = 1
    _known: dict[int, Outcome | None] = field(default_factory=dict)
    _in_place: int | None = None

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """Those of the sets that `prepare` would build; none of a command that builds in place."""
        is_apart = SET_IN_COMMAND in self.program.build
        return [number for number in dict.fromkeys(numbers) if is_apart and number not in self._known]

    def prepare(self, placement: Placement, numbers: Iterable[int]) -> None:
        """Build those of these sets (CLEAN: no stamps) that are not built yet and have an output of their own."""
        wanted = self.missing(numbers)
        with ThreadPoolExecutor(self.jobs) as pool:
            self._known |= zip(wanted, pool.map(partial(self._built, placement), wanted), strict=True)

    def ready(self, placement: Placement, number: int) -> Outcome | None:
        """Build the set, if it is not the one that is there; how a run ends whose build failed, else None."""
        if not self.program.build:
            return None
        if SET_IN_COMMAND in self.program.build:
            self.prepare(placement, [number])
            return self._known[number]
        if number == self._in_place:
            return None
        failed = self._built(placement, number)
        self._in_place = number if failed is None else None
        return failed

    def _built(self, placement: Placement, number: int) -> Outcome | None:
        chosen = {"AUTOSTAMP": "0"}
        if number:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.folder / f"set_{number}.json"
            alone = next(each for each in placement.sets if each.number == number)
            write_placement(file, replace(placement, sets=(replace(alone, number=1),)))
            chosen = {"AUTOSTAMP_PLACEMENT": str(file.resolve()), "AUTOSTAMP_SET": "1"}
        command = self.program.build.replace(SET_IN_COMMAND, str(number))
        # What several say at once is shown one after another.
        done = subprocess.run(
            command,
            shell=True,
            env={**os.environ, **chosen},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        sys.stderr.write(done.stdout.decode(errors="replace"))
        if not done.returncode:
            return None
        return Outcome(done.returncode, (), (), None, (), f"the build ended with status {done.returncode}")
