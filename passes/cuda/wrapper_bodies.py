# SPDX-License-Identifier: Apache-2.0
"""One function's body: is it one sync op and nothing else, and which arguments are its barrier and phase?"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol

from tree_sitter import Node

from autostamp.model.sync import Kind, Side, SyncOp
from autostamp.passes.cuda.expressions import is_wide_number, place, template, without_casts
from autostamp.passes.cuda.functions import Asm, Call, Function, Type, text_of
from autostamp.passes.cuda.opcodes import instructions
from autostamp.passes.cuda.recognised import Recognised

# Longer functions hold more than one op, however few statements they look like.
MAX_LINES = 80
MAX_STATEMENTS = 20

_STATEMENTS = frozenset({"expression_statement", "declaration", "return_statement", "if_statement"})
_LOOPS = frozenset({"while_statement", "do_statement", "for_statement", "for_range_loop"})
_WORK = frozenset({"new_expression", "delete_expression", "co_await_expression", "throw_statement", "goto_statement"})
_MEMORY = frozenset({"subscript_expression", "pointer_expression"})
_BRANCHES = frozenset({"if_statement", "conditional_expression", "preproc_if", "preproc_ifdef", "preproc_elif"})
# Words of members that a wrapper may keep up to date: which use of the barrier comes next.
_COUNTERS = re.compile(r"(?i)phase|parity|index|idx|stage|count|state|token|iter|flag|ptr")
_POLLED = (Side.MBARRIER, Side.FULL, Side.EMPTY, Side.CLUSTER)
_GETTER = re.compile(r"(?:this->)?(\w+)\(\)")
_RETURNED = re.compile(r"\{\s*return\s+([^;{}]+);\s*\}", re.DOTALL)
_REACHES_IN = re.compile("\x01\\)?\\s*(?:\\.|->)")
_WORD = re.compile(r"[A-Za-z_]\w*")
# Asm that may stand beside a sync op in a wrapper: addresses, predicates, orderings, pauses.
_LIGHT_OPCODES = frozenset(
    (
        *("mapa", "mov", "cvt", "cvta", "setp", "selp", "nanosleep", "elect", "activemask", "trap", "brkpt", "bra"),
        *("fence", "membar", "add", "and", "or", "xor", "not", "shl", "shr", "sub", "isspacep", "prefetch", "pred"),
        *("nop", "discard", "createpolicy"),
    )
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A function that is one sync op. `barrier`, `phase` and `state` are templates over its arguments (see expressions).

    They number the function's `parameters` first, then its template parameters.
    """

    parameters: int
    owner: str
    op: SyncOp
    barrier: str
    phase: str
    state: str


class Judge(Protocol):
    """What a body must know of the rest of the program."""

    def recognise(self, item: Call | Asm, function: Function) -> Recognised | None:
        """What a call or asm in `function` is."""

    def is_light_call(self, call: Call) -> bool:
        """True for a call that may stand beside a sync op."""

    def types(self, name: str) -> tuple[Type, ...]:
        """The classes of that name."""

    def functions(self, name: str) -> tuple[Function, ...]:
        """The functions of that name."""


@dataclass(frozen=True, slots=True)
class _Event:
    """A sync op in the body, with the arms of branches that it stands in (branch, arm) and whether a loop repeats it."""

    found: Recognised
    arms: tuple[tuple[int, int], ...]
    is_looped: bool

    def excludes(self, other: _Event) -> bool:
        mine = dict(self.arms)
        return any(mine.get(branch, arm) != arm for branch, arm in other.arms)


def is_light_asm(asm: Asm) -> bool:
    """True when every instruction only prepares or orders."""
    return all(opcode.split(".")[0] in _LIGHT_OPCODES for opcode in instructions(asm.text))


def is_spin(loop: Node) -> bool:
    """True for a loop that counts nothing: while, do, or a for without an update."""
    if loop.type == "for_statement":
        return loop.child_by_field_name("update") is None
    return loop.type in ("while_statement", "do_statement")


def in_spin(node: Node) -> bool:
    """True for what such a loop of the same function repeats."""
    above = node.parent
    while above is not None and not is_spin(above) and above.type != "function_definition":
        above = above.parent
    return above is not None and is_spin(above)


