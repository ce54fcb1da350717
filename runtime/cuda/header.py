# SPDX-License-Identifier: Apache-2.0
"""The files that a stamped CUDA C++ program includes, and the constants in them that come from the record layout."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from autostamp.runtime import layout

DEVICE_HEADER: Final = "autostamp.cuh"
PARTS: Final = ("autostamp_payload.cuh", "autostamp_lean.cuh")
"""Parts of the device header, which includes them."""

HOST_HEADER: Final = "autostamp_host.cuh"
SETTINGS_HEADER: Final = "autostamp_settings.cuh"
DRAIN_HEADER: Final = "autostamp_drain.cuh"
FORMS_HEADER: Final = "autostamp_forms.cuh"
UNIT_HEADER: Final = "autostamp_unit.cuh"
"""Generated with the stamped files; the others are the same for all of them."""

BEGIN: Final = "// layout: begin"
END: Final = "// layout: end"

MAIN_EXTRA: Final = {"binds": 40, "releases": 44, "overlap": 48}
"""Byte offsets, in the spare bytes of a warp's header, of what only CUDA C++ stamps write there. u32 each.

`binds` and `releases` count launches; `overlap` is 1 once a launch was released while another one had the lane bound.
"""

SINGLE_EXTRA: Final = {"name": 0, "grid": layout.GRID, "block": 20, "writers": 40}
"""The same for the header of a single-thread lane.

`name` (u64, device address of the kernel's name), `grid` and `block` (3 x u32 each, behind each other) are written for warp 0
only. `writers` (u32) has a bit for each thread of the warp that recorded in this lane.
"""

SLOTS_SYMBOL: Final = "autostamp_slots"
"""Name of the constant array of slots in a cubin that was compiled by itself, without -rdc or with AUTOSTAMP_EXPORT_SLOTS."""

_FOLDER: Final = Path(__file__).parent
_SLOT: Final = struct.Struct("<QIIII")


def folder() -> Path:
    """Where the header files lie, for a compiler's -I."""
    return _FOLDER


def header_files() -> dict[str, bytes]:
    """The header files that are the same for every unit, by name."""
    names = (DEVICE_HEADER, *PARTS, FORMS_HEADER, HOST_HEADER, SETTINGS_HEADER, DRAIN_HEADER)
    return {name: (_FOLDER / name).read_bytes() for name in names}


def slot_bytes(region: int, capacity: int, block: tuple[int, int, int]) -> bytes:
    """One element of the array of slots: the device address of a zeroed region (16-byte aligned), its capacity in records a
    lane, and the index of the CTA that records. All zero bytes record nothing.
    """
    return _SLOT.pack(region, capacity, *block)


def layout_section() -> str:
    """The constants of the record layout in C++, as they must stand in the device header between its two markers."""
    constants = {
        "warps": layout.WARPS,
        "lanes": layout.LANES,
        "header_bytes": layout.HEADER_BYTES,
        "record_bytes": layout.RECORD_BYTES,
        "entered": layout.ENTERED,
        "released": layout.RELEASED,
        **layout.OFFSET,
        **MAIN_EXTRA,
        **SINGLE_EXTRA,
    }
    lines = [f"constexpr unsigned {name} = {value};" for name, value in constants.items()]
    return "\n".join([BEGIN, "namespace layout {", *lines, "}  // namespace layout", END])


def with_layout(text: str) -> str:
    """The device header with its layout section replaced by the current one. Raises ValueError without the markers."""
    start, end = text.index(BEGIN), text.index(END) + len(END)
    return f"{text[:start]}{layout_section()}{text[end:]}"


if __name__ == "__main__":
    path = _FOLDER / DEVICE_HEADER
    path.write_text(with_layout(path.read_text()))
