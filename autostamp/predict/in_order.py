# SPDX-License-Identifier: Apache-2.0
"""A loop's trips played instruction by instruction: what a warp needs for one when all else is there in time.

One scheduler of an SM issues one instruction a cycle, in order for each warp. An instruction waits for its operands, for its
pipe, and, where it is a wait for MMAs, for these. The SM's tensor core runs the MMAs of all warpgroups in the order of issue.
What has no known latency is ready in the next cycle, and what waits for an mbarrier passes at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from autostamp.model.budget import Resource
from autostamp.model.loop import MmaShape
from autostamp.model.machine import MachineTable
from autostamp.model.trip_code import Op, OpKind
from autostamp.predict.instructions import CONVERSION, pipe_of
from autostamp.predict.laws import Mma, Operand, flop, operand_bytes
from autostamp.predict.mma_rows import WARPGROUP_WIDE, dtype, warp_wide_rate, why_not
from autostamp.predict.work import LANES, conversion_constant, tensor_constant

TRIPS: Final = 24
"""Trips that are played; the first third is left out of the period."""

_LATENCIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MUFU.EX2": "ex2_latency",
        "MUFU.RCP": "rcp_latency",
        "MUFU.RSQ": "rsq_latency",
        **dict.fromkeys(("FFMA", "FMUL", "FADD"), "ffma_latency"),
        **dict.fromkeys(("FMNMX", "IADD3", "LOP3", "SEL", "FSEL", "SHF", "PRMT", "LEA", "VIMNMX"), "alu_latency"),
        "SHFL": "shuffle_latency",
        "LDS": "lds_latency",
    }
)
"""Opcode family to the constant that says when its result can be used."""


_GROUPS: Final = 8
"""Groups that are remembered: a wait leaves at most 7 in flight (PTX ISA, wgmma.wait_group)."""


class Reason(NamedTuple):
    """What a warp waits for. `constant` of the machine sets how long ("": none); `is_latency` as in `Step`."""

    what: str
    constant: str = ""
    is_latency: bool = False


ISSUE: Final = Reason("issue", "issue")
_TURN: Final = Reason("turns of other warpgroups")
_HAND_OFF: Final = Reason("hand-off at the named barrier", "named_handoff", True)
_DRAIN: Final = Reason("end of a group of wgmma", "wgmma_first", True)


@dataclass(frozen=True, slots=True)
class Played:
    """`period`: cycles of a trip in the long run, which `parts` sum to. `issued`: when the last trip of the first warp issued
    each operation, from its first; `unknown` names the latencies that the machine lacks.
    """

    period: float
    parts: Mapping[Reason, float]
    issued: tuple[float, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cost:
    """How long an operation keeps its pipe, and how long after issue its result is ready."""

    pipe: Reason | None
    busy: float
    latency: float
    reason: Reason


def play(
    ops: Sequence[Op], table: MachineTable, warps: int = 1, made: str = "", *, stays: bool = False
) -> Played | None:
    """`warps` of one scheduler go through trips of `ops`, each of another warpgroup. None where they wait for good.

    With several, a named barrier that is both waited for and arrived at lets one after the other go on. `made` is what the
    conversions make ("" where that is unknown). `stays`: of warps that can go on at once, the scheduler takes the one that it has
    taken last, and else the first; otherwise the one that has waited longest.
    """
    costs = _Costs(table, made)
    state = _Scheduler(ops, [costs.of(each) for each in ops], costs.drain, costs.hand_off, warps, stays)
    if not ops or not state.run():
        return None
    first = state.warps[0]
    begin = first.begins[TRIPS // 3]
    count = TRIPS - TRIPS // 3 - 1
    period = (first.begins[-1] - begin) / count
    parts = {reason: cycles / count for reason, cycles in first.parts.items() if cycles > 0}
    return Played(period, parts, tuple(first.issued), tuple(sorted(costs.unknown)))


def has_turns(ops: Sequence[Op]) -> bool:
    """Whether warpgroups take turns: a named barrier of several of them is waited for, and another arrived at, once a trip."""
    syncs = [each for each in ops if each.kind is OpKind.NAMED_SYNC and each.threads]
    arrives = [each for each in ops if each.kind is OpKind.NAMED_ARRIVE]
    return len(syncs) == len(arrives) == 1 and syncs[0].threads == arrives[0].threads


@dataclass(slots=True)
class _Costs:
    """Costs by operation, by the machine's constants."""

    table: MachineTable
    made: str
    unknown: set[str] = field(default_factory=set)

    @property
    def drain(self) -> float:
        """From the last MMA of a group to the end of a wait for it: a group of one less what each further one adds."""
        known = self.table.constants
        if not {"wgmma_first", "wgmma_next"} <= set(known):
            return 0.0
        return known["wgmma_first"].value - known["wgmma_next"].value

    @property
    def hand_off(self) -> float:
        return self._value("named_handoff")

    def of(self, op: Op) -> _Cost:
        if op.mma is not None:
            pipe, busy = self._matrix(op.mma)
            return _Cost(pipe, busy, 1.0, ISSUE)
        pipe, busy = None, 0.0
        if (found := pipe_of(op.family, self.made)) and found[1] in self.table.constants:
            pipe = Reason(str(found[0]), found[1])
            busy = LANES * self._schedulers / self.table.constants[found[1]].value
        name = _LATENCIES.get(op.family, "")
        if op.family == CONVERSION:
            name = f"{conversion_constant(self.made or 'unknown')}_latency"
        latency = self._value(name) if name else 0.0
        return _Cost(pipe, busy, max(latency, 1.0), Reason(f"latency of {op.family}", name if latency else "", True))

    @property
    def _schedulers(self) -> float:
        return self.table.constants["issue"].value if "issue" in self.table.constants else 4.0

    def _value(self, name: str) -> float:
        if name in self.table.constants:
            return self.table.constants[name].value
        self.unknown.add(name)
        return 0.0

    def _matrix(self, shape: MmaShape) -> tuple[Reason | None, float]:
        """The tensor core's time for one instruction, or that of its operands where shared memory is slower."""
        if why_not(shape, self.table) or "2CTA" in shape.opcode:
            return None, 0.0
        head = shape.opcode.split(".")[0]
        name = dtype(shape)
        one = Mma(head, shape.m, shape.n, shape.k, name, Operand(shape.operand_a), shape.m, shape.n, 1)
        is_group = head in WARPGROUP_WIDE
        rate = tensor_constant(one, self.table) if is_group else warp_wide_rate(name, self.table)
        # One warp's instruction runs on the quarter of the tensor core beside its scheduler.
        cycles = flop(one) / self.table.constants[rate].value * (1 if is_group else self._schedulers)
        if is_group and "smem" in self.table.constants:
            read = operand_bytes(one) / self.table.constants["smem"].value
            if read > cycles:
                return Reason(str(Resource.SMEM), "smem"), read
        return Reason(str(Resource.TENSOR), rate), cycles


