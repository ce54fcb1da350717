# SPDX-License-Identifier: Apache-2.0
"""One kernel in two runs: what changed by role and by wait, and whether it is more than noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autostamp.analysis.spreads import ROLE_FIELDS, by_launch, change, role_values, roles_of
from autostamp.model.comparison import Change, Comparison, Growth, RoleChange, SiteChange, SitePlace
from autostamp.model.manifest import Manifest
from autostamp.model.timeline import SiteStall, Timeline


@dataclass(frozen=True, slots=True)
class Sample:
    """All recorded CTAs and launches of one kernel in one run, and the manifest that names its sites.

    `periods` has the median period of each timeline's steady state, None where it has none; empty where none was looked for.
    """

    manifest: Manifest
    timelines: tuple[Timeline, ...]
    periods: tuple[float | None, ...] = ()


def compare(first: Sample, second: Sample) -> Comparison:
    """What changed from the first run to the second. Only CTAs that both have are compared, unless they have none in common."""
    notes = []
    blocks = {each.block for each in first.timelines} & {each.block for each in second.timelines}
    if blocks:
        first, second = _within(first, blocks), _within(second, blocks)
    else:
        notes.append("the runs have no CTA in common: different ones are compared")
    launches = tuple(len({each.launch for each in sample.timelines}) for sample in (first, second))
    if min(launches) < 2:
        notes.append("a run has one launch only, so the noise is unknown: record more with --repeat")
    before, after = first.timelines, second.timelines
    sites, only_first, only_second = _sites(first, second)
    return Comparison(
        kernel=before[0].kernel,
        launches=(launches[0], launches[1]),
        blocks=len(blocks) or len({each.block for each in before}),
        cycles=change("CTA", by_launch(before, _cycles), by_launch(after, _cycles)),
        period=_period(first, second),
        roles=tuple(_role(role, before, after) for role in dict.fromkeys((*roles_of(before), *roles_of(after)))),
        sites=sites,
        only_first=only_first,
        only_second=only_second,
        notes=tuple(notes),
    )


def growths(of: Comparison, percent: float) -> tuple[Growth, ...]:
    """What grew by more than `percent`, and by more than noise where that is known.

    That is a CTA's time, the period, and the stall of each role and each wait, as a part of the role's span in the first run.
    """
    spans = {role.role: role.changes[0].first.median for role in of.roles}
    candidates = [("a CTA's cycles", of.cycles, of.cycles.first.median)]
    if of.period is not None:
        candidates.append(("the period", of.period, of.period.first.median))
    for role in of.roles:
        stall = next(each for each in role.changes if each.name == "stall")
        candidates.append((f"the stall of {role.role}", stall, spans[role.role]))
    for site in of.sites:
        place = site.second
        what = f"the stall of {place.role} at {place.file}:{place.line}"
        candidates.append((what, site.stall, spans.get(place.role, 0.0)))
    return tuple(
        Growth(what, 100 * found.delta / whole, found.noise is not None)
        for what, found, whole in candidates
        if whole > 0 and 100 * found.delta / whole > percent and (found.noise is None or found.is_change)
    )


def _cycles(timeline: Timeline) -> float:
    return float(timeline.cycles)


def _within(sample: Sample, blocks: set[tuple[int, int, int]]) -> Sample:
    kept = [at for at, timeline in enumerate(sample.timelines) if timeline.block in blocks]
    periods = tuple(sample.periods[at] for at in kept) if sample.periods else ()
    return replace(sample, timelines=tuple(sample.timelines[at] for at in kept), periods=periods)


def _period(first: Sample, second: Sample) -> Change | None:
    values = [_periods_by_launch(sample) for sample in (first, second)]
    return change("period", *values) if all(values) else None


def _periods_by_launch(sample: Sample) -> list[float]:
    pairs = [(at, period) for at, period in zip(sample.timelines, sample.periods, strict=False) if period is not None]
    known = {id(timeline): period for timeline, period in pairs}
    return by_launch([timeline for timeline, _ in pairs], lambda timeline: known[id(timeline)])


def _role(role: str, before: Sequence[Timeline], after: Sequence[Timeline]) -> RoleChange:
    return RoleChange(
        role,
        tuple(change(name, role_values(before, role, name), role_values(after, role, name)) for name in ROLE_FIELDS),
    )


def _sites(
    first: Sample, second: Sample
) -> tuple[tuple[SiteChange, ...], tuple[SitePlace, ...], tuple[SitePlace, ...]]:
    """Waits of both runs, those with the largest difference of stall first; and those of one run only."""
    before, after = _by_place(first), _by_place(second)
    pairs = _paired(sorted(before, key=_order), sorted(after, key=_order))
    found = [
        SiteChange(
            old,
            new,
            change("stall", _totals(before[old], first, _stall), _totals(after[new], second, _stall)),
            change("count", _totals(before[old], first, _count), _totals(after[new], second, _count)),
        )
        for old, new in pairs
    ]
    found.sort(key=lambda site: (-abs(site.stall.delta), _order(site.first)))
    old_ones, new_ones = {old for old, _ in pairs}, {new for _, new in pairs}
    return (
        tuple(found),
        tuple(sorted(before.keys() - old_ones, key=_order)),
        tuple(sorted(after.keys() - new_ones, key=_order)),
    )


def _order(place: SitePlace) -> tuple[str, int, str, str, str]:
    return place.file, place.line, place.text, place.barrier, place.role


def _name(place: SitePlace) -> tuple[str, str, str, str]:
    return place.file, place.text, place.barrier, place.role


def _paired(before: Sequence[SitePlace], after: Sequence[SitePlace]) -> list[tuple[SitePlace, SitePlace]]:
    """Places of equal file, text, barrier and role. Of several, those on equal lines where one run has more, then in order."""
    pairs: list[tuple[SitePlace, SitePlace]] = []
    for name in dict.fromkeys(_name(place) for place in before):
        old = [place for place in before if _name(place) == name]
        new = [place for place in after if _name(place) == name]
        if len(old) != len(new):
            lines = {place.line for place in old} & {place.line for place in new}
            pairs += zip(
                [place for place in old if place.line in lines],
                [place for place in new if place.line in lines],
                strict=True,
            )
            old = [place for place in old if place.line not in lines]
            new = [place for place in new if place.line not in lines]
        pairs += zip(old, new, strict=False)
    return pairs


def _by_place(sample: Sample) -> dict[SitePlace, dict[int, list[SiteStall]]]:
    """The stalls of each wait by launch."""
    found: dict[SitePlace, dict[int, list[SiteStall]]] = {}
    places = {number: _places(sample.manifest, number) for number in {each.trace for each in sample.timelines}}
    for timeline in sample.timelines:
        for site in timeline.sites:
            place = replace(places[timeline.trace][site.instance], role=site.role)
            found.setdefault(place, {}).setdefault(timeline.launch, []).append(site)
    return found


def _places(manifest: Manifest, trace: int) -> Mapping[int, SitePlace]:
    """The place of every instance of a kernel trace, its role left empty."""
    sites = {(file.key, site.number): (file.path, site) for file in manifest.files for site in file.sites}
    kernel = next(kernel for kernel in manifest.traces if kernel.number == trace)
    labels = {barrier.number: barrier.label for barrier in kernel.barriers}
    found: dict[int, SitePlace] = {}
    for instance in kernel.instances:
        path, site = sites.get((instance.file, instance.site), (instance.file, None))
        name = path.replace("\\", "/").rsplit("/", 1)[-1]
        text, line = (" ".join(site.text.split()), site.span.line) if site else ("", 0)
        found[instance.number] = SitePlace(name, text, labels.get(instance.barrier, ""), "", line)
    return found


def _totals(
    stalls: Mapping[int, Sequence[SiteStall]], sample: Sample, value: Callable[[SiteStall], float]
) -> list[float]:
    """A wait's figure by launch: the sum over all warps, mean over CTAs, 0 where it never stalled."""
    ctas = Counter(timeline.launch for timeline in sample.timelines)
    return [sum(value(site) for site in stalls.get(launch, ())) / ctas[launch] for launch in sorted(ctas)]


def _stall(site: SiteStall) -> float:
    return float(site.spread.total)


def _count(site: SiteStall) -> float:
    return float(site.spread.count)
