# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before believing a timeline: lost records, warps that said nothing, sites that were not reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from autostamp.model.manifest import Manifest
from autostamp.model.timeline import Timeline, WarpTimeline
from autostamp.report.joined_notes import split_waits
from autostamp.report.places import Place, places_of
from autostamp.report.verdict_words import count_of, kernel_name, warps_of

_MOST_NAMED: Final = 4
_MOST_OPEN: Final = 4


def loud_notes(
    timeline: Timeline, manifest: Manifest, with_missed: bool = True, with_split: bool = True
) -> tuple[str, ...]:
    """One sentence each, most serious first; empty when there is nothing to say.

    `with_missed`: also sites not reached. `with_split`: also waits whose two stamps are of two replays.
    """
    places = places_of(manifest, timeline.trace)
    return (
        *timeline.warnings,
        *_losses(timeline),
        *_open_waits(timeline, places),
        *_silent(timeline),
        *_missing_roles(timeline, places),
        *(split_waits([timeline], places) if with_split else ()),
        *(_never_visited(timeline, places) if with_missed else ()),
    )


def placed_notes(told: Sequence[tuple[Timeline, str]], every: Sequence[Timeline]) -> tuple[str, ...]:
    """Each note once, with the CTAs that it is about in front where there are several: "launch 1 CTA (0, 0, 0): …", and the
    kernel, where there are several of these.
    """
    of: dict[str, list[Timeline]] = {}
    for timeline, note in told:
        of.setdefault(note, []).append(timeline)
    return tuple(f"{_about(timelines, every)}{note}" for note, timelines in of.items())


def _about(timelines: Sequence[Timeline], every: Sequence[Timeline]) -> str:
    if len(every) < 2:
        return ""
    if len(timelines) == len(every):
        return f"all {len(every)} timelines: "
    has_kernels = len({(each.trace, each.kernel) for each in every}) > 1
    has_launches = len({each.launch for each in every}) > 1
    names = []
    for each in timelines[:_MOST_NAMED]:
        kernel = f"{kernel_name(each.kernel)} " if has_kernels else ""
        names.append(f"{kernel}{f'launch {each.launch} ' if has_launches else ''}CTA {each.block}")
    more = f" and {len(timelines) - _MOST_NAMED} more" if len(timelines) > _MOST_NAMED else ""
    return f"{', '.join(names)}{more}: "


def open_wait(warp: WarpTimeline, instance: int, places: Mapping[int, Place]) -> str:
    """A wait that was entered and whose exit was not recorded."""
    place = places.get(instance)
    where = f"{place.label()} at {place.where}" if place else f"instance {instance}"
    why = "its exit may be among the lost records" if warp.lost else "never came out"
    return f"warp {warp.warp} entered {where}; {why}"


def _losses(timeline: Timeline) -> Iterator[str]:
    lossy = [warp for warp in timeline.warps if warp.lost]
    if len(lossy) > 1 and len(lossy) == len(timeline.warps):
        yield (
            f"all {len(lossy)} lanes were full: {timeline.lost:,} records are lost and the last part of no warp is shown;"
            " record again with a larger --capacity"
        )
    for warp in lossy:
        yield f"warp {warp.warp} lost {warp.lost:,} records: its lane was full, its last part is not shown"


def _open_waits(timeline: Timeline, places: Mapping[int, Place]) -> Iterator[str]:
    texts = [open_wait(warp, instance, places) for warp in timeline.warps for instance in warp.open_waits]
    yield from texts[:_MOST_OPEN]
    if len(texts) > _MOST_OPEN:
        yield f"{len(texts) - _MOST_OPEN:,} more waits were entered and have no exit"


def _silent(timeline: Timeline) -> Iterator[str]:
    """Roles whose warps bound their lanes and stamped nothing."""
    silent = {warp.warp for warp in timeline.warps if not (warp.slices or warp.signals or warp.open_waits)}
    for role in timeline.roles:
        if role.warps and silent.issuperset(role.warps):
            who = role.role if role.role.startswith("warp") else f"{role.role} (warps {warps_of(role.warps)})"
            yield f"{who} passed no stamp: what it did is unknown, and drawn as untracked"


def _missing_roles(timeline: Timeline, places: Mapping[int, Place]) -> Iterator[str]:
    """Roles of the source of which no recorded warp reached a stamp."""
    missed = set(timeline.never_visited)
    stamped: dict[str, list[int]] = {}
    for instance, place in places.items():
        if place.role:
            stamped.setdefault(place.role, []).append(instance)
    there = {role.role for role in timeline.roles}
    for role, instances in sorted(stamped.items()):
        if role not in there and missed.issuperset(instances):
            yield f"no recorded warp reached a stamp of the role {role} ({count_of(len(instances), 'instance')})"


def _never_visited(timeline: Timeline, places: Mapping[int, Place]) -> Iterator[str]:
    missed = timeline.never_visited
    if not missed:
        return
    named = [places[instance] for instance in missed[:_MOST_NAMED] if instance in places]
    listed = ", ".join(f"{place.label()} at {place.where}" for place in named)
    more = f" and {len(missed) - len(named)} more" if len(missed) > len(named) else ""
    why = " (or only after a lane was full)" if timeline.lost else ""
    yield f"{count_of(len(missed), 'stamped instance')} never visited by the recorded CTA{why}: {listed}{more}"
