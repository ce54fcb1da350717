# SPDX-License-Identifier: Apache-2.0
"""Which sites a whole warp executes, as far as the source proves it, or lane 0 alone: their stamps need not ask who is there.

Instructions with `.aligned` (bar.sync, wgmma, tcgen05.wait, cluster barriers) must be executed by all threads of a warp (PTX
ISA, the paragraphs on `.aligned` of each), and so must `__syncwarp()` with its full mask. Whatever stands in the same list of
statements, or in one around it, is therefore executed by whole warps too, up to a place where threads may leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autostamp.model.sync import Side
from autostamp.passes.cuda.functions import Function
from autostamp.passes.cuda.lambdas import Item
from autostamp.passes.cuda.nodes import LOOPS, Chain, chain_to, is_constexpr_if

_ALIGNED_SIDES = frozenset({Side.CTA, Side.NAMED, Side.WARP, Side.CLUSTER})
_ALIGNED_GROUPS = frozenset({"wgmma", "tcgen05"})
_ALIGNED_NAMES = ("wgmma", "warpgroup_")
_CONDITIONAL = LOOPS | {
    "if_statement", "switch_statement", "case_statement", "conditional_expression", "lambda_expression",
}  # fmt: skip
_LEAVES = re.compile(rb"\b(?:return|break|continue|goto)\b")
_LANE_ZERO = re.compile(
    r"(?:lane|lane_?id|lane_?idx|lane_?index|get_lane_?id\(\))\s*==\s*0\Z|!\s*lane_?(?:id|idx)?\Z", re.IGNORECASE
)
_ZERO = re.compile(r"(?P<what>[\w.%&() ]+?)\s*==\s*0\Z|!\s*(?P<not>[\w.]+)\Z")
_WHOLE_WARPS = (
    r"threadIdx\.x(?:\s*(?:%\s*(?:32|64|96|128|256|384|512|1024|\w*(?:warp|WARP|Warp)\w*)"
    r"|&\s*(?:31|63|127|255|0x1[fF]|0x3[fF]|0x7[fF])))?"
)
_THREAD = re.compile(rf"\(?\s*(?:(?:int|unsigned|uint32_t)\s*\(\s*)?{_WHOLE_WARPS}\s*\)*")
"""The thread's number in its CTA, warpgroup or warp: 0 is lane 0, as long as CTAs have one dimension."""
_MASK = re.compile(r"^\s*(?:0xffffffff|0xFFFFFFFF|~0u?|-1|FULL_MASK)?\s*$")

Step = tuple[int, int]
"""A conditional node and the child of it that is entered, by node id."""


@dataclass(frozen=True, slots=True)
class _Aligned:
    steps: tuple[Step, ...]
    static_steps: frozenset[Step]
    start: int
    end: int


class WarpWide:
    """The sites of one function that whole warps execute."""

    def __init__(self, function: Function, items: Iterable[Item]) -> None:
        self._code = function.source.code
        self._text = self._code[slice(*function.body)].decode("utf-8", "replace")
        self._has_more_dimensions = re.search(rb"threadIdx\s*\.\s*[yz]", self._code) is not None
        self._aligned = [
            _Aligned(*_steps(chain_to(function.node, each.item.node)), each.item.start, each.item.end)
            for each in items
            if _is_aligned(each)
        ]

    def covers(self, chain: Chain, start: int, conditions: Sequence[str]) -> bool:
        """True when the source shows that the whole warp, or lane 0 alone, executes what ends `chain` and begins at `start`."""
        if any(self._is_lane_zero(part.strip()) for text in conditions for part in text.split("&&")):
            return True
        steps, static = _steps(chain)
        return any(
            found.steps[: len(steps)] == steps
            and found.static_steps <= static
            and (found.start >= start or not _LEAVES.search(self._code, found.end, start))
            for found in self._aligned
            if found.end <= start or found.start >= start
        )

    def _is_lane_zero(self, condition: str) -> bool:
        """True for a condition that holds for a lane 0 alone. Code that reads threadIdx.y may number its threads otherwise."""
        if _LANE_ZERO.search(condition.strip(" ()")):
            return True
        found = _ZERO.fullmatch(condition)
        if found is None or self._has_more_dimensions:
            return False
        what = (found["what"] or found["not"]).strip()
        if _THREAD.fullmatch(what):
            return True
        if not what.isidentifier():
            return False
        given = re.findall(rf"(?<![\w.]){re.escape(what)}\s*=(?!=)\s*([^;,]+)", self._text)
        return bool(given) and all(_THREAD.fullmatch(value.strip()) for value in given)


def _is_aligned(each: Item) -> bool:
    op = each.recognised.op
    if op.side is Side.WARP:
        arguments = getattr(each.item, "arguments", ())
        return all(_MASK.match(argument) for argument in arguments)
    if op.method.startswith(_ALIGNED_NAMES):
        return True
    return op.side in _ALIGNED_SIDES or op.group in _ALIGNED_GROUPS or each.recognised.group in _ALIGNED_GROUPS


def _steps(chain: Chain) -> tuple[tuple[Step, ...], frozenset[Step]]:
    """The conditions on the way to the last node: those decided at run time in order, and those that must be the same ones."""
    run_time: list[Step] = []
    static: set[Step] = set()
    for node, child in pairwise(chain):
        if node.type not in _CONDITIONAL:
            continue
        if node.type == "if_statement" and child == node.child_by_field_name("condition"):
            continue
        step = (node.id, child.id)
        # A lambda runs where it is called: it says nothing about what is outside of it, nor the other way round.
        if is_constexpr_if(node) or node.type == "lambda_expression":
            static.add(step)
        if not is_constexpr_if(node):
            run_time.append(step)
    return tuple(run_time), frozenset(static)
