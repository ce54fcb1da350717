# SPDX-License-Identifier: Apache-2.0
"""Records sorted by the barrier they are about: for each, who arrived and who waited, before any two are paired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from autostamp.analysis.rings import STAGE_BIT, Rings
from autostamp.model.flow import End
from autostamp.model.manifest import Barrier, EventKind, Instance, Payload
from autostamp.model.trace import Event, Lane, Trace

MEETINGS: Final = frozenset({"named", "cta"})
"""Barriers of the CTA's hardware: who waits on one arrives on it as well."""

_PHASES: Final = frozenset({"full", "empty", "mbarrier"})
_OTHER_SIDE: Final = "full"
"""A producer's wait on the empty side is followed by an arrival on this one."""

UNKNOWN: Final = -2
"""The use of a wait that nothing is known of."""

Key: TypeAlias = tuple[str, int, str, int]
"""How the barrier is known (`address`, `stage`, `id`, `declared`), its number there, the side and the stage."""


@dataclass(slots=True, eq=False)
class Arrival:
    """One arrival that a use counts, as the records that belong to it, in order: an arm, and the copies that it announced.

    `is_async`: it lands later than its records. `is_entry`: it is the enter of a wait that arrives. `is_bare`: nothing that
    its warp did announced it, so it may belong to another warp's arm.
    """

    ends: list[End]
    is_async: bool = False
    is_entry: bool = False
    is_bare: bool = False

    def by(self, late: int) -> int:
        """The cycle by which it is known to have happened, to compare with an exit's plus `late`."""
        first = self.ends[0].cycles
        return first + late if self.is_entry else first


@dataclass(slots=True, eq=False)
class Waiting:
    """One wait: its enter, and its exit as an end of an arrow. `own` is the arrival that the same call makes."""

    enter: int
    exit: End
    barrier: int
    side: str
    stage: int
    own: Arrival | None = None
    use: int = UNKNOWN


@dataclass(slots=True, eq=False)
class Uses:
    """One stage of one barrier. `copies` are asynchronous arrivals that other warps' arrivals announced.

    `depth` is its ring's number of stages (0: unknown); `barriers` the numbers under which records name it.
    """

    key: Key
    side: str
    is_inferred: bool
    depth: int
    barriers: set[int] = field(default_factory=set)
    arrivals: list[Arrival] = field(default_factory=list)
    copies: list[Arrival] = field(default_factory=list)
    waits: list[Waiting] = field(default_factory=list)


@dataclass(slots=True)
class Gathered:
    """All uses of a trace by key, and the waits of producers that wait for a whole ring to be free (producer_tail)."""

    uses: dict[Key, Uses]
    tails: list[tuple[int, Waiting]]


_Row: TypeAlias = tuple[End, bool, bool]
"""An arrival's record: its end, whether it lands later, and whether it announces what lands later."""


