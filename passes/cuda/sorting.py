# SPDX-License-Identifier: Apache-2.0
"""Sort what is recognised in one file into sites and skips."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autostamp.diagnostics import Diagnostic, Position
from autostamp.model.site import Shape, Skip, Span
from autostamp.model.sync import Kind, Side, SyncOp
from autostamp.passes.cuda.contexts import Contexts, Subject
from autostamp.passes.cuda.cross_check import misses
from autostamp.passes.cuda.found import Form, FoundFile
from autostamp.passes.cuda.functions import Asm, Call, Function, Index
from autostamp.passes.cuda.lambdas import Item, wrappings
from autostamp.passes.cuda.macros import Definition
from autostamp.passes.cuda.neighbours import Neighbours
from autostamp.passes.cuda.nodes import Chain, chain_to, is_list, nodes_of
from autostamp.passes.cuda.recognise import Recognised, Recognizer
from autostamp.passes.cuda.shapes import NO_STATEMENT, UNBRACED, Place, Refusal, Shapes
from autostamp.passes.cuda.source import Source
from autostamp.passes.cuda.spins import Spins, flag_of
from autostamp.passes.cuda.switches import Switches
from autostamp.passes.cuda.warp_wide import WarpWide

_SPIN = SyncOp("", "while", Kind.WAIT, Side.FLAG, group="flag", note="a loop that reads memory until it changes")
_LOOP_WORD = re.compile(rb"\b(?:while|do)\b")
_SPIN_LOOPS = frozenset({"while_statement", "do_statement"})
_LIMIT = 160
_REASONS = {Kind.POLL: ("AS2101", "a poll, which never blocks"), Kind.FENCE: ("AS2102", "a fence")}


@dataclass(frozen=True, slots=True)
class Project:
    """What the files of a project share. `names` are all that a sync call can be called by."""

    index: Index
    recognizer: Recognizer
    contexts: Contexts
    macros: Mapping[str, tuple[Definition, ...]]
    names: frozenset[str]


class FileSorter:
    """Collects what one file holds in `found`, which is complete after `finished`."""

    def __init__(self, path: Path, source: Source, project: Project) -> None:
        self.found = FoundFile(path)
        self._source = source
        self._project = project
        self._recognizer = project.recognizer
        self._contexts = project.contexts
        self._neighbours = Neighbours(source)
        self._shapes = Shapes(source, self._neighbours, project.macros, project.index.by_name)
        self._switches = Switches(source)
        self._has_loops = _LOOP_WORD.search(source.code) is not None
        self._warps: WarpWide | None = None

    def function(self, function: Function) -> None:
        """Sort what a function holds into sites and skips."""
        if not function.is_device and b"__device__" in self._source.code[slice(*function.body)]:
            self._device_lambdas(function)
            return
        items = self._items(function)
        if self._recognizer.is_wrapper(function):
            for each in items:
                self._skip(each, function.qualified, "AS2103", f"inside {function.name}, whose callers are stamped")
            return
        for wrapping in wrappings(function, items):
            inner = {each.item.start for each in wrapping.inner}
            for each in wrapping.inner:
                self._skip(each, function.qualified, "AS2103", f"inside {wrapping.name}, whose callers are stamped")
            items = [each for each in items if each.item.start not in inner]
            items = sorted([*items, *wrapping.calls], key=lambda each: (each.item.start, each.item.end))
        self._warps = WarpWide(function, items)
        polls = {each.item.node.id for each in items if each.recognised.op.kind is Kind.POLL}
        spins = Spins(self._source, lambda node: node.id in polls)
        waits = [each for each in items if each.recognised.op.kind is Kind.WAIT]
        loops: list[tuple[int, int]] = []
        for each in items:
            self._place(each, function, spins, loops, waits)
        if self._has_loops and function.is_device:
            self._memory_spins(function, items, spins, loops)

    def _device_lambdas(self, function: Function) -> None:
        """Lambdas for the device in a host function: which kernel runs them is not seen here."""
        anywhere = self._anywhere()
        contents: list[Call | Asm] = [*function.calls, *function.asms]
        for item in contents:
            if isinstance(item, Call) and item.name not in self._project.names:
                continue
            chain = chain_to(function.node, item.node)
            lambdas = [node for node in chain if node.type == "lambda_expression"]
            is_device = any(
                b"__device__" in self._source.code[node.start_byte : node.named_children[-1].start_byte]
                for node in lambdas
            )
            recognised = self._recognise(item, anywhere) if is_device else None
            if recognised is not None:
                self._skip(Item(item, recognised), function.qualified, "AS2105", "in a device lambda of host code")

    def macro(self, macro: Function) -> None:
        """What the body of a macro holds is not stamped there; a macro that is one sync op is where it is called."""
        # What is no call (`#define SYNC __syncthreads()`) can't be seen where it is used.
        is_called = any(body.start == macro.start and body.parameters is not None for body in self._source.macro_bodies)
        is_wrapper = is_called and self._recognizer.is_wrapper(macro)
        code = "AS2103" if is_wrapper else "AS2112"
        reason = f"inside {macro.name}, whose callers are stamped" if is_wrapper else f"in the macro {macro.name}"
        for each in self._items(macro):
            self._skip(each, macro.name, code, reason)

    def outside(self) -> None:
        """What no function definition holds: initialisers, and functions that the parser lost."""
        root = self._source.tree.root_node
        anywhere = self._anywhere()
        for item in self._project.index.outside.get(self.found.path, ()):
            recognised = self._recognise(item, anywhere)
            if recognised is not None:
                chain = chain_to(root, item.node)
                self._skip(Item(item, recognised), "", *self._why_outside(chain, recognised.op.kind))

    def _anywhere(self) -> Function:
        """A device function that stands for the whole file, for what is in none."""
        root = self._source.tree.root_node
        span = (0, root.end_byte)
        device = frozenset({"__device__"})
        return Function(self.found.path, "", "", "", *span, span, (), device, False, root, self._source)

    def _why_outside(self, chain: Chain, kind: Kind) -> tuple[str, str]:
        placed = self._shapes.place(chain, kind)
        if isinstance(placed, Refusal) and placed != NO_STATEMENT:
            return placed.code, placed.reason
        if any(node.type == "lambda_expression" for node in chain):
            return "AS2105", "in a lambda outside any function"
        return "AS2114", "outside any function"

    def check(self, functions: Sequence[Function]) -> None:
        """Compare with a count of names in the text. `functions` are the file's, macros included."""
        outside = self._project.index.outside.get(self.found.path, ())
        calls = [call for function in functions for call in function.calls]
        asms = [asm for function in functions for asm in function.asms]
        calls += [item for item in outside if isinstance(item, Call)]
        asms += [item for item in outside if isinstance(item, Asm)]
        bodies = [(body.start, body.end) for body in self._source.macro_bodies]
        for miss in misses(self._source, self._project.names, calls, asms, bodies):
            self._finding("AS1012", miss.start, miss.end, "")

    def finished(self) -> FoundFile:
        """The file with everything in order and numbered."""
        sites = sorted(
            self._contexts.paired(self.found.sites), key=lambda each: (each.site.span.start, each.site.span.end)
        )
        self.found.sites = [replace(each, site=replace(each.site, number=at)) for at, each in enumerate(sites, 1)]
        self.found.skips.sort(key=lambda skip: (skip.span.start, skip.span.end))
        self.found.findings.sort(
            key=lambda each: (each.position.line, each.position.column) if each.position else (0, 0)
        )
        return self.found

    def _items(self, function: Function) -> list[Item]:
        items = []
        contents: list[Call | Asm] = [*function.calls, *function.asms]
        for item in contents:
            if isinstance(item, Call) and item.name not in self._project.names:
                continue
            recognised = self._recognise(item, function)
            if recognised is not None:
                items.append(Item(item, recognised))
        return sorted(items, key=lambda each: (each.item.start, each.item.end))

    def _recognise(self, item: Call | Asm, function: Function) -> Recognised | None:
        if isinstance(item, Call):
            return self._recognizer.call(item, function)
        return self._recognizer.asm(item, function)

    def _place(
        self, each: Item, function: Function, spins: Spins, loops: list[tuple[int, int]], waits: list[Item]
    ) -> None:
        op = each.recognised.op
        chain = chain_to(function.node, each.item.node)
        name = function.qualified
        if self._switches.is_off(each.item.start, each.item.end):
            self._skip(each, name, "AS2109", "switched off by a comment")
            return
        if op.kind is Kind.POLL and not any(start <= each.item.start < end for start, end in loops):
            at = spins.around(chain)
            if at > 0:
                place = self._loop_place(chain, at)
                if isinstance(place, Place):
                    loops.append((chain[at].start_byte, chain[at].end_byte))
                    self._add(each, function, chain, replace(op, kind=Kind.WAIT), place)
                    return
        if op.kind in _REASONS:
            self._skip(each, name, *_REASONS[op.kind])
            return
        placed = self._shapes.place(chain, op.kind)
        if isinstance(placed, Place) and isinstance(each.item, Call):
            placed = self._as_macro(each.item, placed)
        if (
            isinstance(placed, Place)
            and (op.kind, placed.form) == (Kind.SIGNAL, Form.AROUND)
            and any(_is_after(other, each, placed) for other in waits)
        ):
            placed = self._shapes.before_waits(chain, placed)
        if isinstance(placed, Refusal):
            self._skip(each, name, placed.code, placed.reason)
        else:
            self._add(each, function, chain, op, placed)

    def _as_macro(self, call: Call, place: Place) -> Place | Refusal:
        """A macro's call may be several statements: those can't be enclosed in an expression, nor in braces of ours."""
        if call.name not in self._shapes.macros or call.receiver or call.qualifier:
            return place
        if place.form is Form.AROUND:
            return Refusal("AS2112", f"the macro {call.name} inside an expression")
        bodies = (
            macro.source.code[macro.start : macro.end].strip()
            for macro in self._project.index.macros.get(call.name, ())
        )
        if place.form is Form.BRANCH and any(
            b";" in body.rstrip(b"; ") and not body.startswith((b"do", b"{")) for body in bodies
        ):
            return Refusal("AS2112", f"the macro {call.name} of several statements without braces around it")
        return place

    def _loop_place(self, chain: Chain, at: int) -> Place | Refusal:
        loop = chain[at]
        if loop.has_error or any(node.type == "ERROR" for node in chain[1:at]):
            return Refusal("AS1011", "in a loop that cannot be parsed")
        start = self._neighbours.start_with_pragmas(loop.start_byte)
        if start < 0:
            return Refusal("AS2105", "a polling loop after a pragma")
        if is_list(chain, at - 1) and self._neighbours.follows_statement(loop.start_byte):
            return Place(Form.LOOP, Shape.WAIT_LOOP, start, loop.end_byte, loop)
        if is_list(chain, at - 1) or chain[at - 1].type in UNBRACED:
            return Place(Form.BRANCH, Shape.WAIT_LOOP, start, loop.end_byte, loop)
        return Refusal("AS2105", "a polling loop in a statement of a kind that is not known")

    def _memory_spins(self, function: Function, items: list[Item], spins: Spins, loops: list[tuple[int, int]]) -> None:
        """Loops that wait for memory to change without a call that is known."""
        if not _LOOP_WORD.search(self._source.code, *function.body):
            return
        for loop in nodes_of(function.node, _SPIN_LOOPS):
            start, end = loop.start_byte, loop.end_byte
            if any(first < end and start < last for first, last in loops):
                continue
            if any(start <= each.item.start < end and each.recognised.op.kind is not Kind.FENCE for each in items):
                continue
            if not spins.is_memory_spin(loop) or self._switches.is_off(start, end):
                continue
            chain = chain_to(function.node, loop)
            place = self._loop_place(chain, len(chain) - 1)
            if isinstance(place, Place):
                flag = flag_of(self._source, loop)
                item = Call(self._source, loop, "while")
                recognised = Recognised(_SPIN, barrier=flag, group="flag")
                loops.append((start, end))
                self._add(Item(item, recognised), function, chain, _SPIN, place)

    def _add(self, each: Item, function: Function, chain: Chain, op: SyncOp, place: Place) -> None:
        subject = Subject(each.item, function, chain, each.recognised, op)
        found = self._contexts.site(subject, place, self._span(each.item.start, each.item.end), self._text(each.item))
        is_wide = self._warps is not None and self._warps.covers(chain, each.item.start, found.site.conditions)
        self.found.sites.append(replace(found, is_warp_wide=is_wide))

    def _skip(self, each: Item, function: str, code: str, reason: str) -> None:
        op = each.recognised.op
        start, end = each.item.start, each.item.end
        self.found.skips.append(
            Skip(self._span(start, end), self._text(each.item), op.method, op.kind, function, code, reason)
        )
        if code == "AS1011":
            self._finding(code, start, end, function)

    def _finding(self, code: str, start: int, end: int, function: str) -> None:
        span = self._span(start, end)
        data = self._source.original
        first = start - span.column + 1
        last = data.find(b"\n", first)
        line = data[first : last if last >= 0 else len(data)].rstrip(b"\r").decode("utf-8", "replace")
        text = " ".join(data[start:end].decode("utf-8", "replace").split())[:_LIMIT]
        position = Position(self.found.path.as_posix(), span.line, span.column, line, len(text))
        self.found.findings.append(
            Diagnostic.of(code, position, function=function or "a function", call=text, path=self.found.path.as_posix())
        )

    def _span(self, start: int, end: int) -> Span:
        return Span(start, end, self._neighbours.line_of(start) + 1, self._neighbours.column_of(start) + 1)

    def _text(self, item: Call | Asm) -> str:
        text = self._source.original[item.start : item.end].decode("utf-8", "replace")
        return " ".join(text.split())[:_LIMIT]


def _is_after(wait: Item, signal: Item, place: Place) -> bool:
    """True when a wait of the statement ends after the signal: it encloses it, or stands behind it."""
    return wait.item.end > signal.item.end and wait.item.start < place.statement.end_byte
