# SPDX-License-Identifier: Apache-2.0
"""Amounts with their unit, as a budget file writes them: "32 KB", "700 cycles", "390 ns"."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.machine import MachineTable
from autostamp.predict.machines import constant

_FORM: Final = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")

SCALES: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "B": {"B": 1, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20},
        "FLOP": {"FLOP": 1, "kFLOP": 1e3, "MFLOP": 1e6, "GFLOP": 1e9},
        "thread-instr": {"thread-instr": 1},
        "warp-instr": {"warp-instr": 1},
        "cycles": {"cycles": 1, "cycle": 1},
    }
)
"""By the unit that the model counts in: what may be written, and how much of it that is. KB is 1024 bytes, as in the tables."""

TIMES: Final[Mapping[str, float]] = MappingProxyType({"ns": 1e-9, "us": 1e-6})
"""Units of time in seconds: with the machine's `clock` they are cycles."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an amount stands: the file and its key."""

    path: str
    key: str


def amount(text: object, unit: str, at: Place, table: MachineTable, *, may_be_zero: bool = False) -> float:
    """The amount in `unit`. Raises AS7121 without a unit or with another kind, AS7106 for one that is not above zero."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None or not match[2]:
        raise AutostampError.of("AS7121", path=at.path, key=at.key, value=text, expected=_allowed(unit))
    factor = SCALES[unit].get(match[2]) if unit in SCALES else None
    if factor is None and unit == "cycles" and match[2] in TIMES:
        factor = TIMES[match[2]] * constant(table, "clock").value * 1e9
    if factor is None:
        raise AutostampError.of("AS7121", path=at.path, key=at.key, value=text, expected=_allowed(unit))
    value = float(match[1]) * factor
    if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_zero):
        limit = "must not be below zero" if may_be_zero else "must be above zero"
        raise AutostampError.of("AS7106", what=f"{at.path}, {at.key}", detail=f"{text} {limit}")
    return value


def _allowed(unit: str) -> str:
    names = [*SCALES.get(unit, {unit: 1}), *(TIMES if unit == "cycles" else ())]
    return " or ".join(f'"1 {name}"' for name in names)
