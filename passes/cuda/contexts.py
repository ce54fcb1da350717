# SPDX-License-Identifier: Apache-2.0
"""What a site says about itself: its barrier and which use of it, the role and the conditions that it runs under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.cuda import uses
from autostamp.passes.cuda.found import FoundSite, OperandKind
from autostamp.passes.cuda.functions import Asm, Call, Function, Index
from autostamp.passes.cuda.guards import Guard, Guards, common
from autostamp.passes.cuda.guards import Path as GuardPath
from autostamp.passes.cuda.macros import Definition
from autostamp.passes.cuda.nodes import Chain, descendants, loop_depth
from autostamp.passes.cuda.operands import Purity, label, names_in, one_line
from autostamp.passes.cuda.recognise import Recognised, Recognizer
from autostamp.passes.cuda.role_tests import is_role_test
from autostamp.passes.cuda.roles import Roles
from autostamp.passes.cuda.roots import Root, Roots
from autostamp.passes.cuda.scopes import Scopes
from autostamp.passes.cuda.shapes import Place
from autostamp.passes.cuda.source import Source

_DECLARATIONS = frozenset({"declaration"})
_ASSIGNMENTS = frozenset({"assignment_expression"})
_PAYLOADS = {
    OperandKind.NONE: "none",
    OperandKind.ADDRESS: "address",
    OperandKind.PIPELINE: "address",
    OperandKind.BARRIER_ID: "barrier-id",
}
# What the methods of CUTLASS pipelines mean, also where a project's own class has them.
_PIPELINE_SIDES = {
    "producer_acquire": Side.EMPTY,
    "producer_tail": Side.EMPTY,
    "producer_commit": Side.FULL,
    "consumer_wait": Side.FULL,
    "consumer_release": Side.EMPTY,
}
_FILLS = re.compile(r"expect|bytes|_tx|transaction|bulk|tma|copy")
_ENUMERATOR = re.compile(r"\w+::\w+")


@dataclass(frozen=True, slots=True)
class Subject:
    """A recognised call or asm in its function: `op` is what is stamped, for a polling loop a wait."""

    item: Call | Asm
    function: Function
    chain: Chain
    recognised: Recognised
    op: SyncOp


class Contexts:
    """Describes the sites of a project."""

    def __init__(
        self,
        index: Index,
        sources: Mapping[Path, Source],
        recognizer: Recognizer,
        macros: Mapping[str, tuple[Definition, ...]],
    ) -> None:
        scopes = Scopes(index, sources)
        self.guards = Guards(index, scopes)
        self._roles = Roles()
        self._recognizer = recognizer
        self._roots = Roots(index, self.guards, scopes)
        self._purity = Purity(index, macros)
        self._fills: dict[str, set[str]] = {}
        self._pending: dict[int, Root] = {}

    def site(self, subject: Subject, place: Place, span: Span, text: str) -> FoundSite:
        """The site, its number still 0."""
        recognised, function, op = subject.recognised, subject.function, subject.op
        root = self._root(subject)
        side = op.side
        if side is Side.MBARRIER:
            side = root.side or _PIPELINE_SIDES.get(op.method, side)
        paths = self.guards.paths(function, subject.chain)
        conditions = _conditions(paths)
        stage = uses.stage_of(recognised.barrier, recognised.state) if _has_stage(op) else ""
        kind, operand = self._operand(subject, place)
        site = Site(
            number=0,
            span=span,
            text=text,
            method=op.method,
            owner=op.owner,
            kind=op.kind,
            side=side,
            stage_from=op.stage_from,
            shape=place.shape,
            function=function.qualified,
            barrier=label(_barrier(subject)) or recognised.group or op.group or op.method,
            role=self._roles.of_all(paths, function.source),
            loop_depth=loop_depth(_outside(subject.chain, place)),
            guard=next((text for text in reversed(conditions) if is_role_test(text)), ""),
            root=root.key,
            conditions=conditions,
            iteration=uses.iteration_of(
                function.source, _outside(subject.chain, place), recognised.phase, recognised.state, stage
            ),
            stage=stage,
            payload=_PAYLOADS[kind],
            is_async=op.is_async,
        )
        found = FoundSite(site, place.form, place.start, place.end, kind, operand)
        self._remember(found, root)
        return found

    def paired(self, sites: Iterable[FoundSite]) -> list[FoundSite]:
        """The sites with the sides of pairs whose names don't tell them: what copies fill is the full barrier."""
        done = []
        for found in sites:
            root = self._pending.get(id(found.site))
            fills = self._fills.get(root.by_use, set()) if root is not None else set()
            if root is None or len(fills) != 1:
                done.append(found)
                continue
            side = Side.FULL if root.name in fills else Side.EMPTY
            done.append(replace(found, site=replace(found.site, side=side, root=root.by_use)))
        return done

    def _remember(self, found: FoundSite, root: Root) -> None:
        if not root.by_use or found.site.side is not Side.MBARRIER:
            return
        self._pending[id(found.site)] = root
        if found.site.kind is Kind.SIGNAL and _FILLS.search(found.site.method):
            self._fills.setdefault(root.by_use, set()).add(root.name)

    def _root(self, subject: Subject) -> Root:
        recognised, op = subject.recognised, subject.op
        barrier = _barrier(subject)
        if not barrier or op.side in (Side.CTA, Side.WARP, Side.CLUSTER, Side.GRID, Side.ASYNC_GROUP):
            name = recognised.group or op.group or op.method
            return Root(name, name)
        if op.side is Side.NAMED and op.stage_from is StageFrom.BARRIER_ID:
            name = label(barrier)
            if _ENUMERATOR.search(name) or not re.search(r"[A-Za-z_]", name):
                return Root(f"named barrier {name}", name)
        return self._roots.of(barrier, subject.function, subject.chain)

    def _operand(self, subject: Subject, place: Place) -> tuple[OperandKind, tuple[str, ...]]:
        """The texts that a stamp may evaluate once more, at its place."""
        recognised = subject.recognised
        kind = recognised.operand_kind
        operands = [recognised.barrier, *([recognised.state] if kind is OperandKind.PIPELINE else ())]
        texts = tuple(one_line(text) for text in operands)
        if kind is OperandKind.NONE or not all(self._purity.is_pure(text) for text in texts):
            return OperandKind.NONE, ()
        names = set().union(*(names_in(text) for text in texts))
        if place.shape is Shape.WAIT_LOOP and names & _declared_in(place, subject.function.source):
            return OperandKind.NONE, ()
        if subject.op.kind is Kind.SIGNAL and names & self._written(subject, place, texts[0]):
            return OperandKind.NONE, ()
        return kind, texts

    def _written(self, subject: Subject, place: Place, barrier: str) -> set[str]:
        """Names that the signal's statement may change: by assigning to them, or by handing out references to them."""
        source = subject.function.source
        written: set[str] = set()
        for node in descendants(place.statement, _ASSIGNMENTS):
            left = node.child_by_field_name("left")
            written |= set() if left is None else names_in(source.text(left))
        item = subject.item
        if not isinstance(item, Call):
            return written
        for callee in self._recognizer.candidates(item, subject.function):
            for parameter, argument in zip(callee.parameters, item.arguments, strict=False):
                # The barrier itself is handed out by reference everywhere, which does not move it.
                if _is_output(parameter.type) and label(argument) != label(barrier):
                    written |= names_in(argument)
        return written