class _Lane:
    """One lane's records, sorted into the uses of all lanes."""

    def __init__(self, gatherer: _Gatherer, lane: Lane) -> None:
        self._all = gatherer
        self._lane = lane
        self._arrivals: dict[Key, list[_Row]] = {}
        self._entered: dict[tuple[int, int], Event] = {}
        self._unfollowed: dict[int, list[tuple[Uses, Waiting]]] = {}
        self._has_filled: set[int] = set()

    def read(self) -> None:
        # Every record comes by here: what is the same for all of them is looked up once.
        instances, entered = self._all.instances, self._entered
        enter_kind, exit_kind, signal_kind = EventKind.ENTER, EventKind.EXIT, EventKind.SIGNAL
        for event in self._lane.events:
            kind = event.kind
            if kind is enter_kind:
                entered[event.instance, event.visit] = event
            elif kind is exit_kind:
                enter = entered.pop((event.instance, event.visit), None)
                if enter is not None:
                    self._wait(instances[event.instance], enter, event)
            elif kind is signal_kind:
                instance = instances[event.instance]
                self._arrive(instance, instance.side, event, event.payload)
                for side in instance.signals:
                    self._arrive(instance, side, event, event.payload)
        self._leave_open()
        for key, rows in self._arrivals.items():
            _merge(self._all.uses[key], rows)
        self._keep_tails()

    def _wait(self, instance: Instance, enter: Event, exit_: Event) -> None:
        payload = enter.payload or exit_.payload
        own_side, signals = instance.side, instance.signals
        uses = self._all.find(instance, own_side, payload)
        if uses is not None:
            end = End(self._lane.warp, instance.number, exit_.visit, exit_.cycles)
            stage = self._all.stage(instance, payload)
            wait = Waiting(enter.cycles, end, instance.barrier, own_side, stage)
            uses.waits.append(wait)
            if own_side in MEETINGS or own_side in signals:
                wait.own = self._arrive_at(uses, instance, enter)
            if own_side == "empty":
                self._unfollowed.setdefault(instance.barrier, []).append((uses, wait))
        for side in signals:
            if side != own_side:
                self._arrive(instance, side, exit_, payload)

    def _arrive_at(self, uses: Uses, instance: Instance, enter: Event) -> Arrival:
        end = End(self._lane.warp, instance.number, enter.visit, enter.cycles)
        arrival = Arrival([end], is_entry=True)
        uses.arrivals.append(arrival)
        return arrival

    def _arrive(self, instance: Instance, side: str, event: Event, payload: int) -> None:
        uses = self._all.find(instance, side, payload)
        if uses is None:
            return
        end = End(self._lane.warp, instance.number, event.visit, event.cycles)
        announces = not (instance.is_async or (instance.is_noop and event.kind is EventKind.SIGNAL))
        # An acquire that arms the full barrier announces the bytes of a copy that follows.
        is_async = not announces or (side == _OTHER_SIDE and event.kind is EventKind.EXIT)
        rows = self._arrivals.get(uses.key)
        if rows is None:
            rows = self._arrivals[uses.key] = []
        rows.append((end, is_async, announces))
        if side == _OTHER_SIDE:
            self._unfollowed.pop(instance.barrier, None)
            self._has_filled.add(instance.barrier)

    def _leave_open(self) -> None:
        """A wait without an exit has arrived all the same, where its barrier is known."""
        for enter in self._entered.values():
            instance = self._all.instances[enter.instance]
            is_known = instance.payload is not Payload.BARRIER_ID or enter.payload
            if is_known and (instance.side in MEETINGS or instance.side in instance.signals):
                uses = self._all.find(instance, instance.side, enter.payload)
                if uses is not None:
                    self._arrive_at(uses, instance, enter)

    def _keep_tails(self) -> None:
        """A producer's one wait for a free stage after its last fill waits for all stages, whichever its record names."""
        if self._lane.is_lossy:
            return
        for barrier, rows in self._unfollowed.items():
            uses, wait = rows[0]
            if len(rows) == 1 and uses.depth > 1 and uses.key[0] == "stage" and barrier in self._has_filled:
                uses.waits.remove(wait)
                self._all.tails.append((barrier, wait))


