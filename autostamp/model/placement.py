# SPDX-License-Identifier: Apache-2.0
"""Where stamps may stand without moving the kernel: what each site costs alone, and which sites may be stamped together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from autostamp.model.manifest import SourceFile
from autostamp.model.site import Site, Skip

PLACEMENT_SCHEMA = 1


class Effect(StrEnum):
    """What stamps do to the compiled schedule: nothing that is measured, little, or enough to make another kernel of it."""

    FREE = "free"
    NEAR_CLEAN = "near-clean"
    PERTURBING = "perturbing"


class Form(StrEnum):
    """Which of a site's stamps are compiled, and where they stand.

    BOTH: a wait's stamps before and after the call, a signal's one stamp after it. ENTER, EXIT: one stamp of a wait, which is
    then a mark in time, never a stall. CARRIED: the clock is read after the wait as in BOTH, kept in a register, and written
    after the next sync call; CARRIED_EXIT: the same of that stamp alone. BEFORE: a signal's stamp stands before the call, so the
    signal comes no earlier than its record says, and no later than the warp's next record.
    """

    BOTH = "both"
    ENTER = "enter"
    EXIT = "exit"
    CARRIED = "carried"
    CARRIED_EXIT = "carried-exit"
    BEFORE = "before"

    @property
    def has_enter(self) -> bool:
        """True where a wait has the stamp before it."""
        return self not in (Form.EXIT, Form.CARRIED_EXIT)

    @property
    def has_exit(self) -> bool:
        """True where a wait has the stamp after it."""
        return self is not Form.ENTER

    @property
    def is_carried(self) -> bool:
        """True where the stamp after a wait is written later than its clock is read."""
        return self in (Form.CARRIED, Form.CARRIED_EXIT)


def together(one: Form, two: Form) -> Form:
    """The form with the stamps of both."""
    if one is two:
        return one
    carried = {Form.ENTER, Form.CARRIED, Form.CARRIED_EXIT}
    return Form.CARRIED if {one, two} <= carried else Form.BOTH


WAIT_FORMS = (Form.BOTH, Form.CARRIED, Form.ENTER, Form.EXIT, Form.CARRIED_EXIT)
"""Forms of a wait, those that give a stall first."""

MARKS = (Form.ENTER, Form.EXIT, Form.CARRIED_EXIT)
"""Forms that leave a wait one stamp: a mark in time."""

SIGNAL_FORMS = (Form.BOTH, Form.BEFORE)
"""Forms of a signal. CARRIED is none: what moves the schedule at a signal is the clock."""


def forms_of(*, is_wait: bool, is_deferred: bool = False) -> tuple[Form, ...]:
    """The forms that a site can have. A wait that lets the warp go on before it ends (`is_deferred`) is not carried: its
    clock waits for a store.
    """
    if not is_wait:
        return SIGNAL_FORMS
    return tuple(form for form in WAIT_FORMS if not (is_deferred and form.is_carried))


@dataclass(frozen=True, slots=True)
class ScheduleFeatures:
    """How one stamped build differs from the clean one, from cubins alone. Pairs are (clean, stamped).

    `order_share` is the share of core opcodes in the clean order (1: all). `waits_moved` has the waits of the main loops that
    stand elsewhere among the work: by the wait's name, the MUFU or matrix instructions before it since the wait before.
    `unroll` is the copies of one iteration in a trip of the main loops, by their core opcodes. `spills` is bytes written to and
    read from local memory. `distance` weighs all of these into one number: 0 is the clean schedule.
    """

    order_share: float
    waits_moved: Mapping[str, tuple[int, int]]
    unroll: tuple[float, float]
    registers: tuple[int, int]
    spills: tuple[int, int]
    distance: float


@dataclass(frozen=True, slots=True)
class PlacedSite:
    """One site, stamped alone in `form`, and what that did. `key` is `site_key` of it.

    `forms` are all that it can have; `loops` are the roles whose main loop holds its stamps.
    """

    key: str
    form: Form
    effect: Effect
    features: ScheduleFeatures
    forms: tuple[Form, ...] = ()
    loops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaySet:
    """Sites that are stamped in one replay, with their forms. `number` counts from 1; `anchors` are keys that every set has."""

    number: int
    sites: tuple[tuple[str, Form], ...]
    anchors: tuple[str, ...]
    features: ScheduleFeatures


@dataclass(frozen=True, slots=True)
class TriedSet:
    """A set that a replay session ran, and what it took of the clean time."""

    sites: tuple[tuple[str, Form], ...]
    anchors: tuple[str, ...]
    ratio: float


@dataclass(frozen=True, slots=True)
class Placement:
    """What a placement search found for one kernel.

    `kernel` is the name in the cubin, `digest` the sources' (as of a run: `digest_of_sources`). `uncovered` are keys in no set,
    `compiles` counts compilations that were not cached. `complete` is False where a budget or a failure ended the search early.
    `files` are the manifest's keys of the files that the kernel was traced through: no other file needs stamping. `toolchain` is
    what compiled the variants (`runtime.compilers`), empty where that is not known: with another, other sites may perturb.
    `floor` is 0 but where any stamp moves the schedule further than is near clean (three of four sites do so alone): then it is
    that distance, and the sets go up to as much more than it. What they cost only a measurement can say. `tried` is what
    replay sessions measured already.
    """

    schema_version: int
    kernel: str
    digest: str
    sites: tuple[PlacedSite, ...]
    sets: tuple[ReplaySet, ...]
    uncovered: tuple[str, ...]
    compiles: int
    complete: bool
    files: tuple[str, ...] = ()
    toolchain: str = ""
    floor: float = 0.0
    tried: tuple[TriedSet, ...] = ()


def site_key(file: SourceFile, site: Site) -> str:
    """`NAME:LINE:COLUMN@KEY`: the file's name without folders, position of the call, and the manifest's key of the content.

    A changed file has another key, so an old placement never selects sites of it by accident. No path of a machine is in it.
    """
    return key_at(file.path, file.key, site)


def key_at(path: str, key: str, site: Site | Skip) -> str:
    """The key of a call in the file at `path`, whose content has the manifest's `key`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{site.span.line}:{site.span.column}@{key}"
