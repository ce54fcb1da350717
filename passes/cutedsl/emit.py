# SPDX-License-Identifier: Apache-2.0
"""Sites to edits: bare call statements on the line of the call that they bracket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autostamp.model import placement
from autostamp.model.edit import Edit
from autostamp.model.sync import Kind
from autostamp.passes.cutedsl.found import Form, Found, FoundSite, OperandText
from autostamp.passes.cutedsl.places import RANK_STAMP

MODULE = "autostamp.runtime.cutedsl"
_LABELLED = ("pointer", "barrier_id")


def edits(found: Found, forms: Mapping[int, placement.Form | None] | None = None) -> list[Edit]:
    """All edits of a file, in no particular order. `forms` has the sites whose stamps are not the usual ones (None: no stamp)."""
    stamps = [edit for site in (*found.sites, *found.muted) for edit in site_edits(site)]
    if not stamps and not found.kernels:
        return []
    imported = [_with_arguments(found.import_edit, found, forms or {})] if found.import_edit is not None else []
    return [*imported, *found.frame_edits, *stamps]


def import_text(key: str) -> str:
    """The statements that give a stamped file its stamper."""
    return f'from {MODULE} import stamps as _as; _as = _as.stamper("{key}")'


def _with_arguments(imported: Edit, found: Found, forms: Mapping[int, placement.Form | None]) -> Edit:
    """The stamper also learns which waits let the warp go on before they end, and which sites have other stamps or none."""
    waits = (each.site for each in found.sites if each.site.kind is Kind.WAIT)
    numbers = sorted(site.number for site in waits if site.side.is_deferred)
    given = [f"{{{', '.join(map(str, numbers))}}}"] if numbers else []
    if forms:
        values = {number: form.value if form is not None else "" for number, form in forms.items()}
        given.append(f"forms={{{', '.join(f'{number}: {values[number]!r}' for number in sorted(values))}}}")
    if not given:
        return imported
    return replace(imported, text=imported.text.replace('")', f'", {", ".join(given)})'))


def site_edits(found: FoundSite) -> list[Edit]:
    """The edits of one site."""
    if found.form is Form.LOOP:
        return _loop(found)
    if found.form is Form.REFERENCE:
        return _reference(found)
    if found.form is Form.EXPRESSION:
        return _expression(found)
    return _statement(found)


def _first(found: FoundSite, operands: tuple[OperandText, ...]) -> str:
    """The call of the first stamp: `_as.enter(3, pipeline_k, state=s)` for a wait, `_as.open(...)` for a signal."""
    name = "enter" if found.site.kind is Kind.WAIT else "open"
    given = [
        operand.text if operand.keyword == "receiver" else f"{operand.keyword}={operand.text}"
        for operand in operands
        if operand.is_pure
    ]
    given += [f"text={operand.text!r}" for operand in operands if operand.is_pure and operand.keyword in _LABELLED]
    if not operands and found.group:
        given.append(f"text={found.group!r}")
    if any(not operand.is_pure for operand in operands):
        given.append("later=True")
    return f"_as.{name}({', '.join([str(found.site.number), *given])})"


def _last(found: FoundSite) -> str:
    return f"_as.{'exit' if found.site.kind is Kind.WAIT else 'signal'}({found.site.number})"


def _seen(found: FoundSite, depth: int) -> list[Edit]:
    """Wrap operands that may be evaluated only once in a call that hands them through."""
    made: list[Edit] = []
    for operand in found.operands:
        if operand.is_pure:
            continue
        is_labelled = operand.keyword in _LABELLED or operand.keyword == "receiver"
        tail = f', "{operand.keyword}", {operand.text!r})' if is_labelled else f', "{operand.keyword}")'
        if found.is_chained and operand.keyword == "receiver" and found.site.kind is Kind.WAIT:
            tail = f"{tail[:-1]}, waits=True)"
        made.append(Edit(operand.start, operand.start, f"_as.see({found.site.number}, ", RANK_STAMP + 2 * depth + 1))
        made.append(Edit(operand.end, operand.end, tail, RANK_STAMP - 2 * depth - 1))
    return made


def _statement(found: FoundSite) -> list[Edit]:
    start, end = found.outer
    first = Edit(start, start, f"{_first(found, found.operands)}; ", RANK_STAMP)
    return [first, *_seen(found, found.depth), Edit(end, end, f"; {_last(found)}", RANK_STAMP)]


def _expression(found: FoundSite) -> list[Edit]:
    """`_as.around(n, _as.enter(n, ...), call)`. Behind a receiver that syncs itself, `see` opens the site instead."""
    start, end = found.outer
    rank = 2 * found.depth
    first = "None" if found.is_chained else _first(found, found.operands)
    return [
        Edit(start, start, f"_as.around({found.site.number}, {first}, ", RANK_STAMP + rank),
        *_seen(found, found.depth),
        Edit(end, end, ")", RANK_STAMP - rank),
    ]


def _loop(found: FoundSite) -> list[Edit]:
    """Statements around a polling loop. Operands that need a call stay unknown: the loop evaluates them many times."""
    before, after = found.loop_places
    pure = tuple(operand for operand in found.operands if operand.is_pure)
    labels = [
        f"text={operand.text!r}" for operand in found.operands if not operand.is_pure and operand.keyword in _LABELLED
    ]
    first = _first(found, pure)
    if labels:
        first = f"{first[:-1]}, {labels[0]})"
    return [
        Edit(before.start, before.end, before.text.replace("@enter@", first), before.rank),
        Edit(after.start, after.end, after.text.replace("@exit@", _last(found)), after.rank),
    ]


def _reference(found: FoundSite) -> list[Edit]:
    """`_as.wrap(n, cute.arch.cluster_wait, "wait", 'cluster')`: a function that stamps around the one that it calls."""
    start, end = found.outer
    kind = "wait" if found.site.kind is Kind.WAIT else "signal"
    return [
        Edit(start, start, f"_as.wrap({found.site.number}, ", RANK_STAMP + 2 * found.depth),
        Edit(end, end, f', "{kind}", {found.group or found.site.method!r})', RANK_STAMP - 2 * found.depth),
    ]
