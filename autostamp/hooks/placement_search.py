# SPDX-License-Identifier: Apache-2.0
"""The search for replay sets: each site alone, then sets that stay near clean together.

What a set costs is not the sum of what its sites cost, so every set that is proposed was compiled. The base of every set are
the anchors and all sites that change nothing; the other sites are packed onto it by halving what does not fit together.

Of some kernels any stamp at all makes another schedule. It may cost nothing all the same, so that no set is worse than sets that
move the schedule not much further than any stamp does: those are proposed, and said to be so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from autostamp.hooks.variants import Candidate, Measured, Sites, Target, Variants
from autostamp.model.placement import (
    MARKS,
    PLACEMENT_SCHEMA,
    Effect,
    Form,
    PlacedSite,
    Placement,
    ReplaySet,
    ScheduleFeatures,
    together,
)
from autostamp.passes import schedule_features

_SINGLE = (Form.ENTER, Form.EXIT)

ANCHOR_WAITS = 2
"""How many waits of a role are compiled with one stamp, to find its cheapest anchor."""

SOLO_SHARE = 0.6
"""How much of the budget single sites may take: without sets they are worth nothing."""

ANY = 0.25
"""What all but this share of the sites do to the schedule, any stamp does."""

FREE_TOGETHER = 0.1
"""What all free sites together may add to a set's distance, as a share of the limit; where no site is free, by how much those
that move the schedule least may differ."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Search:
    """One search. `limit` is the largest distance that is near clean; nothing is compiled after `deadline` by the `clock`.

    Afterwards `unanchored` has the roles for which no site can serve as an anchor, and `is_complete` is False where time ran out.
    `floor` is what any stamp moves the schedule by where that alone is over the limit, else 0.
    """

    variants: Variants
    jobs: int = 1
    limit: float = field(default_factory=lambda: schedule_features.weights().near_clean)
    deadline: float = float("inf")
    progress: Progress = lambda _what, _done, _all: None
    unanchored: tuple[str, ...] = ()
    is_complete: bool = True
    floor: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _until: float = float("inf")

    def run(self) -> Placement:
        """The placement, as far as the budget reaches."""
        target = self.variants.target
        begin = self.clock()
        self._until = begin + SOLO_SHARE * (self.deadline - begin)
        solos = self._solos(target.candidates)
        self._until = self.deadline
        usable = [each for each in solos if self._is_good(self._known(_alone(each.key, each.form)))]
        anchors = self._anchors(target, usable)
        fixed = self._fixed(anchors, usable)
        base = self._base(usable, fixed)
        rest = [(each.key, each.form) for each in usable if (each.key, each.form) not in base]
        sets = self._packed(base, fixed, rest)
        sets = self._rescued(sets, base, target.candidates)
        placed = {key for sites in sets for key, _ in sites}
        return Placement(
            schema_version=PLACEMENT_SCHEMA,
            kernel=target.symbol,
            digest=target.digest,
            sites=tuple(solos),
            sets=tuple(self._set(number, sites, fixed) for number, sites in enumerate(sets, 1)),
            uncovered=tuple(each.key for each in target.candidates if each.key not in placed),
            compiles=self.variants.compiles,
            complete=self.is_complete,
            files=target.files,
            toolchain=target.toolchain,
            floor=self.floor,
        )

    def stop(self) -> None:
        """End the search with what is known: nothing more is compiled, and what fails from now on says nothing of a site."""
        self.variants.is_stopped = True
        self.deadline = self._until = float("-inf")

    def _solos(self, candidates: Sequence[Candidate]) -> list[PlacedSite]:
        """Every site alone: in the usual form and, where that perturbs, in the others. A form that gives a wait's stall is
        taken before one that does not, then the one that moves least.
        """
        self._compile("sites", [_alone(each.key, Form.BOTH) for each in candidates])
        self.floor = self._least([_alone(each.key) for each in candidates])
        moving = [each for each in candidates if not self._is_good(self._known(_alone(each.key)))]
        self._compile("forms", [_alone(each.key, form) for each in moving for form in each.other_forms()])
        every = [_alone(each.key, form) for each in candidates for form in Form]
        if not self.floor and not any(self._is_good(self._known(sites)) for sites in every):
            self.floor = self._least(every, share=0.0)
        return [placed for each in candidates if (placed := self._solo(each, with_forms=each in moving)) is not None]

    def _least(self, alone: Sequence[Sites], share: float = ANY) -> float:
        """What any stamp moves the schedule by where that is over the limit, else 0: this share of them move it less."""
        known = sorted(made.features.distance for sites in alone if (made := self._known(sites)) is not None)
        at = int(share * len(known))
        if not known or (share and not at):  # of three sites no share says anything
            return 0.0
        return known[at] if known[at] > self.limit else 0.0

    def _solo(self, site: Candidate, *, with_forms: bool) -> PlacedSite | None:
        """One site in its best form; None where none compiled."""
        every = (Form.BOTH, *site.other_forms())
        forms = every if with_forms else every[:1]
        known = [(form, made) for form in forms if (made := self._known(_alone(site.key, form))) is not None]
        if not known:
            return None
        form, best = min(known, key=lambda item: (not self._is_good(item[1]), *_worth(*item)))
        if not self._is_good(best):  # no form helps: say what the site costs in full
            form, best = known[0]
        effect = schedule_features.effect(best.features)
        return PlacedSite(site.key, form, effect, best.features, every, tuple(sorted(best.roles)))

    def _anchors(self, target: Target, usable: Sequence[PlacedSite]) -> dict[str, Form]:
        """For each role the site in its main loop that moves least: visited every iteration, stamped in every set.

        One stamp is enough for an anchor, so a wait may be one in a cheaper form than the one in which it is covered.
        """
        waits = {each.key for each in target.candidates if each.is_wait}
        roles = {each.key: each.roles for each in target.candidates}
        found: dict[str, Form] = {}
        missing: list[str] = []
        for role in dict.fromkeys(role for each in target.candidates for role in each.roles if role):
            looped = [each for each in usable if roles[each.key] == (role,) and each.loops]
            # A role has a loop around its main loop, and one behind it: visited once a tile.
            here = [each for each in looped if role in each.loops] or looped
            here.sort(key=lambda each: each.features.distance)
            if here and not self._is_free(here[0]):
                near = [each.key for each in here if each.form is Form.BOTH and each.key in waits][:ANCHOR_WAITS]
                self._compile("anchors", [_alone(key, form) for key in near for form in _SINGLE])
            options = [(each.key, form) for each in here for form in {each.form, *_SINGLE}]
            known = {site: made for site in options if (made := self._known(frozenset({site}))) is not None}
            if known:
                key, form = min(known, key=lambda site: _dearness(known[site].features, site[1]))
                found[key] = form
            elif self.is_complete or self._are_compiled(each.key for each in target.candidates if role in each.roles):
                missing.append(role)
        self.unanchored = tuple(missing)
        return found

    def _are_compiled(self, keys: Iterable[str]) -> bool:
        return all(self._known(_alone(key)) is not None for key in keys)

    def _is_free(self, site: PlacedSite) -> bool:
        """Whether a site does no more than any stamp does."""
        if not self.floor:
            return site.effect is Effect.FREE
        return site.features.distance <= self.floor + FREE_TOGETHER * self.limit

    def _fixed(self, anchors: Mapping[str, Form], usable: Sequence[PlacedSite]) -> Sites:
        """The anchors, as many as are near clean together, with the other free sites of main loops: what is visited in every
        iteration and costs nothing makes the map from one replay to another closer.
        """
        kept: Sites = frozenset()
        for site in (frozenset(anchors.items()), *(frozenset({each}) for each in anchors.items())):
            if site and not site <= kept and self._is_good(self._measured(kept | site)):
                kept |= site
        if self.floor:  # what moves the schedule as the least stamp does need not cost as little
            return kept
        roles = {each.key: set(each.roles) for each in self.variants.target.candidates}
        own = [each for each in usable if roles[each.key] & set(each.loops)]
        return self._grown(kept, [each for each in own if self._is_free(each)])

    def _base(self, usable: Sequence[PlacedSite], fixed: Sites) -> Sites:
        """The anchors with the sites that are free alone, as many as are near clean together and cost no more than they do."""
        return fixed if self.floor else self._grown(fixed, [each for each in usable if self._is_free(each)])

    def _grown(self, kept: Sites, more: Sequence[PlacedSite]) -> Sites:
        """With all of these sites or a half of them, where that moves the schedule no further."""
        made = self._measured(kept) if kept else None
        limit = (made.features.distance if made is not None else 0.0) + FREE_TOGETHER * self.limit
        free = [(each.key, each.form) for each in more]
        for part in (free, free[: len(free) // 2], free[len(free) // 2 :]):
            wanted = union(kept, part)
            found = self._measured(wanted) if wanted != kept else None
            if found is not None and found.features.distance <= limit:
                kept = wanted
        return kept

    def _packed(self, base: Sites, fixed: Sites, rest: Sequence[tuple[str, Form]]) -> list[Sites]:
        """Sets that hold the base, or at least the anchors, and together all of `rest`: as few as halving and merging find."""
        groups = self._split(base, list(rest))
        merged: list[Sites] = []
        for group in sorted(groups, key=len, reverse=True):
            for index, other in enumerate(merged):
                if self._is_good(self._measured(union(base, other, group))):
                    merged[index] = other | group
                    break
            else:
                merged.append(group)
        sets = [union(base, group) for group in self._moved(base, merged)]
        covered = {site for sites in sets for site in sites}
        for site in rest:
            if site not in covered and not self._is_late():
                own = self._beside(site[0], fixed)
                moving = frozenset(each for each in own if not self._changes_nothing(each))
                options = (
                    union(fixed, [site]),
                    union(base - moving, [site]),
                    union(base - own, [site]),
                    union(fixed - own, [site]),
                    frozenset({site}),
                )
                sets += [each for each in options if self._is_good(self._measured(each))][:1]
        held = {key for sites in sets for key, _ in sites}
        return sets if {key for key, _ in base} <= held else [base, *sets]

    def _rescued(self, sets: list[Sites], base: Sites, candidates: Sequence[Candidate]) -> list[Sites]:
        """The sets with sites that perturb alone and do not in company: in a set, or two of them on the base."""
        held = {key for sites in sets for key, _ in sites}
        left = [each for each in candidates if each.key not in held and self._known(_alone(each.key)) is not None]
        sets = list(sets)
        for each in left:
            forms = [Form.BOTH, *each.other_forms()]
            grown = [(at, union(sites, [(each.key, form)])) for form in forms for at, sites in enumerate(sets)]
            self._compile("company", [sites for _, sites in grown])
            for at, sites in grown:
                if self._is_good(self._known(sites)):
                    sets[at] = sites
                    held.add(each.key)
                    break
        left = [each for each in left if each.key not in held]
        pairs = [union(base, _alone(one.key), _alone(two.key)) for one, two in combinations(left, 2)]
        self._compile("company", pairs)
        for sites in pairs:
            if not {key for key, _ in sites} <= held | {key for key, _ in base} and self._is_good(self._known(sites)):
                sets.append(sites)
                held |= {key for key, _ in sites}
        return sets

    def _beside(self, key: str, fixed: Sites) -> Sites:
        """The anchors of the site's own roles: beside it in one loop they may be too much, where those of others are not."""
        roles = {each.key: frozenset(each.roles) for each in self.variants.target.candidates}
        return frozenset(each for each in fixed if roles[each[0]] & roles[key])

    def _changes_nothing(self, site: tuple[str, Form]) -> bool:
        made = self._known(frozenset({site}))
        return made is not None and made.features.distance <= schedule_features.weights().free

    def _split(self, base: Sites, rest: list[tuple[str, Form]]) -> list[Sites]:
        """Groups that each stay near clean on the base; a site that does not, with nothing else, is left out."""
        if not rest:
            return []
        if self._is_good(self._measured(union(base, rest))):
            return [frozenset(rest)]
        if len(rest) == 1:
            return []
        half = len(rest) // 2
        parts = rest[:half], rest[half:]
        self._compile("sets", [union(base, part) for part in parts])
        return [group for part in parts for group in self._split(base, part)]

    def _moved(self, base: Sites, groups: list[Sites]) -> list[Sites]:
        """The smallest groups dissolved, where each of their sites fits into another one."""
        groups = sorted(groups, key=len, reverse=True)
        while len(groups) > 1:
            others = list(groups[:-1])
            for site in sorted(groups[-1]):
                fitting = (
                    n for n, each in enumerate(others) if self._is_good(self._measured(union(base, each, [site])))
                )
                index = next(fitting, None)
                if index is None:
                    return groups
                others[index] |= {site}
            groups = others
        return groups

    def _compile(self, what: str, wanted: Iterable[Sites]) -> None:
        """Compile what is not known yet, a batch of `jobs` at a time, until the deadline."""
        every = list(dict.fromkeys(wanted))
        for start in range(0, len(every), self.jobs):
            self.progress(what, start, len(every))
            if self._is_late():
                return
            self.variants.measure_all(every[start : start + self.jobs], self.jobs)
        self.progress(what, len(every), len(every))

    def _measured(self, sites: Sites) -> Measured | None:
        """The variant, compiled if there is time."""
        known = self._known(sites)
        if known is not None or self._is_late():
            return known
        self.progress("sets", self.variants.compiles, 0)
        return self.variants.measure(sites)

    def _known(self, sites: Sites) -> Measured | None:
        return self.variants.known(sites)

    def _is_good(self, made: Measured | None) -> bool:
        return made is not None and made.features.distance <= self.floor + self.limit

    def _is_late(self) -> bool:
        late = self.clock() > self._until
        if late:
            self.is_complete = False
        return late

    def _set(self, number: int, sites: Sites, fixed: Sites) -> ReplaySet:
        made = self.variants.measure(sites)
        assert made is not None
        keys = {key for key, _ in sites}
        anchors = tuple(each.key for each in self.variants.target.candidates if each.key in keys & dict(fixed).keys())
        return ReplaySet(number, tuple(sorted(sites)), anchors, made.features)


def union(*groups: Iterable[tuple[str, Form]]) -> Sites:
    """All sites of several groups; one that is in two forms gets the stamps of both."""
    forms: dict[str, Form] = {}
    for key, form in (site for group in groups for site in group):
        forms[key] = together(forms.get(key, form), form)
    return frozenset(forms.items())


def _alone(key: str, form: Form = Form.BOTH) -> Sites:
    return frozenset({(key, form)})


def _worth(form: Form, made: Measured) -> tuple[bool, float]:
    """What decides between forms of one site: whether a stamp of a wait is missing, then the distance."""
    return (form in MARKS, made.features.distance)


def _dearness(found: ScheduleFeatures, form: Form) -> tuple[float, int, bool]:
    """What decides between anchors: distance, then how many waits moved, then whether a stamp is missing."""
    return (found.distance, len(found.waits_moved), form is not Form.BOTH)
