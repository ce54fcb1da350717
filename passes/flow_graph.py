# SPDX-License-Identifier: Apache-2.0
"""The control flow of a SASS listing: basic blocks, their successors, and which block dominates which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode

_JUMPS: Final = ("BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU")
_INDIRECT: Final = ("BRX", "BRXU", "JMX", "JMXU")
_ENDS: Final = ("EXIT", "RET", "KILL")

ROOT: Final = -1
"""The dominator of the entry block and of every block that nothing is known to lead to."""


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Blocks of instructions by number, in address order.

    Block `b` holds the instructions `starts[b]` up to `starts[b + 1]` (the last entry ends the listing). Successors of a
    branch are its target and then the next block, so that the path without jumps comes last. `idom[b]` is the block's
    immediate dominator.
    """

    starts: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    idom: tuple[int, ...]

    def indices(self, block: int) -> range:
        """Indices of the block's instructions."""
        return range(self.starts[block], self.starts[block + 1])

    def dominates(self, first: int, second: int) -> bool:
        """True when every path to `second` passes `first` (a block dominates itself)."""
        while second not in (first, ROOT):
            second = self.idom[second]
        return second == first


def build(instructions: Sequence[Instruction]) -> FlowGraph:
    """The graph of one function.

    A call is taken to return. The targets of an indirect branch stand in data that the listing lacks: it is taken to reach
    every block that nothing else leads to.
    """
    at = {each.address: index for index, each in enumerate(instructions)}
    targets = [_target(each, at) for each in instructions]
    leaders = {0, *(each for each in targets if each is not None)}
    leaders |= {index + 1 for index, each in enumerate(instructions) if is_opcode(each.opcode, *_JUMPS, *_ENDS)}
    starts = (*sorted(leaders & set(range(len(instructions)))), len(instructions))
    number = {start: block for block, start in enumerate(starts[:-1])}
    successors = [_successors(instructions[end - 1], targets[end - 1], number.get(end), number) for end in starts[1:]]
    called = {number[each] for index, each in enumerate(targets) if each is not None and _is_call(instructions[index])}
    reached = {0} | {each for ends in successors for each in ends}
    orphans = tuple(block for block in number.values() if block not in reached | called)
    for block, end in enumerate(starts[1:]):
        if is_opcode(instructions[end - 1].opcode, *_INDIRECT):
            successors[block] = (*orphans, *successors[block])
    order, roots = _order(successors)
    return FlowGraph(starts, tuple(successors), _immediate_dominators(successors, order, roots))


def _is_call(instruction: Instruction) -> bool:
    return is_opcode(instruction.opcode, "CALL")


def is_conditional(branch: Instruction) -> bool:
    """True when a branch may fall through: it is guarded, or names a predicate or mask before its target."""
    return bool(branch.predicate) or len(branch.operands) > 1


def _target(instruction: Instruction, at: dict[int, int]) -> int | None:
    """Index of the instruction that a direct branch or call leads to."""
    if not is_opcode(instruction.opcode, "BRA", "JMP", "CALL") or not instruction.operands:
        return None
    try:
        return at.get(int(instruction.operands[-1], 16))
    except ValueError:
        return None


def _successors(
    last: Instruction, target: int | None, following: int | None, number: dict[int, int]
) -> tuple[int, ...]:
    falls = () if following is None else (following,)
    if is_opcode(last.opcode, *_ENDS):
        return falls if last.predicate else ()
    if is_opcode(last.opcode, *_INDIRECT):
        return falls if last.predicate else ()
    if is_opcode(last.opcode, "BRA", "JMP"):
        taken = () if target is None else (number[target],)
        return taken + falls if is_conditional(last) else taken
    return falls


def reverse_postorder(successors: Sequence[tuple[int, ...]], roots: Sequence[int]) -> list[int]:
    """Blocks reached from the roots, each before those it leads to (but for the edges that close loops).

    Where two ways are open, the last successor comes first: the code that follows without a jump.
    """
    seen, order = set(roots), list[int]()
    for root in reversed(roots):
        stack = [(root, iter(successors[root]))]
        while stack:
            block, ends = stack[-1]
            following = next((each for each in ends if each not in seen), None)
            if following is None:
                order.append(block)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(successors[following])))
    return order[::-1]


def _order(successors: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """All blocks in reverse postorder, and the roots that it starts from."""
    reached = {each for ends in successors for each in ends}
    roots = [0, *(block for block in range(1, len(successors)) if block not in reached)]
    order = reverse_postorder(successors, roots)
    # Blocks in cycles that nothing leads to (the jump to itself behind a kernel's end) are roots of their own.
    for block in sorted(set(range(len(successors))) - set(order)):
        if block not in order:
            roots.append(block)
            order = reverse_postorder(successors, roots)
    return order, roots


def _immediate_dominators(
    successors: Sequence[tuple[int, ...]], order: Sequence[int], roots: Sequence[int]
) -> tuple[int, ...]:
    """K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm" (2001)."""
    rank = {block: place for place, block in enumerate(order)} | {ROOT: -1}
    before: list[list[int]] = [[] for _ in successors]
    for block in roots:
        before[block].append(ROOT)
    for block, ends in enumerate(successors):
        for each in ends:
            before[each].append(block)
    idom: dict[int, int] = {ROOT: ROOT}
    is_changed = True
    while is_changed:
        is_changed = False
        for block in order:
            known = [each for each in before[block] if each in idom]
            common = known[0]
            for each in known[1:]:
                common = _meet(common, each, idom, rank)
            is_changed |= idom.get(block) != common
            idom[block] = common
    return tuple(idom[block] for block in range(len(successors)))


def _meet(first: int, second: int, idom: dict[int, int], rank: dict[int, int]) -> int:
    while first != second:
        while rank[first] > rank[second]:
            first = idom[first]
        while rank[second] > rank[first]:
            second = idom[second]
    return first
