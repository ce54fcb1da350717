# SPDX-License-Identifier: Apache-2.0
"""Parsing a masked copy, and what is tried when the tree has errors: rarer rewrites, then fewer preprocessor branches.

A trial is kept when its tree is better: fewer error nodes, and fewer lines under them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Point, Query, QueryCursor, Tree

from autostamp.passes.cuda.draft import Draft, Span
from autostamp.passes.cuda.fallbacks import FALLBACKS, Context, Rule
from autostamp.passes.cuda.macros import Macros
from autostamp.passes.cuda.views import Directive, Views, conditionals

LANGUAGE = Language(tree_sitter_cuda.language())
_ERRORS = Query(LANGUAGE, "[(ERROR) (MISSING)] @error")
# Each trial of a conditional is a parse; files with more broken ones than this are left as they are.
_MAX_TRIALS = 24
_AFTER = re.compile(rb"\s*+(\S?)")
_NEAR = 512  # bytes between a preprocessor line and an error that it may have caused


@dataclass(frozen=True, slots=True)
class Parsed:
    """A masked copy and its tree; `errors` are the spans of its error nodes, `cost` is what trials are compared by."""

    masked: bytes
    tree: Tree
    blanked: tuple[Span, ...]
    erased: tuple[Span, ...]
    errors: tuple[Span, ...]
    cost: int
    draft: Draft


def repaired(draft: Draft, view: Views, macros: Macros) -> Parsed:
    """The tree of a draft, or of the best of the drafts tried in its place."""
    first = best = _parsed(draft)
    for rule in FALLBACKS:
        if best.cost:
            best = _tried(best, (rule,), view, macros)
    if best.cost:
        # Errors of several kinds can hide one another, so that only all rules together help.
        best = min(best, _tried(first, FALLBACKS, view, macros), key=lambda each: each.cost)
    return _conditionals(best, view) if best.cost else best


def _tried(parsed: Parsed, rules: Sequence[Rule], view: Views, macros: Macros) -> Parsed:
    trial = parsed.draft.copy()
    for rule in rules:
        rule(trial, Context(view, macros, parsed.errors))
    return parsed if trial.masked == parsed.masked else _better(parsed, trial)


def _parsed(draft: Draft, reused: Tree | None = None) -> Parsed:
    masked = bytes(draft.masked)
    parser = Parser(LANGUAGE)  # one a parse: a parser must not be shared by threads
    tree = parser.parse(masked) if reused is None else parser.parse(masked, reused)
    nodes = error_nodes(tree)
    spans = tuple((node.start_byte, node.end_byte) for node in nodes)
    cost = sum(1 + node.end_point[0] - node.start_point[0] for node in nodes if not _is_harmless(node, masked))
    return Parsed(masked, tree, tuple(draft.blanked), tuple(draft.erased), spans, cost, draft)


def _is_harmless(node: Node, masked: bytes) -> bool:
    """Whether all that is missing is the `;` of a macro at the end of a block or of the file."""
    after = _AFTER.match(masked, node.end_byte)
    return node.is_missing and node.type == ";" and after is not None and after[1] in {b"}", b""}


def error_nodes(tree: Tree) -> list[Node]:
    """The ERROR and MISSING nodes of a tree."""
    if not tree.root_node.has_error:
        return []
    return [node for nodes in QueryCursor(_ERRORS).captures(tree.root_node).values() for node in nodes]


def _better(best: Parsed, trial: Draft, reused: Tree | None = None) -> Parsed:
    other = _parsed(trial, reused)
    return other if other.cost < best.cost else best


def _conditionals(best: Parsed, view: Views) -> Parsed:
    """Take the lines of broken conditionals out, and where that does not help all branches but one."""
    groups = list(conditionals(view.directives))
    whole = best.draft.copy()
    for group in groups:
        whole.blank_lines(group)
    best_whole = _better(best, whole)
    if not best_whole.cost:
        return best_whole
    first = best
    best = _better(best, _first_branches(best, groups))
    trials = 0
    for group in groups:
        if trials >= _MAX_TRIALS or not best.cost:
            break
        if not _is_broken(best, group):
            continue
        trials += len(group)
        start = best
        for choose in (None, *range(len(group) - 1)):
            trial = start.draft.copy()
            trial.blank_lines(group)
            if choose is None or _keep_branch(trial, group, choose):
                best = _better(best, trial, _reused(start, group))
    # Trials reuse the trees before them; what is kept is parsed afresh.
    best = best if best is first else _better(first, best.draft)
    return best if best.cost <= best_whole.cost else best_whole


def _first_branches(parsed: Parsed, groups: list[list[Directive]]) -> Draft:
    """Of all broken conditionals the first branch: two in one signature only help together."""
    draft = parsed.draft.copy()
    for group in groups:
        trial = draft.copy()
        if _is_broken(parsed, group) and _keep_branch(trial, group, 0):
            trial.blank_lines(group)
            draft = trial
    return draft


def _reused(parsed: Parsed, group: list[Directive]) -> Tree:
    """The tree of `parsed`, told that everything from the first to the last line of a conditional may have changed."""
    start, end = group[0].start, group[-1].end
    points = [_point(parsed.masked, offset) for offset in (start, end)]
    tree = parsed.tree.copy()
    tree.edit(start, end, end, points[0], points[1], points[1])
    return tree


def _point(text: bytes, offset: int) -> Point:
    return Point(text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1))


def _is_broken(best: Parsed, group: list[Directive]) -> bool:
    """Whether an error starts near one of the lines, or holds one."""
    return any(
        abs(start - directive.start) < _NEAR or start <= directive.start < end
        for start, end in best.errors
        for directive in group
    )


def _keep_branch(draft: Draft, group: list[Directive], kept: int) -> bool:
    """Blank all branches but one, unless a statement would go: then nothing is to be gained."""
    for number, (before, after) in enumerate(pairwise(group)):
        branch = draft.search[before.end : after.start]
        if number == kept or not branch.strip():
            continue
        if b";" in branch:
            return False
        draft.blank(before.end, after.start)
        draft.erased.append((before.end, after.start))
    return True