class _Ready(NamedTuple):
    """When something is there, and what took that long."""

    at: float
    why: Reason


@dataclass(slots=True, eq=False)
class _Warp:
    """One warp's way through its trips. `groups`: when each group of MMAs ends."""

    at: int = 0
    trip: int = 0
    next: float = 0.0
    ready: dict[str, _Ready] = field(default_factory=dict)
    groups: list[_Ready] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    parts: dict[Reason, float] = field(default_factory=lambda: defaultdict(float))
    issued: list[float] = field(default_factory=list)


class _Scheduler:
    """The warps of one scheduler: always the one goes on that can do so first."""

    def __init__(
        self, ops: Sequence[Op], costs: Sequence[_Cost], drain: float, hand_off: float, warps: int, stays: bool
    ) -> None:
        self.ops, self.costs, self.drain, self.hand_off = ops, costs, drain, hand_off
        self.stays = stays
        self.warps = [_Warp() for _ in range(warps)]
        self.turns = warps > 1 and has_turns(ops)
        self.pipes: dict[str, float] = {}
        self.tensor = 0.0
        self.free = 0.0

    def run(self) -> bool:
        """Play all trips; False where everybody waits for somebody."""
        while any(each.trip < TRIPS for each in self.warps):
            going = [each for each in self.warps if each.trip < TRIPS]
            found = [(self._ready(each), each) for each in going]
            able = [(max(ready.at, self.free), ready, warp) for ready, warp in found if ready is not None]
            if not able:
                return False
            # A warp that was taken last has the latest `next`; of others the first stands first.
            self._issue(*min(able, key=lambda one: (one[0], one[2].next != self.free if self.stays else one[2].next)))
        return True

    def _ready(self, warp: _Warp) -> _Ready | None:
        """When the warp can go on, and what it waits for until then; None while nobody can say."""
        op, cost = self.ops[warp.at], self.costs[warp.at]
        best = _Ready(warp.next, ISSUE)
        waits = [warp.ready[register] for register in op.reads if register in warp.ready]
        if op.kind is OpKind.GROUP_WAIT:
            ended = warp.groups[: max(0, len(warp.groups) - op.allowed)]
            waits += [_Ready(each.at + self.drain, each.why) for each in ended]
        if self.turns and op.kind is OpKind.NAMED_SYNC:
            turn = self._turn(warp)
            if turn is None:
                return None
            waits.append(turn)
        if cost.pipe is not None and op.kind is not OpKind.MMA:
            waits.append(_Ready(self.pipes.get(cost.pipe.what, 0.0), cost.pipe))
        return max([best, *waits], key=lambda one: one.at)

    def _turn(self, warp: _Warp) -> _Ready | None:
        """When the warpgroup before this one lets it go on: the first one waits for the last one's trip before."""
        number = self.warps.index(warp)
        needed = warp.trip if number else warp.trip - 1
        arrivals = self.warps[number - 1].arrivals
        if needed >= len(arrivals):
            return None
        return _Ready(arrivals[needed] + self.hand_off if needed >= 0 else 0.0, _TURN)

    def _issue(self, when: float, ready: _Ready, warp: _Warp) -> None:
        op, cost = self.ops[warp.at], self.costs[warp.at]
        if TRIPS // 3 < len(warp.begins) < TRIPS:
            self._account(warp, when, ready)
        self.free = warp.next = when + 1
        if op.kind is OpKind.MMA:
            self.tensor = max(self.tensor, when) + cost.busy
            if op.closes:
                warp.groups = [*warp.groups[-_GROUPS:], _Ready(self.tensor, cost.pipe or ISSUE)]
        elif cost.pipe is not None:
            self.pipes[cost.pipe.what] = when + cost.busy
        for register in op.writes:
            warp.ready[register] = _Ready(when + cost.latency, cost.reason)
        if op.kind is OpKind.NAMED_ARRIVE:
            warp.arrivals.append(when)
        if warp.at == 0:
            warp.begins.append(when)
            warp.issued = []
        warp.issued.append(when - warp.begins[-1])
        warp.at = (warp.at + 1) % len(self.ops)
        warp.trip += not warp.at

    def _account(self, warp: _Warp, when: float, ready: _Ready) -> None:
        """Time since the last issue: the cycle of that, then what was waited for, then other warps' issue."""
        waited = ready.at - warp.next
        warp.parts[ISSUE] += when - ready.at + 1
        kind = self.ops[warp.at].kind
        if ready.why is not ISSUE and kind in {OpKind.GROUP_WAIT, OpKind.NAMED_SYNC}:
            last, cost = (_DRAIN, self.drain) if kind is OpKind.GROUP_WAIT else (_HAND_OFF, self.hand_off)
            warp.parts[last] += min(waited, cost)
            waited -= min(waited, cost)
        warp.parts[ready.why] += waited
