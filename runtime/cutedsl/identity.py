# SPDX-License-Identifier: Apache-2.0
"""Which barrier, and which stage of it, a sync call means: read from the objects that the call was given.

CuTe-DSL traces by running Python, and pipeline objects keep their identity through the whole trace (dynamic branches, loops
and helpers included), so the object itself is the key. Everything here is duck-typed on the public classes of
`cutlass.pipeline` and their participants, whose fields are name-mangled.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import FrameType
from typing import Any

from autostamp.model.manifest import Payload

_PARTICIPANTS = (
    ("_PipelineProducer__pipeline", "_PipelineProducer__state"),
    ("_PipelineConsumer__pipeline", "_PipelineConsumer__state"),
    ("_ImmutableResourceHandle__origin", "_ImmutableResourceHandle__immutable_state"),
)
_LIBRARY = ("cutlass.", "autostamp.runtime.", "autostamp.hooks.")


@dataclass(frozen=True, slots=True)
class Operand:
    """What a stamp was told about its call: receiver, and whichever of state, index, pointer, barrier id it was given."""

    receiver: Any = None
    state: Any = None
    index: Any = None
    pointer: Any = None
    barrier_id: Any = None
    text: str = ""

    def over(self, earlier: Operand) -> Operand:
        """This operand with what only `earlier` knew filled in."""
        # Only identity is tested: comparing a traced value would emit an instruction.
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        empty = {name for name, value in own.items() if value is None or (isinstance(value, str) and not value)}
        return Operand(**{name: getattr(earlier, name) if name in empty else value for name, value in own.items()})


@dataclass(frozen=True, slots=True)
class Identity:
    """`keys` name the barrier (any one of them matching means the same barrier); `sides` says which keys are full and empty.

    `payload` says what `value` (None, int, or a dynamic Int32) holds; `owner` is the object whose id is a key.
    """

    keys: tuple[object, ...]
    type: str
    stages: int
    is_inferred: bool
    payload: Payload = Payload.NONE
    value: Any = None
    owner: Any = None
    sides: tuple[tuple[object, str], ...] = ()

    @property
    def is_anonymous(self) -> bool:
        """True when nothing but the source text (maybe none) names the barrier."""
        return isinstance(self.keys[0], tuple) and self.keys[0][0] == "text"


def public_type(obj: Any) -> str:
    """Name of the first class in the object's MRO that belongs to `cutlass`, else of its own class."""
    for cls in type(obj).__mro__:
        if cls.__module__.startswith("cutlass."):
            return cls.__name__
    return type(obj).__name__


def _unwrap(receiver: Any, state: Any) -> tuple[Any, Any]:
    """The pipeline behind a participant or handle, and the state that it carries."""
    for pipeline_field, state_field in _PARTICIPANTS:
        pipeline = getattr(receiver, pipeline_field, None)
        if pipeline is not None:
            return pipeline, state if state is not None else getattr(receiver, state_field, None)
    return receiver, state


def _constant(value: Any) -> Any:
    """A Python int where the value is one, the value itself otherwise."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _stage(state: Any, index: Any) -> tuple[Payload, Any]:
    value = index if index is not None else getattr(state, "index", None)
    value = getattr(value, "index", value)
    return (Payload.NONE, None) if value is None else (Payload.STAGE, _constant(value))


def _address(pointer: Any) -> Any:
    """Shared-memory address / 8 of an mbarrier pointer as a dynamic Int32, or None when it has no address."""
    to_int = getattr(pointer, "toint", None)
    return None if to_int is None else to_int() >> 3


def identify(operand: Operand) -> Identity:
    """Resolve the operand of one sync call. Never raises for a foreign object: identity then rests on the source text."""
    receiver, state = _unwrap(operand.receiver, operand.state)
    full, empty = getattr(receiver, "sync_object_full", None), getattr(receiver, "sync_object_empty", None)
    if full is not None or empty is not None:
        keys = tuple(id(obj) for obj in (full, empty, receiver) if obj is not None)
        payload, value = _stage(state, operand.index)
        stages = int(getattr(receiver, "num_stages", 0) or 0)
        sides = ((id(full), "full"), (id(empty), "empty"))
        return Identity(keys, public_type(receiver), stages, False, payload, value, receiver, sides)
    if operand.barrier_id is not None or hasattr(receiver, "barrier_id"):
        return _named(receiver, operand)
    if operand.pointer is not None:
        address = _address(operand.pointer)
        payload = Payload.NONE if address is None else Payload.ADDRESS
        return Identity((("pointer", operand.text),), "mbarrier", 0, True, payload, address, owner=operand.pointer)
    if hasattr(receiver, "num_stages") or hasattr(receiver, "mbarriers") or hasattr(receiver, "barrier_storage"):
        payload, value = _stage(state, operand.index)
        stages = int(getattr(receiver, "num_stages", 0) or 0)
        return Identity((id(receiver),), public_type(receiver), stages, False, payload, value, owner=receiver)
    # A class that nobody told us about: the object is the barrier, unless the source had to make it anew for every call.
    key: tuple[str, object] = ("text", operand.text) if operand.text or receiver is None else ("object", id(receiver))
    return Identity((key,), public_type(receiver) if receiver is not None else "", 0, True, owner=receiver)


def _named(receiver: Any, operand: Operand) -> Identity:
    number = _constant(operand.barrier_id if operand.barrier_id is not None else receiver.barrier_id)
    if isinstance(number, int) and isinstance(operand.index, int):
        number += operand.index
    elif operand.index is not None:
        number = number + operand.index
    kind = public_type(receiver) if hasattr(receiver, "barrier_id") else "NamedBarrier"
    if isinstance(number, int):
        return Identity((("named", number),), kind, 0, False, Payload.BARRIER_ID, number, owner=receiver)
    return Identity((("named", operand.text),), kind, 0, False, Payload.BARRIER_ID, number, owner=receiver)


def is_library(frame: FrameType) -> bool:
    """True for frames of the DSL itself and of autostamp."""
    return str(frame.f_globals.get("__name__", "")).startswith(_LIBRARY)


def name_in_frames(objects: tuple[Any, ...], innermost: FrameType | None, outermost: FrameType | None) -> str:
    """The name that the kernel itself (the outermost frame that has one) gives to any of `objects`, or ''."""
    found = ""
    frame = innermost
    while frame is not None:
        if not is_library(frame):
            for name, value in frame.f_locals.items():
                if any(value is obj for obj in objects if obj is not None) and not name.startswith("_"):
                    found = name
                    break
        if frame is outermost:
            break
        frame = frame.f_back
    return found
