# SPDX-License-Identifier: Apache-2.0
"""Basic blocks, their successors and dominators, on hand-written listings and against the definition on random ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autostamp.model.cubin import Instruction
from autostamp.passes import flow_graph
from autostamp.passes.flow_graph import ROOT
from tests.listing import listing


def test_blocks_end_at_branches_and_begin_at_their_targets():
    #                                            0x0           0x10              0x20          0x30             0x40
    graph = flow_graph.build(listing("MOV R0, R1\n@P0 BRA 0x40\nMOV R2, R3\nBRA UP0, 0x0\nEXIT"))
    assert graph.starts == (0, 2, 4, 5)
    assert graph.successors == ((2, 1), (0, 2), ())
    assert graph.idom == (ROOT, 0, 0)  # the last is reached from both


def test_an_unconditional_branch_does_not_fall_through():
    assert flow_graph.build(listing("BRA 0x20\nNOP\nEXIT")).successors == ((2,), (2,), ())


def test_a_guarded_exit_falls_through():
    assert flow_graph.build(listing("@P0 EXIT\nNOP\nEXIT")).successors == ((1,), ())


def test_a_call_returns_and_its_function_is_a_root():
    #                                             0x0                 0x10  0x20        0x30
    graph = flow_graph.build(listing("CALL.REL.NOINC 0x20\nEXIT\nMOV R0, R1\nRET.REL.NODEC R2, 0x0"))
    assert graph.successors == ((), ())
    assert graph.idom == (ROOT, ROOT)


def test_an_indirect_branch_reaches_what_nothing_else_leads_to():
    #                                            0x0       0x10          0x20      0x30       0x40
    graph = flow_graph.build(listing("BRX R4, -0x10\nNOP\nBRA 0x40\nBRA 0x40\nEXIT"))
    assert graph.successors == ((1, 2), (3,), (3,), ())
    assert graph.idom == (ROOT, 0, 0, 0)


@st.composite
def programs(draw) -> tuple[Instruction, ...]:
    """Up to 12 instructions that each go on, branch (maybe) or end."""
    length = draw(st.integers(1, 12))
    made = []
    for index in range(length):
        kind = draw(st.sampled_from(["MOV", "BRA", "@BRA", "EXIT"]))
        target = hex(16 * draw(st.integers(0, length - 1)))
        operands = (target,) if "BRA" in kind else ()
        made.append(Instruction(16 * index, kind.removeprefix("@"), operands, "@P0" if "@" in kind else ""))
    return tuple(made)


def reached(graph: flow_graph.FlowGraph, roots: list[int], without: int | None) -> set[int]:
    found: set[int] = set()
    waiting = [each for each in roots if each != without]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += [each for each in graph.successors[block] if each != without]
    return found


@given(programs())
def test_a_block_dominates_another_if_there_is_no_way_around_it(instructions):
    graph = flow_graph.build(instructions)
    blocks = range(len(graph.successors))
    roots = [block for block in blocks if graph.idom[block] == ROOT]
    assert reached(graph, roots, None) == set(blocks)
    entered = [0, *(block for block in blocks if not any(block in ends for ends in graph.successors))]
    if reached(graph, entered, None) != set(blocks):
        return  # cycles that nothing leads to have roots by choice
    for first in blocks:
        past = reached(graph, entered, first)
        for second in blocks:
            assert graph.dominates(first, second) == (first == second or second not in past)
