# SPDX-License-Identifier: Apache-2.0
"""Placements as JSON files: written whole or not at all, read strictly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.options import Selection
from autostamp.model.placement import PLACEMENT_SCHEMA, Placement
from autostamp.runtime.versioned_json import VersionedJson

PLACEMENT_FILE: Final = "placement.json"


def encode(placement: Placement) -> bytes:
    """Indented JSON, fields in the order of the types, with a newline at the end."""
    return _FILE.encode(placement)


def decode(data: bytes, path: str = PLACEMENT_FILE) -> Placement:
    """Parse a placement; nothing is coerced. Raises AS8101, naming `path`, for anything but one of this version."""
    return _FILE.decode(data, path)


def read_placement(path: Path) -> Placement:
    """Read a placement file; raises AS8101 when it cannot be read or is not one."""
    return _FILE.read(path)


def write_placement(path: Path, placement: Placement) -> None:
    """Write a placement file whole or not at all; raises AS7001."""
    from autostamp.runtime.manifest_file import write_whole

    write_whole(path, encode(placement))


def selection_of(placement: Placement, number: int, path: str = PLACEMENT_FILE) -> Selection:
    """The sites of one replay set, to be stamped and no others. Raises AS8102 where the placement has no set of that number."""
    found = next((each for each in placement.sets if each.number == number), None)
    if found is None:
        numbers = ", ".join(str(each.number) for each in placement.sets) or "none"
        raise AutostampError.of("AS8102", path=path, number=number, numbers=numbers)
    return Selection(placed=found.sites, files=placement.files, toolchain=placement.toolchain)


def _faults(found: Placement) -> Iterable[str]:
    """What the types alone do not say."""
    if [each.number for each in found.sets] != list(range(1, len(found.sets) + 1)):
        yield "the sets are not numbered from 1"
    for each in found.sets:
        keys = [key for key, _ in each.sites]
        if len(set(keys)) < len(keys):
            yield f"set {each.number} names a site twice"
        if not set(each.anchors) <= set(keys):
            yield f"an anchor of set {each.number} is not among its sites"


_FILE: Final = VersionedJson(Placement, PLACEMENT_SCHEMA, "AS8101", _faults)
