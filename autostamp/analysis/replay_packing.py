# SPDX-License-Identifier: Apache-2.0
"""Which replay sets to run next, which to keep: decided from the sets that were run and what they cost.

A **stamp** is what is covered: a signal has one, a wait two, its enter and its exit. A set above the bar is taken apart, but only
for stamps that no set within the bar has. At the end the sets that cover most are kept, never more than asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, TypeAlias

from autostamp.analysis.replay_sets import Trial
from autostamp.model.placement import Form, together

Stamp: TypeAlias = tuple[str, Form]
"""A site's key with ENTER or EXIT for a wait, BOTH for a signal."""

Site: TypeAlias = tuple[str, Form]

FEW: Final = 4
"""A set with so few sites of its own is taken apart into single sites and single stamps at once, larger ones into two."""

NOISE: Final = 0.002
"""What a ratio may be off by: by so much clean runs of one program differ on an H200."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A set that was run: `ratio` is stamped ÷ clean time. `is_within`: it may be kept."""

    trial: Trial
    ratio: float
    is_within: bool


@dataclass
class Packing:
    """The sets of one replay session. `most` are kept, `waits` are keys of waits, `weights` say which sites are likely to cost:
    0 is none, as for one that is not named.
    """

    bar: float
    most: int
    waits: Collection[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    tried: dict[int, Tried] = field(default_factory=dict)
    _apart: set[int] = field(default_factory=set)
    _open: set[int] = field(default_factory=set)
    _asked: set[frozenset[Site]] = field(default_factory=set)

    def add(self, tried: Tried, *, is_settled: bool = True) -> None:
        """Take note of what a set cost; of one that was run again, the newer number counts. One that is not settled, because it
        lies at the bar, is not taken apart yet.
        """
        self.tried[tried.trial.number] = tried
        (self._open.discard if is_settled else self._open.add)(tried.trial.number)
        self._asked.add(frozenset(tried.trial.sites))

    def keep_whole(self, number: int) -> None:
        """Never take this set apart: its parts are run anyway."""
        self._apart.add(number)

    def stamps(self, sites: Iterable[Site]) -> frozenset[Stamp]:
        """What these sites stamp, wherever the stamps stand."""
        return frozenset((key, each) for key, form in sites for each in self._stamps_of(key, form))

    def _stamps_of(self, key: str, form: Form) -> tuple[Form, ...]:
        if form is Form.BEFORE or (form is Form.BOTH and key not in self.waits):
            return (Form.BOTH,)
        return (*((Form.ENTER,) if form.has_enter else ()), *((Form.EXIT,) if form.has_exit else ()))

    @property
    def within(self) -> list[Tried]:
        """The sets that may be kept, in the order of their numbers."""
        return [self.tried[number] for number in sorted(self.tried) if self.tried[number].is_within]

    def split(self, first: int) -> list[Trial]:
        """Parts of the sets above the bar, as far as no set within it has their stamps; numbered from `first`.

        Each set is taken apart once, and every part has fewer stamps than it. So this ends.
        """
        held = self._covered()
        parts: list[Trial] = []
        for number in sorted(self.tried):
            each = self.tried[number]
            if each.is_within or number in self._apart | self._open:
                continue
            self._apart.add(number)
            for sites, anchors in self._parts(each, held):
                if frozenset(sites) not in self._asked:
                    self._asked.add(frozenset(sites))
                    parts.append(Trial(first + len(parts), sites, anchors))
                    held |= self.stamps(sites)
        return parts

    def _covered(self) -> set[Stamp]:
        return {stamp for each in self.within for stamp in self.stamps(each.trial.sites)}

    def _parts(self, tried: Tried, held: Collection[Stamp]) -> list[tuple[tuple[Site, ...], tuple[str, ...]]]:
        """Sites and anchors of what is to be run instead of a set above the bar."""
        trial = tried.trial
        anchors = tuple(site for site in trial.sites if site[0] in trial.anchors)
        own = self._sites(self.stamps(trial.own) - set(held), trial.own)
        loose = self._sites(self.stamps(anchors) - set(held), anchors)
        found: list[tuple[Site, ...]] = []
        if len(own) > FEW:
            found += [(*anchors, *half) for half in self._halves(own)]
        else:
            found += [(*anchors, each) for site in own for each in self._forms(site)]
        with_anchors = [(sites, trial.anchors) for sites in found if frozenset(sites) != frozenset(trial.sites)]
        guide = self._guide(anchors)
        if guide is None or len(anchors) == 1:
            return with_anchors
        if len(trial.own) <= 1 and len(own) == 1 and self._may_help(tried, anchors):
            with_anchors += [((guide, each), (guide[0],)) for each in self._forms(own[0])]
        if loose:
            # Anchors are sites, too: where every set with them costs too much, they are a set of their own.
            with_anchors.append((anchors, (guide[0],)))
        return with_anchors

    def _forms(self, site: Site) -> list[Site]:
        """A wait whole, and with one stamp."""
        key, form = site
        if len(self._stamps_of(key, form)) < len((Form.ENTER, Form.EXIT)):
            return [site]
        return [site, (key, Form.ENTER), (key, Form.CARRIED_EXIT if form.is_carried else Form.EXIT)]

    def _sites(self, stamps: Collection[Stamp], order: Sequence[Site]) -> list[Site]:
        """Stamps as sites, in the forms that these have: both of a wait are one."""
        found: list[Site] = []
        for key, form in order:
            own = self.stamps([(key, form)])
            here = [each for each in own if each in stamps]
            if len(here) == len(own):
                found.append((key, form))
            elif here:
                found.append((key, Form.CARRIED_EXIT) if form.is_carried and here[0][1] is Form.EXIT else here[0])
        return found

    def _halves(self, own: Sequence[Site]) -> tuple[Sequence[Site], Sequence[Site]]:
        """Sites that are likely to cost and those that are not; where all are of one kind, the first half and the second."""
        order = sorted(own, key=lambda site: self.weights.get(site[0], 0.0))
        at = sum(not self.weights.get(key, 0.0) for key, _ in order)
        middle = at if 0 < at < len(order) else (len(order) + 1) // 2
        return order[:middle], order[middle:]

    def _guide(self, anchors: Sequence[Site]) -> Site | None:
        """The anchor to keep where only one can be: a signal if there is one, as it has one stamp."""
        return min(anchors, key=lambda site: len(self.stamps([site])), default=None)

    def _may_help(self, tried: Tried, anchors: Sequence[Site]) -> bool:
        """Whether a set may be within the bar without its anchors: not where all of them are in a set that costs little."""
        with_them = [each.ratio for each in self.tried.values() if set(anchors) <= set(each.trial.sites)]
        return tried.ratio - max(0.0, min(with_them) - 1.0) - NOISE <= self.bar

    def merge(self, first: int) -> list[Trial]:
        """Pairs of sets to be run as one, where more sets than `most` are needed: those that should cost least. Numbered from
        `first`; none where no more are needed, or nothing is left to try.
        """
        needed = self._needed(len(self.tried))
        if len(needed) <= self.most:
            return []
        floor = min(1.0, *(each.ratio for each in needed))
        pairs = sorted(combinations(needed, 2), key=lambda pair: pair[0].ratio + pair[1].ratio)
        merged: list[Trial] = []
        used: set[int] = set()
        for one, two in pairs:
            if one.ratio + two.ratio - floor > self.bar + 2 * NOISE or {one.trial.number, two.trial.number} & used:
                continue
            sites = self._united(one.trial.sites, two.trial.sites)
            if frozenset(sites) in self._asked:
                continue
            self._asked.add(frozenset(sites))
            used |= {one.trial.number, two.trial.number}
            anchors = tuple(dict.fromkeys((*one.trial.anchors, *two.trial.anchors)))
            merged.append(Trial(first + len(merged), sites, anchors))
            self._apart.add(merged[-1].number)  # its parts are within the bar
        return merged

    def _united(self, one: Iterable[Site], two: Iterable[Site]) -> tuple[Site, ...]:
        forms: dict[str, Form] = {}
        for key, form in (*one, *two):
            forms[key] = together(forms.get(key, form), form)
        return tuple(forms.items())

    def chosen(self) -> list[Tried]:
        """At most `most` sets within the bar that cover most stamps; of equals those that cost least."""
        return self._needed(self.most)

    def _needed(self, most: int) -> list[Tried]:
        """Greedy: the set with most new stamps next; then those go that the others made superfluous, and others may come."""
        found: list[Tried] = []
        while True:
            grown = self._pruned(self._grown(found, most))
            if grown == found:
                return sorted(found, key=lambda each: each.trial.number)
            found = grown

    def _grown(self, found: Sequence[Tried], most: int) -> list[Tried]:
        grown = list(found)
        held = {stamp for each in grown for stamp in self.stamps(each.trial.sites)}
        left = self.within
        while left and len(grown) < most:
            best = max(left, key=lambda each: (len(self.stamps(each.trial.sites) - held), -each.ratio))
            new = self.stamps(best.trial.sites) - held
            if not new:
                break
            grown.append(best)
            held |= new
        return grown

    def _pruned(self, found: Sequence[Tried]) -> list[Tried]:
        kept = list(found)
        for each in found:
            others = {stamp for one in kept if one is not each for stamp in self.stamps(one.trial.sites)}
            if self.stamps(each.trial.sites) <= others:
                kept.remove(each)
        return kept

    def forget(self, number: int) -> None:
        """A set that cannot be kept, whatever it costs: its program failed, or gave other results."""
        self.tried.pop(number, None)

    def evidence(self, key: str) -> dict[Form, Tried]:
        """What says most of a site's cost, for each form in which it was run: a set within the bar, else the smallest one."""
        found: dict[Form, Tried] = {}
        for form in Form:
            with_it = [each for each in self.tried.values() if (key, form) in each.trial.sites]
            if with_it:
                found[form] = min(with_it, key=self._as_evidence)
        return found

    def _as_evidence(self, tried: Tried) -> tuple[bool, int, float]:
        return (not tried.is_within, len(self.stamps(tried.trial.own)), tried.ratio)
