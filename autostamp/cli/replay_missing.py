# SPDX-License-Identifier: Apache-2.0
"""What a joined run does not cover, why, and what it would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autostamp.analysis.replay_packing import Packing, Stamp, Tried
    from autostamp.cli.replay_options import ReplayChoices
    from autostamp.model.placement import Form, Placement
    from autostamp.model.replay import Refusal, ReplayedSet, Uncovered


@dataclass(frozen=True)
class Missing:
    """`codes` say why sites of sets are missing that failed, or could not be joined."""

    placement: Placement
    packing: Packing
    asked: ReplayChoices
    codes: Mapping[str, str]

    def _stamps(self, sets: Sequence[ReplayedSet]) -> dict[str, list[Stamp]]:
        """The stamps that no set has, by site: of all sites of the placement and all that were run."""
        from autostamp.model.placement import Form

        tried = [site for each in self.packing.tried.values() for site in each.trial.sites]
        sites = [site for each in self.placement.sets for site in each.sites]
        left = [(key, Form.BOTH) for key in (*(each.key for each in self.placement.sites), *self.placement.uncovered)]
        held = {stamp for each in sets for stamp in self.packing.stamps(each.sites)}
        found: dict[str, list[Stamp]] = {}
        for site in dict.fromkeys((*sites, *tried, *left)):
            for stamp in sorted(self.packing.stamps([site]) - held):
                of_site = found.setdefault(site[0], [])
                if stamp not in of_site:
                    of_site.append(stamp)
        return found

    def refusals(self, sets: Sequence[ReplayedSet]) -> list[Refusal]:
        """The sets that would be needed for what is missing, and why they are not there."""
        from autostamp.model.replay import Refusal

        found: dict[int, Refusal] = {}
        joined = {each.number for each in sets}
        for key in self._stamps(sets):
            for tried in self.packing.evidence(key).values():
                number, said = tried.trial.number, f"it takes {tried.ratio:.3f} of the clean time"
                if key in self.codes or number in joined:
                    continue
                if tried.is_within:
                    found[number] = Refusal(number, "AS8132", f"{said}, and {self.asked.sets} others cover more")
                else:
                    found[number] = Refusal(number, "AS8126", f"{said}, and the bar is {self.asked.bar:.3f}")
        return [found[number] for number in sorted(found)]

    def uncovered(self, sets: Sequence[ReplayedSet]) -> tuple[Uncovered, ...]:
        """The sites of which no set has a stamp, with their measured cost; where none was run, with their distance."""
        from autostamp.model.replay import Uncovered

        there = {key for each in sets for key, _ in each.sites}
        solo = {
            each.key: f"{each.effect}, schedule distance {each.features.distance:.2f}" for each in self.placement.sites
        }
        found = []
        for key in self._stamps(sets):
            if key not in there:
                evidence = self.packing.evidence(key)
                is_within = any(each.is_within for each in evidence.values())
                code = self.codes.get(key, "AS8132" if is_within else "AS8126")
                cost = self._cost(key, evidence) or self._earlier(key)
                cost = cost or f"{solo.get(key, 'its schedule distance is unknown')}; not run"
                found.append(Uncovered(key, cost, code))
        return tuple(found)

    def notes(self, sets: Sequence[ReplayedSet]) -> list[str]:
        """Of the waits that have one stamp, which, and what was measured of the other."""
        from autostamp.model.placement import MARKS, Form

        found = []
        forms: dict[str, set[Form]] = {}
        for key, form in (stamp for each in sets for stamp in self.packing.stamps(each.sites)):
            forms.setdefault(key, set()).add(form)
        for key in self._stamps(sets):
            held = forms.get(key, set())
            has_both = not held <= set(MARKS) or (Form.ENTER in held and len(held) > 1)  # of two sets, too: a stall
            if held and not has_both:
                cost = self._cost(key, self.packing.evidence(key))
                name = next(form for form in MARKS if form in held)
                found.append(f"{key.rpartition('@')[0]} has its {name} only, a mark in time and no stall: {cost}")
        return found

    def _earlier(self, key: str) -> str:
        """What sessions before this one measured of a site that this one did not run."""
        from autostamp.analysis.replay_packing import Packing, Tried
        from autostamp.analysis.replay_sets import Trial

        known = Packing(self.asked.bar, self.asked.sets, self.packing.waits)
        for number, each in enumerate(self.placement.tried, 1):
            known.add(Tried(Trial(number, each.sites, each.anchors), each.ratio, each.ratio <= self.asked.bar))
        found = self._cost(key, known.evidence(key))
        return found and f"{found}; in an earlier session"

    def _cost(self, key: str, evidence: Mapping[Form, Tried]) -> str:
        """`1.081 of the clean time alone beside 4 anchors; enter only 1.012 alone`."""
        from autostamp.model.placement import MARKS, Form

        parts = []
        for form, tried in evidence.items():
            others = len({other for other, _ in tried.trial.own} - {key})
            anchors = len({*tried.trial.anchors} - {key})
            company = f"with {others} other site{'s' * (others != 1)}" if others else "alone"
            company += f" beside {anchors} anchor{'s' * (anchors != 1)}" if anchors else ""
            what = (
                f"{tried.ratio:.3f} of the clean time"
                if form is Form.BOTH
                else f"{form}{' only' * (form in MARKS)} {tried.ratio:.3f}"
            )
            parts.append(f"{what} {company}")
        return "; ".join(parts)
