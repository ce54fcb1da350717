# SPDX-License-Identifier: Apache-2.0
"""A main loop's cycle budget, the bounds that follow from it, and the prediction that they make.

Cycles are SM cycles of one iteration of the main loop. Work is that of one CTA, or of one SM where several CTAs share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """A unit of the SM, or of the memory behind it, that an iteration keeps busy."""

    TENSOR = "tensor core"
    SMEM = "shared memory"
    TMEM = "tensor memory"
    MUFU = "MUFU"
    FMA = "FMA pipe"
    ALU = "ALU pipe"
    CONVERT = "conversion"
    SHUFFLE = "shuffle"
    ISSUE = "issue slots"
    TMA_ISSUE = "TMA issue"
    TMA_BYTES = "TMA bytes"
    L2 = "L2"
    HBM = "device memory"


class Origin(StrEnum):
    """Where the amount of work was found."""

    SHAPE = "shape"
    """Computed from tile, dtype and MMA atom by a law."""
    CUBIN = "cubin"
    """Counted in the main loop's instructions."""
    GIVEN = "given"
    """The user's budget file."""
    MACHINE = "machine"
    """The machine table: a latency that does not depend on the kernel."""


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """What one role asks of one resource in an iteration: `cycles` = `work` / `rate`.

    `unit` is that of `work` ("FLOP", "B", "thread-instr"). `constant` names the rate in the machine table and `rate_source` is
    its source there; `source` is the law's, or says where `work` was read. `is_write`: bytes that are written to shared memory,
    of which `Budget.smem_write_share` counts.
    """

    role: str
    resource: Resource
    what: str
    work: float
    unit: str
    constant: str
    rate: float
    cycles: float
    origin: Origin
    source: str
    rate_source: str
    is_write: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a chain that takes `cycles`. `constant` names the figure of the machine table that sets it ("": none).

    `is_latency`: the cycles grow with the constant; otherwise the constant is a rate, and they shrink with it.
    """

    what: str
    cycles: float
    constant: str = ""
    is_latency: bool = False
    origin: Origin = Origin.SHAPE
    source: str = ""


@dataclass(frozen=True, slots=True)
class Dependency:
    """`end` of iteration i + `distance` cannot begin before `start` of iteration i has, and `steps` have passed.

    Both are phases of the loop, such as "QK" or "softmax".
    """

    start: str
    end: str
    steps: tuple[Step, ...]
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Ring:
    """A buffer of `stages` between two roles: one stage is filled, handed over, consumed and handed back."""

    name: str
    producer: str
    consumer: str
    stages: int
    fill: tuple[Step, ...]
    consume: tuple[Step, ...]
    hand_off: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """One iteration of a main loop on one machine. `iteration` says what that is ("one key tile of 128").

    `smem_write_share`: the part of bytes written to shared memory that takes port time from reads (1: all, the pessimistic
    view; 0: none). `blind_spots`: what the budget leaves out, as sentences for the report.
    """

    kernel: str
    machine: str
    iteration: str
    rows: tuple[ResourceRow, ...]
    dependencies: tuple[Dependency, ...] = ()
    rings: tuple[Ring, ...] = ()
    smem_write_share: float = 1.0
    blind_spots: tuple[str, ...] = ()


class BoundKind(StrEnum):
    """Why an iteration cannot be shorter."""

    RESOURCE = "resource"
    """A unit has that much to do."""
    RECURRENCE = "recurrence"
    """An iteration needs what an earlier one made."""
    CREDIT = "credit"
    """A ring has so many stages and no more."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The iteration takes at least `cycles`, because of `name`; `detail` shows the sum."""

    kind: BoundKind
    name: str
    cycles: float
    detail: str


@dataclass(frozen=True, slots=True)
class RoleIdle:
    """`busy` is what the role's most loaded resource takes, `idle` is 1 - busy / period, 0 to 1."""

    role: str
    resource: Resource
    busy: float
    idle: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The predicted period if `constant` were a tenth better: a rate 1.1 times as high, a latency 1.1 times as short."""

    constant: str
    period: float
    gain: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """`period` is the largest bound. `bounds` are sorted, largest first; `co_bottlenecks` lie within a tenth of the first.

    `period_without_writes` is the period if writes to shared memory took no port time from reads. `line` can be proved wrong
    by a measurement.
    """

    kernel: str
    machine: str
    period: float
    bounds: tuple[Bound, ...]
    bottleneck: Bound
    co_bottlenecks: tuple[Bound, ...]
    roles: tuple[RoleIdle, ...]
    sensitivities: tuple[Sensitivity, ...]
    period_without_writes: float
    line: str
    blind_spots: tuple[str, ...] = ()
