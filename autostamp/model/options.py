# SPDX-License-Identifier: Apache-2.0
"""Choices of the user that more than one stage reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from autostamp.model.placement import Form
from autostamp.model.sync import SyncOp

Block = tuple[int, int, int]
"""The index of a CTA in its grid: x, y, z."""

_RANGE: Final = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Several CTAs of a launch: those `listed`, else `count` of them from linear index `first` on.

    The linear index of a CTA is x + grid.x * (y + grid.y * z). With `is_all` every CTA is meant, and `count` (0 until it is
    known) is how many there is memory for.
    """

    first: int = 0
    count: int = 0
    listed: tuple[Block, ...] = ()
    is_all: bool = False

    @property
    def text(self) -> str:
        """As a reader writes it: `all`, `0..7` or `0,0,0;5,0,0`."""
        return "all" if self.is_all else self.ordered

    @property
    def ordered(self) -> str:
        """The same with `all` as the range that it comes to: what a recorder reads."""
        if self.listed:
            return ";".join(",".join(str(part) for part in block) for block in self.listed)
        return f"{self.first}..{self.first + self.count - 1}"

    def block(self, cta: int, grid: Block) -> Block | None:
        """The block index of the chosen CTA number `cta`, from 0; None outside the grid or where the grid is unknown (0)."""
        x, y, z = grid
        if self.listed:
            chosen = self.listed[cta]
            is_inside = all(at < size for at, size in zip(chosen, grid, strict=True))
            return chosen if is_inside or not all(grid) else None
        linear = self.first + cta
        if not linear < x * y * z:
            return None
        return linear % x, linear // x % y, linear // (x * y)

    def inside(self, grid: Block) -> int:
        """How many of the chosen CTAs a grid has; with `is_all`, of those that there is memory for."""
        return sum(self.block(cta, grid) is not None for cta in range(self.count))


def parse_blocks(text: str) -> Block | Blocks:
    """One CTA `x`, `x,y` or `x,y,z`; a range of linear indices `0..7`; a list `0,0,0;5,0,0`; or `all`.

    Raises ValueError for anything else, for a range that runs backwards, and for a CTA that is listed twice.
    """
    text = text.strip()
    if text == "all":
        return Blocks(is_all=True)
    match = _RANGE.fullmatch(text)
    if match is not None:
        first, last = int(match[1]), int(match[2])
        if last < first:
            message = f"{text!r} runs backwards"
            raise ValueError(message)
        return Blocks(first, last - first + 1)
    if ";" not in text:
        return _block(text)
    listed = tuple(_block(part) for part in text.split(";") if part.strip())
    if len(set(listed)) < len(listed) or not listed:
        message = f"{text!r} names a block twice" if listed else f"{text!r} names no block"
        raise ValueError(message)
    return Blocks(count=len(listed), listed=listed)


def _block(text: str) -> Block:
    parts = text.strip().strip("()").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        message = f"{text!r} is not a block index such as 0,0,0, a range 0..7, a list 0,0,0;5,0,0, or all"
        raise ValueError(message)
    x, y, z = [int(part) for part in parts] + [0] * (3 - len(parts))
    return x, y, z


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What to record: records per warp, which CTA, and whether stamps carry the stage at run time.

    `blocks` are several CTAs, which then count instead of the one `block`. Of each kernel the last `repeat` launches are kept.
    """

    capacity: int = 4096
    block: Block = (0, 0, 0)
    with_payload: bool = True
    blocks: Blocks | None = None
    repeat: int = 1

    @property
    def ctas(self) -> int:
        """How many CTAs of a launch may record."""
        return 1 if self.blocks is None else self.blocks.count

    @property
    def first_block(self) -> Block:
        """The CTA that records, or the first that is listed; (0, 0, 0) where a range is meant: its blocks depend on the grid."""
        if self.blocks is None:
            return self.block
        return self.blocks.listed[0] if self.blocks.listed else (0, 0, 0)

    @property
    def is_plain(self) -> bool:
        """One CTA of one launch."""
        return self.blocks is None and self.repeat == 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Which sites to stamp. A term is `kind=wait`, `role=load`, `barrier=pipeline_k`, `file=*fwd*`, `method=...`; globs allowed.

    With `only`, a site must match one of its terms; `skip` then removes matches. Several conditions in one term are joined
    by a comma and must all hold.

    Where `placed` is given, exactly the sites of these keys (`site_key`) are stamped, each in its form, and of the files only
    those in `files` (manifest keys; empty: all). `only` and `skip` do not count then. `toolchain` is that of the placement.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    placed: tuple[tuple[str, Form], ...] | None = None
    files: tuple[str, ...] = ()
    toolchain: str = ""

    def form(self, key: str) -> Form:
        """The form of the site with that key: BOTH unless it was placed in another."""
        return dict(self.placed or ()).get(key, Form.BOTH)


@dataclass(frozen=True, slots=True)
class InstrumentOptions:
    """Options of one instrumentation: selection and catalogue rows added by the user's pyproject."""

    selection: Selection = field(default_factory=Selection)
    extra_ops: tuple[SyncOp, ...] = ()
