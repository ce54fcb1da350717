# SPDX-License-Identifier: Apache-2.0
"""Loops that do nothing but poll: each is one wait, stamped around the loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from autostamp.passes.cuda.functions import Asm
from autostamp.passes.cuda.nodes import LOOPS, Chain, condition_of, descendants, inner_start, statements
from autostamp.passes.cuda.source import Source

# What a loop may call between two polls and still only wait: pauses, clocks and time-outs, and functions without effects.
_IDLE_CALLS = frozenset(
    (
        *("__nanosleep", "nanosleep", "_mm_pause", "clock", "clock64", "globaltimer", "__globaltimer", "printf"),
        *("trap", "__trap", "brkpt", "__brkpt", "assert", "__builtin_trap", "__threadfence", "__threadfence_block"),
        *("__threadfence_system", "__shfl_sync", "__any_sync", "__all_sync", "__ballot_sync", "__activemask"),
        *("elect_one_sync", "__reduce_and_sync", "__reduce_or_sync", "min", "max", "likely", "unlikely"),
        *("__builtin_expect", "static_cast", "reinterpret_cast", "const_cast"),
    )
)
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]+\Z")
_IDLE_ASM = re.compile(r"(?s)\s*(?:nanosleep|trap|brkpt|mov|exit|fence|membar|pause)\b|\s*\Z")
_LEAVES = frozenset({"return_statement", "goto_statement", "co_return_statement", "throw_statement"})
_CALLS = frozenset({"call_expression"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_ATOMIC = re.compile(r"\batomic\w*\s*\(|\bvolatile\b|\bld_\w+\s*\(")
_READS = re.compile(r"atomic|ld|load|read|poll|acquire|volatile|peek|ready|flag|done|_cast\b")
_EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")


@dataclass(frozen=True, slots=True)
class Spins:
    """Judges the loops of one source. `is_poll` says of a call or inline asm that it was recognised as one."""

    source: Source
    is_poll: Callable[[Node], bool]

    def around(self, chain: Chain) -> int:
        """Where in the chain of a poll the loop stands that only polls; -1 when there is none."""
        first = inner_start(chain)
        at = next((at for at in range(len(chain) - 2, first, -1) if chain[at].type in LOOPS), -1)
        if at < 0 or chain[at].type == "for_range_loop" or not self._ends_by(chain, at):
            return -1
        return at if self._is_idle(chain[at]) else -1

    def is_memory_spin(self, loop: Node) -> bool:
        """True for a loop that can only end when memory changes: `while (*flag != n);`, or one around atomics."""
        condition = condition_of(loop)
        body = loop.child_by_field_name("body")
        if condition is None or body is None or loop.type == "for_statement" or loop.has_error:
            return False
        text = self.source.text(condition)
        if loop.type == "do_statement":
            return bool(_ATOMIC.search(self.source.text(loop))) and self._is_idle(loop)
        inner = [each for each in statements(body) if self.source.text(each).strip() != ";"]
        if self._reads_memory(condition):
            is_pause = all(self._is_pause(each) for each in inner)
            return is_pause and (not _EFFECT.search(text) or bool(_ATOMIC.search(text)))
        return bool(inner) and self._is_reloaded(condition, inner) and self._is_idle(loop)

    def _reads_memory(self, condition: Node) -> bool:
        nodes = _all(condition)
        calls = [self.source.text(each) for each in nodes if each.type == "call_expression"]
        if any(not _READS.search(call.split("(")[0]) for call in calls):
            return False
        return bool(calls) or any(each.type in ("subscript_expression", "pointer_expression") for each in nodes)

    def _is_pause(self, statement: Node) -> bool:
        text = self.source.text(statement)
        return statement.type == "expression_statement" and bool(re.match(r"\s*\w*nanosleep\b|asm\b.*nanosleep", text))

    def _is_reloaded(self, condition: Node, inner: list[Node]) -> bool:
        """True when each statement assigns to a variable of the condition from atomics or volatile memory."""
        words = set(_WORD.findall(self.source.text(condition)))
        for statement in inner:
            if self._is_pause(statement):
                continue
            value = statement.named_children[0] if statement.named_children else statement
            left = value.child_by_field_name("left")
            if value.type != "assignment_expression" or left is None or self.source.text(left) not in words:
                return False
            if not _ATOMIC.search(self.source.text(value)):
                return False
        return True

    def _ends_by(self, chain: Chain, at: int) -> bool:
        """True when the poll's result decides whether the loop goes on."""
        loop, below = chain[at], chain[at + 1]
        if below in (loop.child_by_field_name("condition"), loop.child_by_field_name("update")):
            return True
        if below != loop.child_by_field_name("body"):
            return False
        condition = condition_of(loop)
        tested = set() if condition is None else set(_WORD.findall(self.source.text(condition)))
        for each in descendants(below, frozenset({"if_statement"})):
            test = condition_of(each)
            if test is not None and "break" in self.source.text(each):
                if test.start_byte <= chain[-1].start_byte < test.end_byte:
                    return True
                tested |= set(_WORD.findall(self.source.text(test)))
        return bool(self._assigned(chain, at) & tested)

    def _assigned(self, chain: Chain, at: int) -> set[str]:
        """The variables that the poll's result goes to in the loop's body, also through one more assignment."""
        poll = chain[-1]
        if poll.type == "gnu_asm_expression":
            outputs = poll.child_by_field_name("output_operands")
            names = set() if outputs is None else set(_WORD.findall(self.source.text(outputs)))
        else:
            names = set()
            for node in chain[at + 1 : -1]:
                if node.type in ("assignment_expression", "init_declarator"):
                    left = node.child_by_field_name("left") or node.child_by_field_name("declarator")
                    names |= set() if left is None else set(_WORD.findall(self.source.text(left)))
        for node in descendants(chain[at + 1], frozenset({"assignment_expression", "init_declarator"})):
            left = node.child_by_field_name("left") or node.child_by_field_name("declarator")
            if left is not None and names & set(_WORD.findall(self.source.text(node))):
                names |= set(_WORD.findall(self.source.text(left)))
        return names

    def _is_idle(self, loop: Node) -> bool:
        """True when nothing in the loop does work, and it is only left at its end or by `break`."""
        polls: list[Node] = []
        for node in _all(loop):
            if node.type in _LEAVES or node.type == "lambda_expression" or (node.type in LOOPS and node != loop):
                return False
            if any(poll.start_byte <= node.start_byte < poll.end_byte for poll in polls):
                continue
            if node.type in ("call_expression", "gnu_asm_expression"):
                if self.is_poll(node):
                    polls.append(node)
                elif not self._is_idle_call(node):
                    return False
            if node.type == "assignment_expression":
                left = node.child_by_field_name("left")
                if left is not None and left.type in ("subscript_expression", "pointer_expression"):
                    return False
        return True

    def _is_idle_call(self, node: Node) -> bool:
        if node.type == "gnu_asm_expression":
            literals = descendants(node, frozenset({"string_content"}))
            first = next(literals, None)
            return first is None or bool(_IDLE_ASM.match(self.source.text(first)))
        callee = node.child_by_field_name("function")
        if callee is None:
            return False
        name = _WORD.findall(self.source.text(callee).split("<")[0])
        if not name:
            return False
        return name[-1] in _IDLE_CALLS or bool(_CAPITALS.match(name[-1])) or bool(_ATOMIC.match(name[-1] + "("))


def flag_of(source: Source, loop: Node) -> str:
    """The memory that a memory spin reads: the operand of its first dereference, or of its first call."""
    for node in _all(loop):
        if node.type == "pointer_expression" and source.text(node).startswith("*"):
            argument = node.child_by_field_name("argument")
            return "" if argument is None else source.text(argument)
        if node.type == "subscript_expression":
            return source.text(node)
        if node.type == "call_expression":
            arguments, callee = node.child_by_field_name("arguments"), node.child_by_field_name("function")
            if callee is not None and callee.type == "field_expression":
                first = callee.child_by_field_name("argument")
            else:
                first = None if arguments is None else next(iter(arguments.named_children), None)
            return source.text(node) if first is None else source.text(first)
    return ""


def _all(node: Node) -> list[Node]:
    found = [node]
    for child in node.named_children:
        found += _all(child)
    return found


def outputs_of(asm: Asm) -> tuple[str, ...]:
    """The expressions that an inline asm writes to."""
    return asm.operands[: asm.outputs]
