# SPDX-License-Identifier: Apache-2.0
"""A machine table for a reader and as an object that JSON can hold."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from autostamp.model.machine import MachineTable

HEADINGS: Final = ("constant", "value", "unit", "condition", "kind", "source")
GAP: Final = "  "
LEAST_TEXT: Final = 24
"""Columns of condition and of source, however narrow the page."""


def as_text(table: MachineTable, width: int = 120) -> str:
    """One row a constant, in the table's order; conditions and sources are wrapped so that rows fit `width` columns."""
    lines = [f"{table.product}: {table.title}, {table.arch}", ""]
    rows = [
        (name, f"{each.value:.10g}", each.unit, each.condition, str(each.kind), each.source)
        for name, each in table.constants.items()
    ]
    fixed = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    left = max(2 * LEAST_TEXT, width - sum(fixed[:3]) - fixed[4] - len(GAP) * (len(HEADINGS) - 1))
    fixed[3], fixed[5] = left - left // 2, left // 2
    for row in (HEADINGS, *rows):
        lines += _lines(row, fixed)
    return "\n".join(lines) + "\n"


def as_object(table: MachineTable) -> dict[str, Any]:
    """Product, title, arch, and every constant by its name."""
    constants = {name: {**asdict(each), "kind": str(each.kind)} for name, each in table.constants.items()}
    return {"product": table.product, "title": table.title, "arch": table.arch, "constants": constants}


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if number == 1 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for index in range(max(map(len, cells)))
        for line in ([cell[index] if index < len(cell) else "" for cell in cells],)
    ]
