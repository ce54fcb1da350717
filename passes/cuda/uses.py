# SPDX-License-Identifier: Apache-2.0
"""Which use of a barrier a site makes: the expressions for the stage and for the iteration, where the source shows them."""

from __future__ import annotations

import re

from tree_sitter import Node

from autostamp.passes.cuda.nodes import LOOPS, Chain
from autostamp.passes.cuda.operands import label, names_in, one_line, peeled
from autostamp.passes.cuda.source import Source

# `(it / STAGES) & 1`, `it / STAGES % 2`, `(it >> 2) & 1`, each with or without `^ 1`.
_PARITY = re.compile(
    r"\(*\s*(?P<of>[A-Za-z_][\w.]*|\((?P<group>[^()]+)\))\s*(?:/|>>)\s*(?:[\w:.]+|\([^()]*\))\s*\)*\s*(?:&\s*(?:1|0x1)|%\s*2)\b"
)
_STATE = re.compile(r"[A-Za-z_][\w.]*(?:->\w+)*\Z")
_OF_MODULO = re.compile(r"\A\(?\s*(?P<of>[A-Za-z_][\w.]*)\s*(?:%|&)\s*[^=&]+\Z")
_ADDED = re.compile(r"\+\s*(?P<added>.+)\Z")
_SIZE = re.compile(r"(?:\s*\*\s*(?:8|sizeof\s*\([^()]*\)|[A-Z]\w*)|(?<=\d)\s*\*\s*)|\b8\s*\*\s*")


def stage_of(barrier: str, state: str) -> str:
    """The stage: the state's index, the last subscript of the barrier, or what is added to its address."""
    if state:
        return f"{_object(state)}.index()" if _STATE.match(_object(state)) else ""
    text = peeled(one_line(barrier))
    subscript = _last_subscript(text)
    if subscript:
        return label(subscript)
    added = _ADDED.search(text)
    if added is None:
        return ""
    stage = _SIZE.sub("", added["added"].strip()).strip()
    return "" if stage.isdigit() else label(stage)


def iteration_of(source: Source, chain: Chain, phase: str, state: str, stage: str) -> str:
    """The number of the use: the state's count, what the parity is of, or the loop's variable that the stage follows."""
    if state:
        return f"{_object(state)}.count()" if _STATE.match(_object(state)) else ""
    parity = _PARITY.search(one_line(phase))
    if parity is not None:
        return one_line(parity["group"] or parity["of"])
    if modulo := _OF_MODULO.match(stage):
        return modulo["of"]
    names = names_in(stage)
    if not names:
        return ""
    for at in range(len(chain) - 1, -1, -1):
        if chain[at].type not in LOOPS:
            continue
        variables = _loop_variables(source, chain[at])
        if any(name in names for name in variables):
            # Of `++k, ++stage` the one that is not the stage itself counts on when the stage wraps.
            return next((name for name in variables if name != stage), variables[0])
        body = chain[at].child_by_field_name("body")
        for name in names if body is not None else ():
            if found := _assigned_from(source, body, name, chain[-1].start_byte):
                return found
            if variables and _is_advanced(source, chain[at], name):
                return variables[0]
    return ""


def _object(state: str) -> str:
    return peeled(one_line(state))


def _last_subscript(text: str) -> str:
    """What stands in the last square brackets of an access path."""
    end = text.rfind("]")
    depth = 0
    for at in range(end, -1, -1):
        depth += (text[at] == "]") - (text[at] == "[")
        if depth == 0:
            return text[at + 1 : end].strip()
    return ""


def _loop_variables(source: Source, loop: Node) -> list[str]:
    """The variables that a `for` counts: what its update writes, else what it declares."""
    if loop.type == "for_range_loop":
        declarator = loop.child_by_field_name("declarator")
        return [] if declarator is None else [source.text(declarator).strip("&* ")]
    if loop.type != "for_statement":
        return []
    update, initializer = loop.child_by_field_name("update"), loop.child_by_field_name("initializer")
    written = "" if update is None else one_line(source.text(update))
    found = re.findall(r"(?:\+\+|--)\s*(\w+)|(\w+)\s*(?:\+\+|--|[-+*/]=|=(?!=))", written)
    names = [first or second for first, second in found]
    if not names and initializer is not None:
        names = re.findall(r"(\w+)\s*(?:=|\{)", one_line(source.text(initializer)))[:1]
    return names


def _assigned_from(source: Source, body: Node | None, name: str, before: int) -> str:
    """`it` of `stage = it % N` in a loop's body before a place, at whatever depth in it."""
    if body is None:
        return ""
    text = source.uncommented[body.start_byte : before].decode("utf-8", "replace")
    pattern = rf"(?<![\w.]){re.escape(name)}\s*=\s*\(?\s*([A-Za-z_][\w.]*)\s*(?:%|&)\s*[^;=&]+;"
    matches = re.findall(pattern, text)
    return next((each for each in reversed(matches) if each != name), "")


def _is_advanced(source: Source, loop: Node, name: str) -> bool:
    """True when the loop steps a variable on: `++stage`, `stage = (stage + 1) % N`, or by a call in its header."""
    update = loop.child_by_field_name("update")
    if update is not None and update.type == "call_expression":
        return True
    text = source.uncommented[loop.start_byte : loop.end_byte].decode("utf-8", "replace")
    escaped = re.escape(name)
    return bool(re.search(rf"\+\+\s*{escaped}\b|(?<![\w.]){escaped}\s*(?:\+\+|\+=|\^=|=(?!=)[^;]*\b{escaped}\b)", text))
