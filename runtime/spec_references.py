# SPDX-License-Identifier: Apache-2.0
"""What a slot spec's entries refer to: rows, events and barriers, by index, number or name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autostamp.runtime.spec_schema import SlotSpec


class SpecFault(Exception):
    """What is wrong with a spec, and where: `place` is a JSON path. Its reader makes an AutostampError of it."""

    def __init__(self, place: str, detail: str) -> None:
        super().__init__(f"{detail} - at `{place}`")


@dataclass(frozen=True, slots=True)
class References:
    """The axes and barriers of a spec, by name. A lookup raises SpecFault at the place that it is given."""

    roles: tuple[str, ...]
    events: Mapping[str, int]
    event_count: int
    barriers: Mapping[str, Sequence[int]]
    depth: int

    @classmethod
    def of(cls, spec: SlotSpec) -> References:
        """Raises SpecFault where the axes are not as long as the shape says, or a name or a number stands twice."""
        for axis, (name, entries) in enumerate((("roles", spec.roles), ("events", spec.events))):
            if len(entries) != spec.shape[axis]:
                raise SpecFault(f"$.{name}", f"{len(entries)} entries, where shape[{axis}] is {spec.shape[axis]}")
        events = tuple(event.name for event in spec.events)
        _require_once(events, "$.events[{}].name")
        _require_once(warps_of(spec), "$.roles[{}].warp")
        _require_once([barrier.number for barrier in spec.barriers], "$.barriers[{}].number")
        barriers: dict[str, list[int]] = {}
        for barrier in spec.barriers:
            barriers.setdefault(barrier.label, []).append(barrier.number)
        return cls(
            tuple(row.name for row in spec.roles),
            {name: index for index, name in enumerate(events)},
            len(events),
            barriers,
            spec.shape[2],
        )

    def rows(self, reference: int | str, place: str) -> tuple[int, ...]:
        """The rows that an index or a name means."""
        if isinstance(reference, int):
            if reference >= len(self.roles):
                raise SpecFault(place, f"no row {reference}: the buffer has {len(self.roles)}")
            return (reference,)
        found = tuple(index for index, name in enumerate(self.roles) if name == reference)
        if not found:
            raise SpecFault(place, f"no role {reference!r}; there are {_listed(dict.fromkeys(self.roles))}")
        return found

    def event(self, reference: int | str, place: str) -> int:
        """The index on the event axis that an index or a name means."""
        if isinstance(reference, int):
            if reference >= self.event_count:
                raise SpecFault(place, f"no event {reference}: the buffer has {self.event_count}")
            return reference
        if reference not in self.events:
            raise SpecFault(place, f"no event {reference!r}; there are {_listed(self.events)}")
        return self.events[reference]

    def barrier(self, reference: int | str | None, place: str) -> int:
        """The barrier number that a number or a label means, 0 for none."""
        if reference is None:
            return 0
        if isinstance(reference, int):
            if not any(reference in numbers for numbers in self.barriers.values()):
                raise SpecFault(place, f"no barrier has number {reference}")
            return reference
        numbers = self.barriers.get(reference, ())
        if not numbers:
            raise SpecFault(place, f"no barrier {reference!r}; there are {_listed(self.barriers)}")
        if len(numbers) > 1:
            raise SpecFault(place, f"{len(numbers)} barriers are called {reference!r}: give the number")
        return numbers[0]

    def require_its(self, its: Sequence[int] | None, place: str) -> None:
        """Every iteration must have a slot."""
        for index, it in enumerate(its or ()):
            if it >= self.depth:
                raise SpecFault(f"{place}[{index}]", f"no iteration {it}: the buffer has {self.depth}")


def warps_of(spec: SlotSpec) -> tuple[int, ...]:
    """The warp of every row: as given, else the row's index."""
    return tuple(index if row.warp is None else row.warp for index, row in enumerate(spec.roles))


def _require_once(values: Sequence[object], place: str) -> None:
    seen = Counter[object]()
    for index, value in enumerate(values):
        if seen[value]:
            raise SpecFault(place.format(index), f"{value!r} stands there twice")
        seen[value] += 1


def _listed(names: Mapping[str, object], most: int = 12) -> str:
    shown = ", ".join(list(names)[:most])
    return f"{shown}, …" if len(names) > most else shown or "none"
