# SPDX-License-Identifier: Apache-2.0
"""The instance table of one kernel, built while it is traced."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import Barrier, Instance, KernelTrace, Payload
from autostamp.model.options import RecordOptions
from autostamp.runtime.cutedsl.identity import Identity
from autostamp.runtime.layout import EVENT_MASK


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instance comes from: file key, site number, kind, role, and the call path that reached it."""

    file: str
    site: int
    kind: str
    role: str
    path: tuple[str, ...]


def _payload(identity: Identity) -> Payload:
    """What the records carry: nothing when the value is a constant, which the table holds."""
    is_dynamic = identity.value is not None and not isinstance(identity.value, int)
    return identity.payload if is_dynamic else Payload.NONE


def _constant_stage(identity: Identity) -> int:
    return identity.value if isinstance(identity.value, int) else -1


@dataclass
class TraceBuilder:
    """Collects barriers and instances in trace order; `finish` freezes them into a KernelTrace."""

    kernel: str
    file: str
    symbol: str
    options: RecordOptions
    region: int
    instances: list[Instance] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    events: int = 0
    muted: int = 0
    _numbers: dict[object, int] = field(default_factory=dict)
    _sides: dict[object, str] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)

    def barrier(self, identity: Identity, label: str) -> int:
        """Number of the barrier that `identity` names, registering it under `label` when it is new."""
        number = next((self._numbers[key] for key in identity.keys if key in self._numbers), 0)
        if not number:
            number = len(self.barriers) + 1
            self.barriers.append(Barrier(number, label, identity.type, identity.stages, identity.is_inferred))
        elif identity.stages and not self.barriers[number - 1].stages:
            # A bare MbarrierArray seen before the pipeline that owns it: the pipeline knows more.
            known = self.barriers[number - 1]
            self.barriers[number - 1] = replace(known, type=identity.type, stages=identity.stages)
        for key in identity.keys:
            self._numbers[key] = number
        self._sides.update(identity.sides)
        # Keys are object ids: keep the object alive so that an id cannot be used again within this trace.
        self._kept.append(identity.owner)
        return number

    def event(self) -> int:
        """A new event number. Raises AS4004 when the event word has no room for it."""
        self.events += 1
        if self.events > EVENT_MASK:
            raise AutostampError.of("AS4004", count=self.events, limit=EVENT_MASK)
        return self.events

    def add(self, origin: Origin, barrier: int, identity: Identity) -> int:
        """Register an instance without stamps and return its number; `put` sets the event numbers as they are emitted."""
        instance = Instance(
            number=len(self.instances) + 1,
            file=origin.file,
            site=origin.site,
            role=origin.role,
            call_path=origin.path,
            kind=origin.kind,
            side=self._side(identity),
            barrier=barrier,
            payload=_payload(identity),
            stage=_constant_stage(identity),
        )
        self.instances.append(instance)
        return instance.number

    def update(self, number: int, barrier: int, identity: Identity) -> None:
        """Give an instance the barrier and stage that were learnt after its first stamp."""
        self.put(
            number,
            barrier=barrier,
            side=self._side(identity),
            payload=_payload(identity),
            stage=_constant_stage(identity),
        )

    def _side(self, identity: Identity) -> str:
        """Side of a bare MbarrierArray that a pipeline is known to own; a pipeline's own methods name theirs."""
        return self._sides.get(identity.keys[0], "") if len(identity.keys) == 1 else ""

    def put(self, number: int, **events: Any) -> None:
        """Set fields of instance `number`."""
        self.instances[number - 1] = replace(self.instances[number - 1], **events)

    def signature(self) -> int:
        """Low 32 bits of a hash of the table, never 0: the same kernel traced again gives the same value."""
        return zlib.crc32(repr((self.instances, self.barriers)).encode()) or 1

    def finish(self, number: int) -> KernelTrace:
        """The frozen table."""
        return KernelTrace(
            number=number,
            kernel=self.kernel,
            file=self.file,
            capacity=self.options.capacity,
            block=self.options.first_block,
            region=self.region,
            signature=self.signature(),
            barriers=tuple(self.barriers),
            instances=tuple(self.instances),
            symbol=self.symbol,
            blocks="" if self.options.blocks is None else self.options.blocks.text,
        )
