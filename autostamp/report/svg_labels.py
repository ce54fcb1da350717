# SPDX-License-Identifier: Apache-2.0
"""What things in the picture are called: names, style classes and tooltips."""

from __future__ import annotations

from collections.abc import Mapping

from autostamp.model.timeline import Slice, State, WarpTimeline
from autostamp.report.places import Place
from autostamp.report.states import Mark, Piece, Tick
from autostamp.report.svg_layout import Shares, namer_of

_LISTED = 4
"""Barriers that one tooltip names."""


class Labels:
    """Names for the instances in `places`; `colors` numbers the barriers that have a colour, `mhz` 0: clock unknown."""

    def __init__(self, places: Mapping[int, Place], colors: Mapping[str, int], mhz: float) -> None:
        self._places = places
        self._colors = colors
        self._mhz = mhz
        self.barrier = namer_of(places)

    def rank(self, barrier: str) -> tuple[int, str]:
        """Order of barriers: as they are coloured, then those without a colour."""
        return self._colors.get(barrier, len(self._colors)), barrier

    def has_color(self, barrier: str) -> bool:
        """False for barriers that share the colour of the rest, and for those that no warp stalls on."""
        return barrier in self._colors

    def style_of(self, barrier: str, letter: str = "s") -> str:
        """Style class of stalls on a barrier (`s`), or of its signals (`t`)."""
        return f"{letter}{self._colors.get(barrier, 'x')}"

    @property
    def places(self) -> Mapping[int, Place]:
        """Places by instance."""
        return self._places

    def use(self, part: Slice) -> str:
        """`K[1]`: the barrier, and its stage where that is known."""
        name = self.barrier(part.instance)
        return f"{name}[{part.stage}]" if part.stage >= 0 else name

    def where(self, instance: int) -> str:
        """`name.py:854 consumer_wait`; the instance's number where the manifest does not know it."""
        place = self._places.get(instance)
        return f"{place.where} {place.method}".strip() if place else f"instance {instance}"

    def side(self, instance: int) -> str:
        """`K full`: the barrier and the side that the instance touches."""
        place = self._places.get(instance)
        return f" {place.side}" if place and place.barrier and place.side else ""

    def length(self, cycles: int) -> str:
        """Cycles, and nanoseconds where the clock is known."""
        return f"{cycles:,} cycles" + (f" ({cycles / self._mhz * 1000:,.0f} ns)" if self._mhz else "")

    def of_piece(self, piece: Piece, warp: int) -> str:
        """Tooltip of one piece: exact cycles of the whole slices, barrier, stage, visit, file and line."""
        if piece.state is State.STALL:
            part = piece.slices[0]
            return (
                f"stall {self.length(part.cycles)}\n{self.use(part)}{self.side(part.instance)}, visit {part.visit}\n"
                f"{self.where(part.instance)}\nwarp {warp}, cycles {part.start:,} to {part.end:,}{_origin(part)}"
            )
        if piece.state is State.PASS:
            part = piece.slices[0]
            return (
                f"pass {self.length(part.cycles)}: the barrier was complete already\n{self.use(part)}"
                f"{self.side(part.instance)}, visit {part.visit}\n{self.where(part.instance)}\nwarp {warp}, cycles"
                f" {part.start:,} to {part.end:,}{_origin(part)}"
            )
        held = "\n".join(
            f"holds {self.use(part)}, visit {part.visit}, {part.start:,} to {part.end:,}: {self.where(part.instance)}"
            for part in piece.slices
        )
        return f"active {self.length(piece.cycles)}\n{held}\nwarp {warp}, cycles {piece.start:,} to {piece.end:,}"

    def of_merged(self, mark: Mark, shares: Shares, warp: int) -> str:
        """Tooltip of several pieces drawn as one."""
        return (
            f"{len(mark.pieces)} spans merged\n{self._sums(shares)}\nwarp {warp}, cycles {mark.start:,} to {mark.end:,}"
        )

    def of_shares(self, role: str, shares: Shares) -> str:
        """Tooltip of a role's bar."""
        return f"{role}, {shares.span:,} warp-cycles\n{self._sums(shares)}"

    def of_tick(self, tick: Tick, warp: int) -> str:
        """Tooltip of one signal or several."""
        first, last = tick.signals[0], tick.signals[-1]
        if len(tick.signals) > 1:
            return f"{len(tick.signals)} signals of {tick.barrier}\nwarp {warp}, cycles {first.cycles:,} to {last.cycles:,}"
        stage = f"[{first.stage}]" if first.stage >= 0 else ""
        return (
            f"signals {tick.barrier}{stage}{self.side(first.instance)}, visit {first.visit}\n"
            f"{self.where(first.instance)}\nwarp {warp}, cycle {first.cycles:,}"
        )

    def of_lane(self, warp: WarpTimeline) -> str:
        """Tooltip of a warp's background."""
        passed = f"pass {warp.passed:,}, " if warp.passed else ""
        sums = f"stall {warp.stall:,}, {passed}active {warp.active:,}, untracked {warp.untracked:,}"
        return f"untracked\nwarp {warp.warp} ({warp.role}), cycles {warp.start:,} to {warp.end:,}: {sums}"

    def _sums(self, shares: Shares) -> str:
        named = sorted(shares.stalls.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{name} {cycles:,}" for name, cycles in named[:_LISTED])
        more = f", {len(named) - _LISTED} more" if len(named) > _LISTED else ""
        stalls = f" ({listed}{more})" if named else ""
        passed = f"pass {shares.passed:,}, " if shares.passed else ""
        return f"stall {shares.stall:,}{stalls}\n{passed}active {shares.active:,}, untracked {shares.untracked:,}"


def _origin(part: Slice) -> str:
    """Of a joined timeline: which replay recorded a wait's end, and what its place and length are right to."""
    if not part.replay:
        return ""
    place = f"place right to {part.error:,} cycles" if part.error else "the reference"
    return f"\nreplay {part.replay}, {place}" + (f", length to {part.length_error:,}" if part.length_error else "")
