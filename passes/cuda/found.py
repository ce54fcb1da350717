# SPDX-License-Identifier: Apache-2.0
"""What finding hands to emitting."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from autostamp.diagnostics import Diagnostic
from autostamp.model.site import Site, Skip


class Form(StrEnum):
    """How a site is stamped.

    STATEMENT: text before and after a whole statement that stands in a brace-enclosed list. BRANCH: the same inside braces of
    our own, for the unbraced body of an if, else, for, while, do, or a case label. LOOP: around a loop that polls until the
    barrier is ready. AROUND: a guard object inside the expression that the call is part of.
    """

    STATEMENT = "statement"
    BRANCH = "branch"
    LOOP = "loop"
    AROUND = "around"


class OperandKind(StrEnum):
    """What a stamp's operand is, hence what its records carry.

    ADDRESS: an mbarrier by lvalue, pointer, or 32-bit shared address. PIPELINE: a CUTLASS pipeline object and its state.
    BARRIER_ID: the number of a named barrier. NONE: there is none, or evaluating it again could have effects.
    """

    NONE = "none"
    ADDRESS = "address"
    PIPELINE = "pipeline"
    BARRIER_ID = "barrier-id"


@dataclass(frozen=True, slots=True)
class FoundSite:
    """A site with its place: bytes [start, end) of the original are what the stamps bracket.

    For STATEMENT, BRANCH and LOOP that is the whole statement with its semicolon; for AROUND the call expression. `operand`
    holds one text (two for PIPELINE: object, state), on one line and pure to evaluate again at the place of the stamp: before
    the statement for a wait, after it for a signal. `site.span` is the call's, also for LOOP. A polling loop that is itself
    an unbraced body is a BRANCH. A signal that is an argument of a wait, as in `b.wait(b.arrive())`, is a STATEMENT of no
    length before the wait's: after it, its stamp would be late by the whole wait.
    """

    site: Site
    form: Form
    start: int
    end: int
    operand_kind: OperandKind = OperandKind.NONE
    operand: tuple[str, ...] = ()
    is_warp_wide: bool = False


@dataclass(slots=True)
class FoundFile:
    """Everything found in one file, in source order. `findings` are what may have been missed (AS1011, AS1012)."""

    path: Path
    sites: list[FoundSite] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
