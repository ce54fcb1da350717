# SPDX-License-Identifier: Apache-2.0
"""The slot spec as types: what maps the slots of a fixed-slot buffer to spans, markers and arrows (docs/formats/spec.md).

Every name is checked by reading: msgspec refuses an unknown key and says where it stands.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from autostamp.model.manifest import Payload
from autostamp.model.run import MachineFacts
from autostamp.model.sync import Side

SPEC_VERSION: Final = 1

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
RoleRef: TypeAlias = Annotated[int, Meta(ge=0)] | Name
"""A row of the role axis by its index, or all rows of a name."""
EventRef: TypeAlias = Annotated[int, Meta(ge=0)] | Name
"""An event by its index on the event axis, or by its name."""


class _Strict(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Row(_Strict, frozen=True):
    """One row of the role axis: the role's name, and which warp of the CTA it is (None: the row's index)."""

    name: Name
    warp: Count | None = None


class SpecEvent(_Strict, frozen=True):
    """One event of the event axis."""

    name: Name


class SpecBarrier(_Strict, frozen=True):
    """A barrier: `number` is unique, `label` is what a reader sees. `stages` is the ring's depth, 0 when it is unknown."""

    number: Annotated[int, Meta(ge=1)]
    label: Name
    type: str = ""
    stages: Count = 0
    is_inferred: bool = False


class Clock(_Strict, frozen=True):
    """What the buffer's values count: SM cycles, or nanoseconds in steps of `step`. `mhz` is the SM's clock, None: unknown."""

    unit: Literal["cycles", "ns"] = "cycles"
    mhz: Annotated[float, Meta(gt=0)] | None = None
    step: Annotated[int, Meta(ge=1)] = 1


class _Op(_Strict, frozen=True, kw_only=True):
    """Fields of a sync op, shared by stall spans and markers."""

    barrier: int | Name | None = None
    side: Side = Side.NONE
    signals: tuple[Side, ...] = ()
    is_async: bool = False
    is_noop: bool = False
    payload: Payload = Payload.NONE
    stage: Annotated[int, Meta(ge=-1)] = -1
    file: str = ""
    line: Count = 0
    column: Count = 0
    text: str = ""
    method: str = ""
    call_path: tuple[str, ...] = ()
    instance: Annotated[int, Meta(ge=1)] | None = None


class SpecSpan(_Op, frozen=True, kw_only=True):
    """Spans of one row: each from slot (start_evt, it) to slot (end_evt, it + offset), for every `it` or only those of `its`.

    A stall is one wait. An active span with a barrier is a hold, from that barrier's wait to the marker that ends the use;
    which use it was is read from the records. Without a barrier it is a work region, drawn as it is written.
    """

    role: RoleRef
    name: Name
    state: Literal["active", "stall"]
    start_evt: EventRef
    end_evt: EventRef
    offset: int = 0
    its: tuple[Count, ...] | None = None


class SpecMarker(_Op, frozen=True, kw_only=True):
    """Records of one event of one row that are a signal: an arrival on a barrier, or with no barrier an instant."""

    role: RoleRef
    evt: EventRef
    name: Name


class SpecArrow(_Strict, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """Arrivals to the ends of waits: from slot (from, it) to slot (to, it + offset), for every `it` of the waiter or `its`."""

    source: tuple[RoleRef, EventRef]
    target: tuple[RoleRef, EventRef]
    barrier: int | Name
    side: Side = Side.NONE
    offset: int = 0
    its: tuple[Count, ...] | None = None
    is_inferred: bool = False
    is_async: bool = False


class SlotSpec(_Strict, frozen=True, kw_only=True):
    """One kernel's CTA in a fixed-slot buffer of `shape` (N_ROLE, N_EVT, MAX_IT)."""

    version: int
    shape: tuple[Count, Count, Count]
    roles: tuple[Row, ...]
    events: tuple[SpecEvent, ...]
    spans: tuple[SpecSpan, ...]
    markers: tuple[SpecMarker, ...] = ()
    arrows: tuple[SpecArrow, ...] = ()
    barriers: tuple[SpecBarrier, ...] = ()
    clock: Clock = field(default_factory=Clock)
    array: Name = "slots"
    kernel: Name = "kernel"
    block: tuple[Count, Count, Count] = (0, 0, 0)
    tool: str = ""
    manifest: str | None = None
    trace: Count | None = None
    machine: MachineFacts | None = None
    notes: tuple[str, ...] = ()


def schema() -> dict[str, Any]:
    """The spec as a JSON Schema (draft 2020-12), which `autostamp/report/assets/spec.schema.json` is a copy of."""
    found = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(SlotSpec)))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "autostamp slot spec", **found}
