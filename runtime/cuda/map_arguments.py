# SPDX-License-Identifier: Apache-2.0
"""A tensor map as an argument: what the driver demands of it, checked before the driver is asked.

Requirements are those of cuTensorMapEncodeTiled in the CUDA driver API (version 13.0) for maps that are not interleaved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.runtime.cuda import tensor_map
from autostamp.runtime.cuda.map_specs import MapOptions
from autostamp.runtime.cuda.tensor_map import FLOATING, TYPES, Tiled

MAX_RANK: Final = 5
MAX_BOX: Final = 256
MAX_STEP: Final = 8
MAX_EXTENT: Final = 1 << 32
STRIDE_LIMIT: Final = 1 << 40
GRANULE_BYTES: Final = 16
"""What strides, the rows of a box and the address of the array are multiples of."""

_SWIZZLE_SPANS: Final = {"32B": 32, "64B": 64, "128B": 128}
_TYPE_OF: Final = {"bool": "u8", "i8": "u8", "i16": "u16", "e4m3": "u8", "e5m2": "u8"}
"""Types that maps do not know, by that of the same bytes: what is copied are bytes."""


@dataclass(frozen=True, slots=True)
class MapArgument:
    """A map that stands `offset` bytes into its parameter, of the array that is the buffer with number `buffer`."""

    name: str
    offset: int
    buffer: int
    tiled: Tiled
    options: MapOptions

    def encoded(self, address: int) -> bytes:
        """The map of the array at `address`. Raises AS8010 for an address between granules, AS8011 when the driver refuses."""
        if address % GRANULE_BYTES:
            raise _refused(self, f"the array lies at 0x{address:x}, no multiple of {GRANULE_BYTES}")
        try:
            return tensor_map.encode(self.tiled, address)
        except (OSError, RuntimeError) as error:
            raise AutostampError.of("AS8011", self.options.where(), name=self.name, detail=str(error)) from error


def _refused(argument: MapArgument, detail: str, option: str = "") -> AutostampError:
    return AutostampError.of("AS8010", argument.options.where(option), name=argument.name, detail=detail)


def tiled_of(
    number: str, shape: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], options: MapOptions
) -> Tiled:
    """The map of an array of `number` elements; `box` and `steps` are those of the options, as numbers."""
    kind = options.type or _TYPE_OF.get(number, number)
    return Tiled(kind, shape, box, steps or (1,) * len(shape), options.swizzle, options.l2, options.fill)


def check(argument: MapArgument, number: str) -> None:
    """Raise AS8010, at the option that is to blame, for a map that the driver cannot make of an array of `number` elements."""
    for option, detail in _faults(argument.tiled, _TYPE_OF.get(number, number)):
        raise _refused(argument, detail, option)


def _faults(tiled: Tiled, array_type: str) -> Iterator[tuple[str, str]]:
    """(option, what is wrong), the first of which is told."""
    rank = len(tiled.shape)
    if TYPES[tiled.type][1] != TYPES[array_type][1]:
        yield (
            "type",
            f"{tiled.type} elements have {TYPES[tiled.type][1]} bytes, those of the array {TYPES[array_type][1]}",
        )
    if rank > MAX_RANK:
        yield "", f"the array has {rank} dimensions, a map at most {MAX_RANK}"
    for name, lengths, most in (("box", tiled.box, MAX_BOX), ("steps", tiled.steps, MAX_STEP)):
        if len(lengths) != rank:
            yield name, f"{name} has {len(lengths)} numbers, the array {rank} dimensions"
        for length in lengths:
            if not 1 <= length <= most:
                yield name, f"{name} holds {length}, which is not in 1 to {most}"
    yield from _array_faults(tiled)
    if tiled.steps[-1:] != (1,):
        yield "steps", "the driver ignores the step of the innermost dimension, the last one: it must be 1"
    row = tiled.box[-1] * tiled.element_bytes
    if row % GRANULE_BYTES:
        yield "box", f"a row of the box has {row} bytes, no multiple of {GRANULE_BYTES}"
    span = _SWIZZLE_SPANS.get(tiled.swizzle, row)
    if row > span:
        yield "swizzle", f"a row of the box has {row} bytes, with the swizzle of {tiled.swizzle} at most {span}"
    if tiled.fill == "nan" and tiled.type not in FLOATING:
        yield "fill", f"{tiled.type} has no NaN"


def _array_faults(tiled: Tiled) -> Iterator[tuple[str, str]]:
    for extent in tiled.extents:
        if extent > MAX_EXTENT:
            yield "", f"a dimension of the array has {extent} elements, at most 2^32"
    for stride in tiled.strides:
        if stride % GRANULE_BYTES:
            yield "", f"rows of the array lie {stride} bytes apart, no multiple of {GRANULE_BYTES}"
        if stride >= STRIDE_LIMIT:
            yield "", f"rows of the array lie {stride} bytes apart, which is not below 2^40"
