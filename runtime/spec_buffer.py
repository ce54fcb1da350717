# SPDX-License-Identifier: Apache-2.0
"""The buffer beside a slot spec: an .npz archive with one array of clocks, and what else autostamp knew when it wrote it.

Clocks are 0 where a slot was not used. Beside the slots stand, in archives that autostamp wrote, `payload` (uint16) and
`order` (int32) of the same shape, and per row `entry`, `exit` (clocks, 0: not recorded), `entry_ns`, `exit_ns`, `smid` and
`lost`; then `manifest_sha256` and `trace`, which say whose records these are.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.runtime.slots import UNUSED, Dense, from_slots
from autostamp.runtime.spec_schema import SlotSpec

MANIFEST: Final = "manifest_sha256"
TRACE: Final = "trace"
PAYLOAD: Final = "payload"
ORDER: Final = "order"
CLOCKS: Final[Mapping[str, str]] = {"entry": "entry_cycles", "exit": "exit_cycles"}
"""Arrays of clocks per row, and the fields of `Lane` that they become."""
COUNTS: Final[Mapping[str, str]] = {"entry_ns": "entry_ns", "exit_ns": "exit_ns", "smid": "smid", "lost": "lost"}
"""Arrays of other integers per row, and the fields of `Lane` that they become."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Buffer:
    """The slots on one axis of cycles (0 = earliest), and per row what `Lane` has beside events, by field."""

    view: Dense
    lanes: Mapping[str, NDArray[np.int64]]


def read_buffer(path: Path, spec: SlotSpec) -> Buffer:
    """Read the archive that `spec` belongs to; raises AS6001, AS6002, AS6011, AS6012 and AS6013 as `read_spec` says."""
    arrays = _load(path)
    _require_same(arrays, spec)
    slots = _slots(arrays, spec, path)
    rows = spec.shape[0]
    clocks = {name: arrays[name] for name in CLOCKS if name in arrays}
    for name, array in (*clocks.items(), *((name, arrays[name]) for name in COUNTS if name in arrays)):
        if array.shape != (rows,) or array.dtype.kind not in "iu":
            raise _unfit(path, f"{name!r} is {array.dtype}{list(array.shape)}, where the spec has {rows} rows")
    for name, array in clocks.items():
        if array.dtype != slots.dtype:
            raise _unfit(path, f"{name!r} is {array.dtype}, the slots are {slots.dtype}")
    flat = slots.reshape(-1)
    if not flat.any():
        raise AutostampError.of("AS6012", path=path, detail=f"all {flat.size:,} are 0")
    for name, array in ((spec.array, slots.reshape(spec.shape)), *clocks.items()):
        _require_positive(name, array, path)
    every = np.concatenate([flat, *clocks.values()])
    cycles = from_slots(every, (1, 1, every.size)).cycles.reshape(-1)
    lanes = {CLOCKS[name]: cycles[flat.size + rows * at :][:rows] for at, name in enumerate(clocks)}
    lanes |= {field: arrays[name].astype(np.int64) for name, field in COUNTS.items() if name in arrays}
    view = Dense(
        cycles[: flat.size].reshape(spec.shape),
        tuple(row.name for row in spec.roles),
        tuple(event.name for event in spec.events),
        _beside(arrays, PAYLOAD, spec, path, np.uint16),
        _beside(arrays, ORDER, spec, path, np.int32),
    )
    return Buffer(view, lanes)


def pack(arrays: Arrays) -> bytes:
    """The archive as bytes, without pickled objects."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **dict(arrays))  # type: ignore[arg-type]  # the stub takes the names for options
    return packed.getvalue()


def arrays_of(view: Dense, lanes: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[Any]]:
    """The arrays of an archive. One cycle later throughout, so that no clock is 0; `lanes` as `Buffer` has them."""
    found: dict[str, NDArray[Any]] = {"slots": view.cycles - UNUSED}
    if view.payloads is not None and view.payloads.any():
        found[PAYLOAD] = view.payloads
    if view.order is not None:
        found[ORDER] = view.order
    found |= {name: lanes[field] - UNUSED for name, field in CLOCKS.items()}
    return found | {name: lanes[field] for name, field in COUNTS.items()}


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # From memory: np.load leaves a file open when it turns out not to be an archive.
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise AutostampError.of("AS9002", path=path) from error
    except OSError as error:
        raise AutostampError.of("AS6001", path=path, detail=error.strerror or str(error)) from error
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"slots": loaded}  # a bare .npy: one array without a name
        with loaded as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # damaged bytes surface as whatever zipfile, zlib, tokenize or numpy raise on them
        raise AutostampError.of("AS6001", path=path, detail=str(error)) from error


def _require_same(arrays: Arrays, spec: SlotSpec) -> None:
    """The manifest and the kernel trace must be the spec's where both say which they belong to."""
    if MANIFEST in arrays and spec.manifest is not None:
        found = arrays[MANIFEST].tobytes().decode("ascii", "replace")
        if found != spec.manifest:
            detail = f"the buffer was made under manifest {found[:12]}, the spec under {spec.manifest[:12]}"
            raise AutostampError.of("AS6002", detail=detail)
    if TRACE in arrays and spec.trace is not None and arrays[TRACE].size == 1:
        number = int(arrays[TRACE].reshape(-1)[0])
        if number != spec.trace:
            detail = f"the buffer is of kernel trace {number}, the spec of kernel trace {spec.trace}"
            raise AutostampError.of("AS6002", detail=detail)


def _slots(arrays: Arrays, spec: SlotSpec, path: Path) -> NDArray[Any]:
    if spec.array not in arrays:
        there = ", ".join(sorted(arrays)) or "nothing"
        raise _unfit(path, f"it holds no array {spec.array!r} ($.array of the spec); it has {there}")
    slots = arrays[spec.array]
    if slots.dtype.kind not in "iu" or slots.dtype.itemsize not in (4, 8):
        raise _unfit(path, f"{spec.array!r} is {slots.dtype}, where clocks are 32- or 64-bit integers")
    size = int(np.prod(spec.shape))
    if slots.shape not in (spec.shape, (size,)):
        detail = f"{spec.array!r} has shape {list(slots.shape)}, $.shape of the spec is {list(spec.shape)}"
        raise _unfit(path, f"{detail} (or {size:,} slots in a row)")
    return np.ascontiguousarray(slots)


def _beside(arrays: Arrays, name: str, spec: SlotSpec, path: Path, kind: type[Any]) -> NDArray[Any] | None:
    if name not in arrays:
        return None
    array = arrays[name]
    if array.shape != spec.shape or array.dtype != kind:
        detail = f"{name!r} is {array.dtype}{list(array.shape)}, where {np.dtype(kind)}{list(spec.shape)} is expected"
        raise _unfit(path, detail)
    return array


def _require_positive(name: str, array: NDArray[Any], path: Path) -> None:
    """64-bit clocks are never negative; 32-bit ones are %clock, whose upper half an int32 shows as negative."""
    negative = np.argwhere(array < 0) if array.dtype == np.int64 else np.zeros((0, 0), np.int64)
    if len(negative):
        place = f"{name}{negative[0].tolist()}"
        detail = f"its clock is negative ({array[tuple(negative[0])]})"
        raise AutostampError.of("AS6013", path=path, place=place, detail=detail)


def _unfit(path: Path, detail: str) -> AutostampError:
    return AutostampError.of("AS6011", path=path, detail=detail)