class Body:
    """One walk over a function's body that collects its sync ops and gives up at other work."""

    def __init__(self, function: Function, judge: Judge) -> None:
        self._function = function
        self._judge = judge
        self._calls = {call.node.id: call for call in function.calls}
        self._asms = {asm.node.id: asm for asm in function.asms}
        self._events: list[_Event] = []
        self._local: dict[str, str] = {}
        self._loaded: set[str] = set()
        self._arms: list[tuple[int, int]] = []
        self._loops: list[Node] = []
        self._is_work = False
        self._statements = 0

    def wrapper(self) -> Wrapper | None:
        """The wrapper that the function is, or None."""
        self._visit(self._function.node.child_by_field_name("body") or self._function.node)
        if self._is_work or not self._events or self._statements > MAX_STATEMENTS:
            return None
        return self._merged()

    def _visit(self, node: Node) -> None:
        if self._is_work:
            return
        kind = node.type
        self._statements += kind in _STATEMENTS
        if kind == "call_expression":
            self._call(node)
        elif kind == "gnu_asm_expression":
            self._asm(node)
            return
        elif kind in _LOOPS:
            self._loop(node)
            return
        elif kind == "init_declarator":
            self._declare(node)
        elif kind in _WORK or self._moves_data(node):
            self._is_work = True
            return
        for number, child in enumerate(node.named_children):
            arm = self._arm(node, child, number)
            if arm:
                self._arms.append((node.id, arm))
            self._visit(child)
            if arm:
                self._arms.pop()

    def _arm(self, node: Node, child: Node, number: int) -> int:
        """Which of several exclusive arms of `node` the child is, from 1; 0 for none."""
        if node.type in _BRANCHES:
            if child == node.child_by_field_name("alternative"):
                return 2
            return 0 if child == node.child_by_field_name("condition") else 1
        return number + 1 if child.type == "case_statement" else 0

    def _call(self, node: Node) -> None:
        call = self._calls.get(node.id)
        if call is None:
            return
        found = self._judge.recognise(call, self._function)
        if found is not None:
            self._add(found)
        elif not self._judge.is_light_call(call):
            self._is_work = True

    def _asm(self, node: Node) -> None:
        asm = self._asms.get(node.id)
        if asm is None:
            return
        found = self._judge.recognise(asm, self._function)
        if found is not None:
            self._add(found)
        elif not is_light_asm(asm):
            self._is_work = True
        elif asm.outputs == 1 and len(asm.operands) > 1:
            # An address conversion: cvta, mapa, mov.
            self._local.setdefault(asm.operands[0], asm.operands[1])

    def _add(self, found: Recognised) -> None:
        # A word of memory is polled by a loop that its value ends; a counted loop over such loads moves data.
        is_flag = found.op.side is Side.FLAG
        is_looped = any(not is_flag or is_spin(loop) for loop in self._loops)
        if is_flag and self._loops and not is_looped:
            self._is_work = True
        if is_looped and found.op.kind is Kind.POLL:
            found = replace(found, op=replace(found.op, kind=Kind.WAIT))
        self._events.append(_Event(found, tuple(self._arms), is_looped))

    def _loop(self, node: Node) -> None:
        before = len(self._events)
        self._loops.append(node)
        for child in node.named_children:
            self._visit(child)
        self._loops.pop()
        # A loop is part of a wrapper only when it polls: one that arrives on many barriers is a place of its own.
        if not any(
            each.found.op.kind is Kind.WAIT and each.found.op.side in (*_POLLED, Side.FLAG)
            for each in self._events[before:]
        ):
            self._is_work = True

    def _declare(self, node: Node) -> None:
        declarator = node.child_by_field_name("declarator")
        value = node.child_by_field_name("value")
        is_place = False
        while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
            is_place = True
            declarator = declarator.named_children[-1] if declarator.named_children else None
        if declarator is None or value is None or declarator.type != "identifier":
            return
        name = self._text(declarator)
        self._local[name] = "" if name in self._local else self._text(value)
        if not is_place and value.type in _MEMORY:
            self._loaded.add(name)

    def _moves_data(self, node: Node) -> bool:
        """True for a store to memory, and for what reads memory into a variable or a result. Flipping a phase is neither."""
        if node.type == "return_statement":
            return any(child.type in _MEMORY for child in node.named_children)
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        operator = node.child_by_field_name("operator")
        right = node.child_by_field_name("right")
        if left is None or (operator is not None and operator.type == "^="):
            return False
        if left.type == "identifier":
            self._local[self._text(left)] = ""
            return right is not None and (right.type in _MEMORY or (right.type == "field_expression"))
        if left.type == "field_expression":
            return not self._text(left).startswith("this->") and not _COUNTERS.search(self._text(left))
        return left.type in _MEMORY

    def _text(self, node: Node) -> str:
        shift = 0
        if self._function.is_macro:
            pieces: tuple[Call | Asm, ...] = (*self._function.calls, *self._function.asms)
            shift = pieces[0].start - pieces[0].node.start_byte
        return text_of(self._function.source, node.start_byte + shift, node.end_byte + shift)

    def _merged(self) -> Wrapper | None:
        """The one op that all events amount to; None when they are several."""
        main = [each for each in self._events if each.found.op.kind is not Kind.FENCE] or self._events
        if not self._is_one(main) or not self._uses_loads(main):
            return None
        waits = [each.found for each in main if each.found.op.kind is Kind.WAIT]
        signals = [each.found for each in main if each.found.op.kind is Kind.SIGNAL]
        polls = [each.found for each in main if each.found.op.kind is Kind.POLL]
        lead = waits or signals or polls or [each.found for each in main]
        op = lead[0].op
        if waits and signals:
            op = replace(op, signals=tuple(dict.fromkeys((*op.signals, *(each.op.side for each in signals)))))
        barrier = self._template([each.barrier for each in (*lead, *polls)])
        if op.side is Side.MBARRIER and any(
            place(number) in barrier and is_wide_number(parameter.type)
            for number, parameter in enumerate(self._function.parameters)
        ):
            barrier = ""
        phase = self._template([each.phase for each in (*waits, *polls)])
        state = self._template([each.state for each in lead])
        function = self._function
        owner = function.owner or function.qualified.rpartition("::")[0]
        return Wrapper(len(function.parameters), owner, op, barrier, phase, state)

    def _is_one(self, events: list[_Event]) -> bool:
        """True when the ops concern one side and group, and ops on different barriers can't both be run."""
        if len({(each.found.op.side, each.found.op.group) for each in events}) > 1:
            return False
        texts = [without_casts(each.found.barrier) for each in events]
        return all(
            texts[one] == texts[two] or not texts[one] or not texts[two] or events[one].excludes(events[two])
            for one in range(len(events))
            for two in range(one)
        )

    def _uses_loads(self, events: list[_Event]) -> bool:
        """True when what was read from memory only serves to find the barrier or its phase."""
        if not self._loaded:
            return True
        used: set[str] = set()
        pending = [text for each in events for text in (each.found.barrier, each.found.phase, each.found.state)]
        while pending:
            for word in set(_WORD.findall(pending.pop())) - used:
                used.add(word)
                pending.append(self._local.get(word, ""))
        return self._loaded <= used

    def _template(self, texts: list[str]) -> str:
        function = self._function
        names = [*(each.name for each in function.parameters), *function.template_parameters]
        found = {template(self._inlined(text), names, self._local, self._is_own) if text else "" for text in texts}
        if len(found) != 1:
            return ""
        (text,) = found
        # A method may reach into its arguments where its callers may not.
        return "" if function.owner and _REACHES_IN.search(text) else text

    def _inlined(self, text: str) -> str:
        """What a getter of the same class returns, for a call of one: `addr()`."""
        called = _GETTER.fullmatch(without_casts(text))
        if called is None or not self._function.owner:
            return text
        for each in self._judge.functions(called[1]):
            if each.owner == self._function.owner and each.file == self._function.file and not each.parameters:
                code = each.source.uncommented[slice(*each.body)].decode("utf-8", "surrogateescape")
                if (returned := _RETURNED.fullmatch(code)) is not None:
                    return returned[1]
        return text

    def _is_own(self, name: str) -> bool:
        return self._members(self._function.owner) == [name]

    def _members(self, owner: str, depth: int = 4) -> list[str]:
        """Data members of a class and its bases; a base that is not known counts as one."""
        types = sorted(self._judge.types(owner), key=lambda each: each.file != self._function.file)
        if not types or depth == 0:
            return [""]
        return [*(name for base in types[0].bases for name in self._members(base, depth - 1)), *_members(types[0].node)]


def _members(node: Node) -> list[str]:
    """The names of the data members of a class, in order."""
    body = node.child_by_field_name("body")
    found: list[str] = []
    for child in () if body is None else body.named_children:
        if child.type != "field_declaration" or any(
            each.type == "storage_class_specifier" for each in child.named_children
        ):
            continue
        for each in child.children_by_field_name("declarator"):
            if each.type == "field_identifier" and each.text is not None:
                found.append(each.text.decode("utf-8", "replace"))
            elif each.type != "function_declarator":
                found.append("")
    return found
