# SPDX-License-Identifier: Apache-2.0
"""What a GPU product can do: rates per SM cycle, latencies and sizes, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ConstantKind(StrEnum):
    """How a constant came to be known."""

    DATASHEET = "datasheet"
    """The vendor says so: a data sheet, a guide, a paper of the vendor's."""
    MEASURED = "measured"
    """Somebody measured it on this product; `source` says who."""
    DERIVED = "derived"
    """Worked out from another figure; `condition` says how."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One figure. `unit` is for example "FLOP/clk/SM", "B/clk/SM", "thread-instr/clk/SM", "cycles", "ns", "GHz", "SMs", "bytes".

    A FLOP/clk rate counts a multiply-add as 2, a thread-instr/clk rate counts one lane. `condition`: what it holds for, and
    what is doubtful about it.
    """

    value: float
    unit: str
    condition: str
    source: str
    kind: ConstantKind


@dataclass(frozen=True, slots=True)
class MachineTable:
    """All that is known of one product. A constant that is unknown is absent, and is never copied from another product."""

    product: str
    title: str
    arch: str
    constants: Mapping[str, Constant]
