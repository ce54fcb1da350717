# SPDX-License-Identifier: Apache-2.0
"""A probe as a row of a table: which kernel, how it is launched, what its machine code must hold, and what it yields.

`WORDS` and the words of a record are those of kernels/probes/probe.cuh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

WORDS: Final = 64
"""Words of a warp's record."""
SAMPLES: Final = 8
"""The first word that holds a single value."""


class Word(IntEnum):
    """A word of a warp's record. `BEGIN` and `END` are SM cycles, the two after them nanoseconds of %globaltimer."""

    BEGIN = 0
    END = 1
    BEGIN_NS = 2
    END_NS = 3
    COUNT = 4
    SINK = 5
    ROLE = 6


class Role(IntEnum):
    """What a warp did: nothing that was measured, the measured work, or copies beside it."""

    NONE = 0
    MEASURED = 1
    COPIER = 2


@dataclass(frozen=True, slots=True)
class Loop:
    """What a loop of the machine code must hold.

    `counts`: how many instructions of each opcode, exactly; an opcode may be followed by a space and the beginning of its first
    source, such as the special register that is read. `others`: how many further instructions it may hold. `copies`: how many
    such loops there are. `alone`: the first opcode stands nowhere else in the function.
    """

    counts: Mapping[str, int]
    others: int
    copies: int = 1
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Path:
    """What a probe reads of the source, in bytes: CTA b on trip t at (b * block + t * trip) modulo `footprint`.

    With a footprint of 0, all of the source, and every launch goes on where the last ended, so that nothing is in L2. A `block`
    of 0 there means that the CTAs take turns: trip t of all, then trip t + 1.
    """

    footprint: int
    trip: int
    block: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched: threads of a CTA, few and many trips, one CTA or one on each SM, dynamic shared memory.

    `stages`: buffers of `STAGE_BYTES` in dynamic shared memory beside `shared_bytes`, fewer where a CTA cannot have as many;
    where there are any, `extra` is their number. `box_rows`: the kernel takes a tensor map of the source whose boxes have that
    many rows, and that number (0: neither).
    """

    threads: int
    trips: tuple[int, int]
    every_sm: bool = False
    shared_bytes: int = 0
    stages: int = 0
    extra: int = 0
    path: Path | None = None
    box_rows: int = 0


@dataclass(frozen=True, slots=True)
class Launched:
    """What one launch left: records by CTA, warp and word, and its trips."""

    records: NDArray[np.int64]
    trips: int

    def of(self, role: Role, word: Word) -> NDArray[np.int64]:
        """One word of all warps that had this role, CTA after CTA. Raises ValueError when there is no such warp."""
        found: NDArray[np.int64] = self.records[..., word][self.records[..., Word.ROLE] == role]
        if not found.size:
            message = f"no warp had the role {role.name.lower()}"
            raise ValueError(message)
        return found

    @property
    def cycles(self) -> int:
        """From the first measured warp's begin to the last one's end in a CTA, in the slowest CTA."""
        spans = [
            int(cta[measured, Word.END].max() - cta[measured, Word.BEGIN].min())
            for cta in self.records
            for measured in [cta[:, Word.ROLE] == Role.MEASURED]
            if measured.any()
        ]
        if len(spans) != len(self.records):
            message = f"{len(self.records) - len(spans)} of {len(self.records)} CTAs left no record"
            raise ValueError(message)
        return max(spans)


@dataclass(frozen=True, slots=True)
class Pair:
    """A launch of few trips and one of many."""

    few: Launched
    many: Launched

    @property
    def cycles(self) -> float:
        """Cycles of one trip: the difference of both launches, so without what happens once."""
        return (self.many.cycles - self.few.cycles) / (self.many.trips - self.few.trips)


Reading = Callable[[Pair], float]
"""A figure from one pair of launches. May raise ValueError where the records do not hold it."""


@dataclass(frozen=True, slots=True)
class Yield:
    """One constant that a probe yields. `condition` says what it holds for."""

    name: str
    unit: str
    reading: Reading
    condition: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One row of the table.

    `file` is one of kernels/probes, `kernel` the symbol in it. `least` is the lowest compute capability (90 for 9.0), `only`
    the one architecture with its own features that has the instruction.
    """

    name: str
    file: str
    kernel: str
    launch: Launch
    loops: tuple[Loop, ...]
    yields: tuple[Yield, ...]
    least: int = 75
    only: str = ""

    def runs_on(self, arch: str) -> bool:
        """True when `arch`, such as sm_90a, has what the probe measures."""
        if self.only:
            return arch == self.only
        number = re.fullmatch(r"sm_(\d+)[af]?", arch)
        return number is not None and int(number[1]) >= self.least


@dataclass(frozen=True, slots=True)
class Derived:
    """A constant that is worked out from others of the same session, which `compute` takes in the order of `needs`."""

    name: str
    unit: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    condition: str