class _Gatherer:
    def __init__(self, trace: Trace) -> None:
        self.rings = Rings.of(trace)
        self.instances: Mapping[int, Instance] = {item.number: item for item in trace.kernel.instances}
        self.uses: dict[Key, Uses] = {}
        self.tails: list[tuple[int, Waiting]] = []
        self._barriers: Mapping[int, Barrier] = {item.number: item for item in trace.kernel.barriers}
        self._found: dict[tuple[int, str, int], Uses | None] = {}
        self._stages: dict[tuple[int, int], int] = {}

    def stage(self, instance: Instance, payload: int) -> int:
        """The ring index that a record names."""
        asked = (instance.number, payload)
        stage = self._stages.get(asked)
        if stage is None:
            stage = self._stages[asked] = self.rings.stage(instance, payload)
        return stage

    def find(self, instance: Instance, side: str, payload: int) -> Uses | None:
        """The barrier that a record is about; None where its records cannot say, or nobody of this CTA arrives on it."""
        asked = (instance.number, side, payload)
        if asked not in self._found:
            self._found[asked] = self._make(instance, side, payload)
        return self._found[asked]

    def _make(self, instance: Instance, side: str, payload: int) -> Uses | None:
        barrier = self._barriers.get(instance.barrier)
        depth = (barrier.stages if barrier else 0) or self.rings.depth(instance.barrier, side)
        key = self._key(instance, side, payload)
        if key is None:
            return None
        is_declared = bool(barrier and barrier.is_inferred) or key[3] < 0
        is_inferred = key[0] == "declared" or (key[0] == "stage" and is_declared)
        uses = self.uses.setdefault(key, Uses(key, side, is_inferred, depth))
        uses.barriers.add(instance.barrier)
        return uses

    def _key(self, instance: Instance, side: str, payload: int) -> Key | None:
        if side in MEETINGS:
            # `__syncthreads()` is the hardware's barrier 0; the others name theirs.
            number = payload if instance.payload is Payload.BARRIER_ID else instance.stage
            number = 0 if side == "cta" else number
            return ("id", number, "", 0) if number >= 0 else ("declared", instance.barrier, side, 0)
        if side == "cluster":
            return ("id", -1, side, 0)
        if side not in _PHASES:
            return None
        if instance.payload is Payload.ADDRESS and 0 < payload < STAGE_BIT:
            return ("address", payload, side, 0)
        return ("stage", instance.barrier, side, self.rings.stage(instance, payload)) if instance.barrier else None


def gather(trace: Trace, late: int) -> Gathered:
    """Every arrival and every wait of the trace, by barrier and stage, in the order of time.

    A signal's stamp follows it by up to `late` cycles, so it comes before an enter as much earlier, which precedes its arrival.
    """
    gatherer = _Gatherer(trace)
    for lane in trace.lanes:
        _Lane(gatherer, lane).read()
    uses = _joined(gatherer.uses)
    for found in uses.values():
        if not all(arrival.is_bare for arrival in found.arrivals):
            found.copies = [arrival for arrival in found.arrivals if arrival.is_bare]
            found.arrivals = [arrival for arrival in found.arrivals if not arrival.is_bare]
        found.arrivals.sort(key=lambda arrival: (arrival.by(late), arrival.ends[0].warp))
        found.waits.sort(key=lambda wait: (wait.exit.cycles, wait.exit.warp))
    return Gathered(uses, gatherer.tails)


def _merge(uses: Uses, rows: list[_Row]) -> None:
    """Add one lane's arrivals. What lands later belongs to the arrival before it that announced it, or else to the next."""
    if not any(announces for _, _, announces in rows):
        uses.arrivals += [Arrival([end], is_async=True, is_bare=True) for end, _, _ in rows]
        return
    early: list[End] = []
    last: Arrival | None = None
    is_first_early = not rows[0][2]
    for end, is_async, announces in rows:
        if announces:
            last = Arrival([*early, end], is_async or bool(early))
            early = []
            uses.arrivals.append(last)
        elif last is None or is_first_early:
            early.append(end)
        else:
            last.ends.append(end)
            last.is_async = True


def _joined(uses: dict[Key, Uses]) -> dict[Key, Uses]:
    """Uses of one address as one, whatever its records call the side, unless both sides of a ring are named by it."""
    by_address: dict[int, list[Key]] = {}
    for key in uses:
        if key[0] == "address":
            by_address.setdefault(key[1], []).append(key)
    for keys in by_address.values():
        if len(keys) == 2 and {key[2] for key in keys} != {"full", "empty"}:
            kept, other = (uses[key] for key in sorted(keys, key=lambda key: key[2] == "mbarrier"))
            kept.arrivals += other.arrivals
            kept.waits += other.waits
            kept.barriers |= other.barriers
            del uses[other.key]
    return uses