def _barrier(subject: Subject) -> str:
    """The barrier's text; the object of a method that names none and concerns no group."""
    recognised, item = subject.recognised, subject.item
    if recognised.barrier or recognised.group or not isinstance(item, Call) or item.receiver == "this":
        return recognised.barrier
    return item.receiver


def _is_output(type_: str) -> bool:
    return "&" in type_ and "&&" not in type_ and not re.search(r"\bconst\b", type_)


def _conditions(paths: tuple[GuardPath, ...]) -> tuple[str, ...]:
    """What all paths have in common at their beginning and, after where they part, at their end."""
    first = common(paths)
    guards: list[Guard] = list(first)
    if len(paths) > 1:
        rest = [tuple(reversed(_guards(path)[len(first) :])) for path in paths]
        guards += reversed(common(rest))
    return tuple(dict.fromkeys(guard.text for guard in guards if not guard.is_exit or is_role_test(guard.text)))


def _guards(path: GuardPath) -> list[Guard]:
    return [step for step in path if isinstance(step, Guard)]


def _has_stage(op: SyncOp) -> bool:
    return op.side in (Side.MBARRIER, Side.FULL, Side.EMPTY, Side.FLAG) or op.stage_from is StageFrom.STATE


def _outside(chain: Chain, place: Place) -> Chain:
    """The chain without the loop that polls, whose variables count polls."""
    if place.shape is not Shape.WAIT_LOOP:
        return chain
    at = next(at for at, node in enumerate(chain) if node == place.statement)
    return chain[:at]


def _declared_in(place: Place, source: Source) -> set[str]:
    names: set[str] = set()
    for node in descendants(place.statement, _DECLARATIONS):
        names |= names_in(source.text(node))
    return names
