# SPDX-License-Identifier: Apache-2.0
"""How the verdict names barriers, waits, shares and lengths."""

from __future__ import annotations

import re
from collections.abc import Mapping

from autostamp.report.places import Place

_TWO_SIDED = ("full", "empty")
_LONGEST_NAME = 96


class Words:
    """Names from the manifest's `places` and `barriers`; `mhz` 0: the clock is unknown and no nanoseconds are given."""

    def __init__(self, places: Mapping[int, Place], barriers: Mapping[int, str], mhz: float) -> None:
        self._places = places
        self._barriers = barriers
        self._mhz = mhz

    def barrier(self, number: int, side: str) -> str:
        """`K empty`: the barrier, and its side where it has two, unless its name says it. Without a name the side."""
        name = self._barriers.get(number, "")
        if not name:
            return side or "an unnamed barrier"
        is_said = [word for word in re.findall("[a-z]+", name.lower()) if word in _TWO_SIDED] == [side]
        return f"{name} {side}" if side in _TWO_SIDED and not is_said else name

    def place(self, instance: int) -> Place:
        """Where an instance stands; a stand-in for one that the manifest does not hold."""
        return self._places.get(instance) or Place(instance, 0, "", 0, "", "", "", "", "", "")

    @staticmethod
    def wait(place: Place) -> str:
        """`K consumer_wait at ring.py:31`."""
        return f"{place.label()} at {place.where}" if place.file else place.label()

    def length(self, cycles: float) -> str:
        """`2,719 cycles (1,516 ns)`."""
        return f"{cycles:,.0f} cycles" + (f" ({cycles / self._mhz * 1000:,.0f} ns)" if self._mhz else "")

    def spread(self, low: float, high: float) -> str:
        """`2,700-2,740 cycles (1,505-1,528 ns)`."""
        ns = f" ({low / self._mhz * 1000:,.0f}-{high / self._mhz * 1000:,.0f} ns)" if self._mhz else ""
        return f"{low:,.0f}-{high:,.0f} cycles{ns}"


def kernel_name(name: str) -> str:
    """A kernel's name on a line of text: of a longer one the beginning, as an instance of CUTLASS's may have 2,000 characters.

    JSON and the manifest have all of it.
    """
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def percent(share: float) -> str:
    """A share from 0 to 1."""
    return f"{100 * share:.1f}%"


def count_of(number: int, noun: str) -> str:
    """`1 warp`, `2 warps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def warps_of(warps: tuple[int, ...]) -> str:
    """`4-11` for a run, `1,5,7` for others."""
    is_run = len(warps) > 1 and warps[-1] - warps[0] == len(warps) - 1
    return f"{warps[0]}-{warps[-1]}" if is_run else ",".join(map(str, warps))
