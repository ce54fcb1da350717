# SPDX-License-Identifier: Apache-2.0
"""Units, regions and drain files made by hand, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autostamp.model.manifest import MANIFEST_VERSION, Manifest, SourceFile, Unit, UnitFile
from autostamp.model.site import KernelDef, Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.runtime import layout

KEY = "00112233445566aa"
OTHER = "00112233445566bb"
SIGNATURE = 0xFFFFFFFF
"""The unit's: its second kernel, slot 1, has signature 0 and the third 1, modulo 2^32."""

DEVICE = {
    "device": 0,
    "name": "NVIDIA Test",
    "compute_capability": "9.0",
    "sm_count": 132,
    "driver": 13000,
    "runtime": 12090,
}


def site(number: int, method: str, kind: Kind, root: str = "", **more: Any) -> Site:
    """A site in a file made up of lines of ten bytes."""
    given = {
        "owner": "ptx",
        "side": Side.FULL,
        "stage_from": StageFrom.POINTER,
        "barrier": root.rpartition(":")[2],
        "role": "consumer",
        "payload": "address",
    }
    span = Span(10 * number, 10 * number + 5, number, 1)
    values = given | more
    return Site(
        number,
        span,
        f"{method}();",
        method,
        kind=kind,
        shape=Shape.STATEMENT,
        function="k",
        loop_depth=1,
        root=root,
        **values,
    )


def kernel(number: int, name: str, reaches: Sequence[tuple[str, int]]) -> KernelDef:
    """A kernel of a file."""
    return KernelDef(name, number, True, "", number, "symbol", "", tuple(reaches))


def unit_manifest(signature: int = SIGNATURE) -> Manifest:
    """Two files: KEY with three sites and two kernels, OTHER with one of each behind them.

    Events: KEY's site 1 enters as 1 and exits as 2, its site 2 signals as 3, its site 3 enters as 5 and exits as 6; OTHER's site
    1 enters as 7 and exits as 8.
    """
    first = SourceFile(
        KEY,
        "src/first.cuh",
        "",
        "0" * 64,
        (
            site(1, "mbarrier.try_wait", Kind.WAIT, "src/first.cuh:4:full"),
            site(2, "mbarrier.arrive", Kind.SIGNAL, "src/first.cuh:4:full", side=Side.FULL, payload="none"),
            site(3, "__syncthreads", Kind.WAIT, "CTA", owner="cuda", side=Side.CTA, role="", payload="none"),
        ),
        (),
        (kernel(1, "ns::first", [(KEY, 1), (KEY, 2)]), kernel(2, "second", [(KEY, 3), (OTHER, 1)])),
        "cuda",
    )
    other = SourceFile(
        OTHER,
        "src/other.cu",
        "",
        "1" * 64,
        (site(1, "bar.sync", Kind.WAIT, "3", side=Side.NAMED, payload="barrier-id", stage_from=StageFrom.BARRIER_ID),),
        (),
        (kernel(1, "third", [(OTHER, 1)]),),
        "cuda",
    )
    unit = Unit(signature, (UnitFile(KEY, 0, 0), UnitFile(OTHER, 6, 2)))
    return Manifest(MANIFEST_VERSION, "test", (first, other), unit=unit)


def region(
    signature: int,
    lanes: Mapping[int, Sequence[tuple[int, int]]],
    capacity: int = 16,
    *,
    released: bool = True,
    threads: int = 64,
    lost: int = 0,
) -> NDArray[np.uint8]:
    """A region in which each of `lanes` (0 to 63) holds records (clock, event word), bound at clock 1000.

    Lanes from 32 on are those of single threads: their header has no clocks.
    """
    data = np.zeros(layout.region_bytes(capacity), np.uint8)
    for lane, records in lanes.items():
        begin = lane * layout.lane_bytes(capacity)
        header = data[begin : begin + layout.HEADER_BYTES].view(layout.HEADER_DTYPE)
        rows = data[begin + layout.HEADER_BYTES : begin + layout.lane_bytes(capacity)].view(layout.RECORD_DTYPE)
        for row, record in zip(rows, records, strict=False):
            row["clock"], row["event"] = record
        header["remaining"] = (capacity - len(records) - lost) * layout.RECORD_BYTES
        header["state"] = layout.RELEASED if released else layout.ENTERED
        if lane < layout.WARPS:
            last = records[-1][0] if records else 1000
            header["entry_clock"], header["entry_ns"], header["smid"] = 1000, 50, 9
            if released:
                header["exit_clock"], header["exit_ns"] = last + 10, 50 + (last + 10 - 1000) // 2
                header["signature"] = signature
    set_words(data, capacity, layout.WARPS, 8, (4, 1, 1, threads, 1, 1))
    return data


def set_words(data: NDArray[np.uint8], capacity: int, lane: int, offset: int, words: Sequence[int]) -> None:
    """Write 32-bit words into a lane's header."""
    begin = lane * layout.lane_bytes(capacity) + offset
    data[begin : begin + 4 * len(words)].view("<u4")[:] = words


def entry(**more: Any) -> dict[str, Any]:
    """A region's entry in the head, without its place in the file."""
    given: dict[str, Any] = {
        "device": 0,
        "unit": SIGNATURE,
        "slot": 1,
        "carrier": "symbol",
        "place": "main.cu:7",
        "function": "int main()",
        "name": "",
        "stream": 0,
        "is_captured": False,
        "launch": 1,
        "sequence": 1,
        "capacity": 16,
    }
    return given | more


def write_drain(path: Path, regions: Sequence[tuple[dict[str, Any], NDArray[np.uint8]]], **more: Any) -> Path:
    """Write a drain file as docs/formats/drain.md says: regions at multiples of 4096."""
    offset, entries = 1 << 16, []
    for values, data in regions:
        entries.append({**values, "offset": offset, "size": data.nbytes})
        offset += -(-data.nbytes // 4096) * 4096
    head = {
        "version": 1,
        "pid": 77,
        "program": "/tmp/app",
        "drained": "exit",
        "keep": "last",
        "launch": 0,
        "block": [0, 0, 0],
        "units": [{"signature": SIGNATURE, "slots": 3, "launches": 1, "manifest": ""}],
        "devices": [DEVICE],
        "regions": entries,
        "dropped": [],
        "unused": 0,
        "errors": [],
        **more,
    }
    text = json.dumps(head).encode()
    whole = bytearray(f"autostamp drain 1 {len(text)}\n".encode() + text)
    for values, (_, data) in zip(entries, regions, strict=True):
        whole.extend(bytes(values["offset"] - len(whole)))
        whole.extend(data.tobytes())
    path.write_bytes(whole)
    return path


def with_reaches(manifest: Manifest, name: str, reaches: Sequence[tuple[str, int]]) -> Manifest:
    """The manifest with other sites in reach of a kernel."""
    files = tuple(
        replace(
            file,
            kernels=tuple(
                replace(each, reaches=tuple(reaches)) if each.name == name else each for each in file.kernels
            ),
        )
        for file in manifest.files
    )
    return replace(manifest, files=files)
