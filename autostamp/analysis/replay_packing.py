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
"""A set with so few sites of its own is taken apart into single sites and single stamps at once, larger ones into parts first."""

FORESEEN: Final = 0.015
"""Schedule distance from which the parts of a set are run with it, where programs start side by side. Of FlashAttention's forward
kernel the sets that a search proposed at distances of 0.018 to 0.028 took 1.029 to 1.057 on an H200
(benchmarks/results/placement_sets_h200.json).
"""

SAME_STAMP: Final = {
    Form.EXIT: Form.CARRIED_EXIT, Form.CARRIED_EXIT: Form.EXIT, Form.BOTH: Form.BEFORE, Form.BEFORE: Form.BOTH,
}  # fmt: skip
"""Forms that give the same one stamp at another place."""

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
    0 is none, as for one that is not named. `inside` are sites of main loops, `roles` says whose, `forms` has those that a site
    can be stamped in.
    """

    bar: float
    most: int
    waits: Collection[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    inside: Collection[str] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Collection[Form]] = field(default_factory=dict)
    tried: dict[int, Tried] = field(default_factory=dict)
    _apart: set[int] = field(default_factory=set)
    _open: set[int] = field(default_factory=set)
    _asked: set[frozenset[Site]] = field(default_factory=set)
    _made_of: dict[int, frozenset[int]] = field(default_factory=dict)
    _anchored: dict[int, int] = field(default_factory=dict)

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
        """The sets that may be kept, in the order of their numbers; of one with and without a further anchor the former."""
        sets = {number: each for number, each in sorted(self.tried.items()) if each.is_within}
        without = {self._anchored[number] for number in sets if number in self._anchored}
        return [each for number, each in sets.items() if number not in without]

    def foreseen(self, trials: Sequence[Trial], distances: Mapping[int, float], first: int) -> list[Trial]:
        """Parts of the sets that will hardly stay within the bar, those of several sites and at least FORESEEN from the clean
        schedule, to be run with them: sites that are likely to cost also with one stamp, and beside anchors that change nothing.
        Numbered from `first`.
        """
        found: list[Trial] = []
        held: set[Stamp] = set()
        for each in trials:
            if distances.get(each.number, 0.0) < FORESEEN or len(each.own) < 2:
                continue
            self._apart.add(each.number)
            anchors = tuple(site for site in each.sites if site[0] in each.anchors)
            guide = self._guide(anchors)
            lighter = self._lighter(anchors, guide) if guide is not None else ()
            for part in self._pieces(self._sites(self.stamps(each.own) - held, each.own)):
                held |= self.stamps(part)
                is_likely = len(part) == 1 and self.weights.get(part[0][0], 0.0) > 0
                kept = lighter if is_likely and len(lighter) > 1 else anchors
                for sites in [(form,) for form in self._forms(part[0])] if is_likely else [tuple(part)]:
                    self._asked.add(frozenset((*kept, *sites)))
                    found.append(Trial(first + len(found), (*kept, *sites), tuple(key for key, _ in kept)))
        return found

    def ahead(self, left: Sequence[Trial]) -> list[Trial]:
        """What is worth running next time: the sets within the bar that are needed for what they cover, then those that are
        `left` to be run, and what else would be. Numbered from 1.
        """
        needed = [each.trial for each in self._needed(len(self.tried))]
        every = {frozenset(each.sites): each for each in (*needed, *left, *self.split(1), *self.merge(1))}
        return [Trial(number, each.sites, each.anchors) for number, each in enumerate(every.values(), 1)]

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
                    # Anchors are held by what is measured: in several sets that are too much they would be held by none.
                    held |= self.stamps(site for site in sites if site[0] not in anchors)
        return parts

    def _covered(self) -> set[Stamp]:
        return {stamp for each in self.within for stamp in self.stamps(each.trial.sites)}

    def _parts(self, tried: Tried, held: Collection[Stamp]) -> list[tuple[tuple[Site, ...], tuple[str, ...]]]:
        """Sites and anchors of what is to be run instead of a set above the bar."""
        trial = tried.trial
        anchors = tuple(site for site in trial.sites if site[0] in trial.anchors)
        own = self._sites(self.stamps(trial.own) - set(held), trial.own)
        loose = self._sites(self.stamps(anchors) - set(held), anchors)
        if len(anchors) > 1 and self._are_too_much(anchors):
            few = self._few(anchors)
            return [((*few, *own), tuple(key for key, _ in few))] if own else []
        found: list[tuple[Site, ...]] = []
        if len(own) > FEW:
            found += [(*anchors, *part) for part in self._pieces(own)]
        else:
            found += [(*anchors, each) for site in own for each in self._forms(site)]
        if len(trial.own) == 1 and len(own) == 1:
            found += [(*anchors, each) for each in self._elsewhere(own[0])]
        with_anchors = [(sites, trial.anchors) for sites in found if frozenset(sites) != frozenset(trial.sites)]
        guide = self._guide(anchors)
        if guide is None or len(anchors) == 1:
            return with_anchors
        if len(trial.own) <= 1 and len(own) == 1 and self._may_help(tried, anchors):
            kept = self._lighter(anchors, guide)
            # With fewer anchors a wait may be within the bar whole, which gives its stall from one replay.
            forms = dict.fromkeys([*self._forms(own[0]), *self._whole(own[0])])
            with_anchors += [((*kept, each), tuple(key for key, _ in kept)) for each in forms]
        if loose:
            # Anchors are sites, too: where every set with them costs too much, they are a set of their own.
            with_anchors.append((anchors, (guide[0],)))
        return with_anchors

    def _are_too_much(self, anchors: Sequence[Site]) -> bool:
        """Whether these anchors, or some of them, were run alone and took too long."""
        return any(set(each.trial.sites) <= set(anchors) and not each.is_within for each in self.tried.values())

    def _few(self, anchors: Sequence[Site]) -> tuple[Site, ...]:
        """One anchor for each role, the one that should cost least; none of a role whose every anchor is likely to cost, as long
        as another has one.
        """
        by_role: dict[str, list[Site]] = {}
        for site in anchors:
            by_role.setdefault(self.roles.get(site[0], ""), []).append(site)
        least = [
            min(each, key=lambda site: (self.weights.get(site[0], 0.0), len(self.stamps([site]))))
            for each in by_role.values()
        ]
        free = tuple(site for site in least if not self.weights.get(site[0], 0.0))
        return free or tuple(least[:1])

    def _forms(self, site: Site) -> list[Site]:
        """A wait whole, and with one stamp."""
        key, form = site
        if len(self._stamps_of(key, form)) < len((Form.ENTER, Form.EXIT)):
            return [site]
        return [site, (key, Form.ENTER), (key, Form.CARRIED_EXIT if form.is_carried else Form.EXIT)]

    def _whole(self, site: Site) -> list[Site]:
        """Half a wait with its other half."""
        return [(site[0], Form.BOTH)] if site[1] in (Form.ENTER, Form.EXIT) else []

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

    def _elsewhere(self, site: Site) -> list[Site]:
        """The same one stamp at another place, where the site can have it there."""
        key, form = site
        if len(self._stamps_of(key, form)) > 1 or form not in SAME_STAMP:
            return []
        return [(key, SAME_STAMP[form])] if SAME_STAMP[form] in self.forms.get(key, ()) else []

    def _pieces(self, own: Sequence[Site]) -> list[Sequence[Site]]:
        """Sites that are likely to cost, each alone; the others of main loops, a few in one; the rest in one. Where that is all
        in one, its first half and its second.
        """
        likely = [site for site in own if self.weights.get(site[0], 0.0)]
        inside = [site for site in own if site not in likely and site[0] in self.inside]
        rest = [site for site in own if site not in likely and site not in inside]
        parts: list[Sequence[Site]] = [rest] if rest else []
        parts += [inside[at : at + FEW] for at in range(0, len(inside), FEW)]
        parts += [[site] for site in likely]
        if len(parts) > 1:
            return parts
        middle = (len(own) + 1) // 2
        return [half for half in (own[:middle], own[middle:]) if half]

    def _guide(self, anchors: Sequence[Site]) -> Site | None:
        """The anchor to keep where only one can be: a signal if there is one, as it has one stamp."""
        return min(anchors, key=lambda site: len(self.stamps([site])), default=None)

    def _lighter(self, anchors: Sequence[Site], guide: Site) -> tuple[Site, ...]:
        """The anchors that change nothing, where others do; else the one to keep. Warps without an anchor are placed by others,
        which is far less exact.
        """
        free = tuple(site for site in anchors if not self.weights.get(site[0], 0.0))
        return free if 0 < len(free) < len(anchors) else (guide,)

    def _may_help(self, tried: Tried, anchors: Sequence[Site]) -> bool:
        """Whether a set may be within the bar without its anchors: not where all of them are in a set that costs little."""
        with_them = [each.ratio for each in self.tried.values() if set(anchors) <= set(each.trial.sites)]
        return tried.ratio - max(0.0, min(with_them) - 1.0) - NOISE <= self.bar

    def merge(self, first: int) -> list[Trial]:
        """Sets to be run as one, where more sets than `most` are needed: as many in each as should stay within the bar; where
        that was tried, pairs of them. Numbered from `first`; none where no more are needed, or nothing is left to try.
        """
        needed = self._needed(len(self.tried))
        if len(needed) <= self.most:
            return []
        merged: list[Trial] = []
        for group in (*self._bins(needed), *self._pairs(needed)):
            used = {number for each in merged for number in self._made_of[each.number]}
            if used & {each.trial.number for each in group}:
                continue
            sites = group[0].trial.sites
            for each in group[1:]:
                sites = self._united(sites, each.trial.sites)
            if frozenset(sites) in self._asked:
                continue
            self._asked.add(frozenset(sites))
            anchors = tuple(dict.fromkeys(key for each in group for key in each.trial.anchors))
            merged.append(Trial(first + len(merged), sites, anchors))
            self._made_of[merged[-1].number] = frozenset(each.trial.number for each in group)
            self._apart.add(merged[-1].number)  # its parts are within the bar
        return merged

    def anchored(self, first: int) -> list[Trial]:
        """The sets that are kept, each with an anchor more in every role where it shares no stamp with another of them, as far
        as that should stay within the bar; numbered from `first`. Where such a set is within the bar, it replaces the other.

        Without one its records of that role lie where other warps put them: in `gemm_ws.cu` on an H200 typically 103 cycles off,
        stated 1,720, instead of 17 and 186 (docs/replays.md).
        """
        kept = self._needed(self.most)
        floor = min((each.ratio for each in self.tried.values()), default=1.0)
        trials: list[Trial] = []
        for each in kept:
            others = [site for one in kept if one is not each for site in one.trial.sites]
            more, room = list[Site](), self.bar - NOISE - each.ratio
            for site in self._lacking(each, others):
                cost = self._least(site) - floor
                if cost <= room:
                    more.append(site)
                    room -= cost
            sites = self._united(each.trial.sites, more)
            if more and frozenset(sites) not in self._asked:
                self._asked.add(frozenset(sites))
                anchors = tuple(dict.fromkeys((*each.trial.anchors, *(key for key, _ in more))))
                trials.append(Trial(first + len(trials), sites, anchors))
                self._anchored[trials[-1].number] = each.trial.number
                self._apart.add(trials[-1].number)
        return trials

    def _lacking(self, tried: Tried, others: Sequence[Site]) -> list[Site]:
        """One site of others for each role in which a set has sites and shares no stamp with them, that which costs least."""
        shared = self.stamps(tried.trial.sites) & self.stamps(others)
        bound = {self.roles.get(key) for key, _ in shared}
        found: list[Site] = []
        for role in dict.fromkeys(self.roles[key] for key, _ in tried.trial.sites if key in self.roles):
            sites = [site for site in others if self.roles.get(site[0]) == role]
            if role not in bound and sites:
                found.append(min(sites, key=lambda site: (self._least(site), len(self.stamps([site])))))
        return found

    def _least(self, site: Site) -> float:
        """The least ratio of a set with this site."""
        return min(each.ratio for each in self.tried.values() if site in each.trial.sites)

    def _bins(self, needed: Sequence[Tried]) -> list[list[Tried]]:
        """Groups of sets, as many as are kept, that should take about the same time: each set, the dearest first, to the group
        that takes least so far. Costs are added up beyond what the cheapest set takes: of all, it has least beside what every
        stamped build does. A set that should be too much for any group stays alone.
        """
        floor = min(each.ratio for each in needed)
        bins: list[list[Tried]] = [[] for _ in range(self.most)]
        for each in sorted(needed, key=lambda each: -each.ratio):
            group = min(bins, key=lambda others: (sum(one.ratio - floor for one in others), len(others)))
            if not group or floor + sum(one.ratio - floor for one in (*group, each)) <= self.bar + NOISE:
                group.append(each)
        return [group for group in bins if len(group) > 1]

    def _pairs(self, needed: Sequence[Tried]) -> list[list[Tried]]:
        floor = min(each.ratio for each in needed)
        pairs = sorted(combinations(needed, 2), key=lambda pair: pair[0].ratio + pair[1].ratio)
        return [list(pair) for pair in pairs if pair[0].ratio + pair[1].ratio - floor <= self.bar + 2 * NOISE]

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
            best = max(left, key=lambda each: (*self._new(each, held), *self._merit(each)))
            new = self.stamps(best.trial.sites) - held
            if not new:
                break
            grown.append(best)
            held |= new
        return grown

    def _new(self, tried: Tried, held: Collection[Stamp]) -> tuple[int, int]:
        """How many stamps a set adds, and of how many sites that have none yet: a mark in one is more than a stall in another."""
        new = self.stamps(tried.trial.sites) - set(held)
        return len(new), len({key for key, _ in new} - {key for key, _ in held})

    def _merit(self, tried: Tried) -> tuple[bool, int, float]:
        """Of sets that cover as much: one that is clearly within the bar, with more anchors, that costs least."""
        return (tried.ratio <= self.bar - NOISE, len(tried.trial.anchors), -tried.ratio)

    def _pruned(self, found: Sequence[Tried]) -> list[Tried]:
        kept = list(found)
        for each in found:
            others = {stamp for one in kept if one is not each for stamp in self.stamps(one.trial.sites)}
            if self.stamps(each.trial.sites) <= others:
                kept.remove(each)
        return kept

    def refuse(self, number: int) -> None:
        """A set that cannot be joined to the others: what it cost stays known."""
        tried = self.tried[number]
        self.tried[number] = Tried(tried.trial, tried.ratio, is_within=False)

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
