# SPDX-License-Identifier: Apache-2.0
"""Local lambdas that are one sync op: their calls are stamped, as those of functions that only wrap one are.

`auto wait = [](auto& pipeline, auto& state) { auto token = pipeline.consumer_try_wait(state); pipeline.consumer_wait(state,
token); };` (flash-attention/hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp) serves several pipelines, which only its calls tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from autostamp.model.sync import Kind
from autostamp.passes.cuda.functions import Asm, Call, Function
from autostamp.passes.cuda.nodes import chain_to, descendants, inner_start, statements
from autostamp.passes.cuda.operands import names_in
from autostamp.passes.cuda.recognise import Recognised

_FREE_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_PLAIN = re.compile(r"[\w.:\[\]]+\Z")


@dataclass(frozen=True, slots=True)
class Item:
    """One recognised call or asm."""

    item: Call | Asm
    recognised: Recognised


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A lambda that is one sync op: what it holds, and its calls as what they wait for or signal."""

    name: str
    inner: tuple[Item, ...]
    calls: tuple[Item, ...]


def wrappings(function: Function, items: Iterable[Item]) -> Iterator[Wrapping]:
    """The lambdas of a function that only wrap one of `items`, and are called by name."""
    by_lambda: dict[int, tuple[Node, Node, list[Item]]] = {}
    for each in items:
        chain = chain_to(function.node, each.item.node)
        at = inner_start(chain)
        if at > 0 and chain[at - 1].type == "init_declarator":
            by_lambda.setdefault(chain[at].start_byte, (chain[at], chain[at - 1], []))[2].append(each)
    for lambda_, declarator, inner in by_lambda.values():
        named = declarator.child_by_field_name("declarator")
        main = [each for each in inner if each.recognised.op.kind in (Kind.WAIT, Kind.SIGNAL)]
        if (
            named is None
            or named.type != "identifier"
            or len(main) != 1
            or not _is_nothing_else(function, lambda_, inner)
        ):
            continue
        name = function.source.text(named)
        parameters = _parameters(function, lambda_)
        calls = [
            Item(call, _filled(main[0].recognised, parameters, call))
            for call in function.calls
            if call.name == name and not call.receiver and not call.qualifier
            if not lambda_.start_byte <= call.start < lambda_.end_byte and len(call.arguments) == len(parameters)
        ]
        names = names_in(_operands(main[0].recognised))
        if calls and names & set(parameters) and _is_seen_outside(function, lambda_, names - set(parameters)):
            yield Wrapping(name, tuple(inner), tuple(calls))


def _operands(recognised: Recognised) -> str:
    return f"{recognised.barrier}, {recognised.state}"


def _is_seen_outside(function: Function, lambda_: Node, names: set[str]) -> bool:
    """True when names of an operand mean the same where the lambda is called: none of its own, none that it copied."""
    captures = lambda_.child_by_field_name("captures")
    text = "" if captures is None else "".join(function.source.text(captures).split())
    if not names:
        return True
    declared = (function.source.text(each) for each in descendants(lambda_, frozenset({"declaration"})))
    return text in ("[&]", "[&,this]") and not any(names & names_in(each) for each in declared)


def _is_nothing_else(function: Function, lambda_: Node, inner: list[Item]) -> bool:
    """True when each statement of the lambda is one of the items, with no other call in it."""
    body = lambda_.child_by_field_name("body")
    if body is None or lambda_.has_error:
        return False
    held = statements(body)
    if len(held) != len(inner) or any(each.type not in ("expression_statement", "declaration") for each in held):
        return False
    calls = sum(lambda_.start_byte <= call.start < lambda_.end_byte for call in function.calls)
    return calls + sum(lambda_.start_byte <= asm.start < lambda_.end_byte for asm in function.asms) == len(inner)


def _parameters(function: Function, lambda_: Node) -> list[str]:
    declarator = lambda_.child_by_field_name("declarator")
    parameters = None if declarator is None else declarator.child_by_field_name("parameters")
    names = []
    for child in () if parameters is None else parameters.named_children:
        named = child.child_by_field_name("declarator")
        names.append("" if named is None else function.source.text(named).strip("&* "))
    return names


def _filled(recognised: Recognised, parameters: list[str], call: Call) -> Recognised:
    """The recognised op with the arguments of a call in place of the lambda's parameters."""
    values = dict(zip(parameters, call.arguments, strict=True))

    def put(text: str) -> str:
        return _FREE_NAME.sub(lambda match: _whole(values[match[0]]) if match[0] in values else match[0], text)

    return replace(
        recognised, barrier=put(recognised.barrier), phase=put(recognised.phase), state=put(recognised.state)
    )


def _whole(text: str) -> str:
    return text if _PLAIN.match(text) else f"({text})"
