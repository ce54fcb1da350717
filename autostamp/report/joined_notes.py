# SPDX-License-Identifier: Apache-2.0
"""What a reader of a joined timeline must know: waits whose stall is not known, or not well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Final

from autostamp.model.manifest import Manifest
from autostamp.model.placement import key_at
from autostamp.model.replay import Replays
from autostamp.model.sync import Kind
from autostamp.model.timeline import Slice, State, Timeline
from autostamp.report.places import Place, places_of
from autostamp.report.verdict_words import count_of

_MOST_NAMED: Final = 6


def unrecorded_waits(replays: Replays, manifest: Manifest, trace: int) -> tuple[str, ...]:
    """A sentence on the waits of a kernel trace that have no stall because stamps are missing; none where all have one."""
    named = _unrecorded(replays, manifest, trace)
    if not named:
        return ()
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    listed = ", ".join(named[:_MOST_NAMED]) + more
    said = f"{count_of(len(named), 'wait')} without both stamps: what is waited there shows as active or untracked"
    return (f"{said}, here and on the critical path ({listed})",)


def caveat(replays: Replays | None, manifest: Manifest, trace: int) -> str:
    """The same in a few words, for a headline; empty where every wait has a stall, and of a run that was not joined."""
    count = len(_unrecorded(replays, manifest, trace)) if replays is not None else 0
    return f"{count_of(count, 'wait')} not recorded" if count else ""


def _unrecorded(replays: Replays, manifest: Manifest, trace: int) -> list[str]:
    waits = {
        key_at(file.path, file.key, skip) for file in manifest.files for skip in file.skips if skip.kind is Kind.WAIT
    }
    where = [each.key.rpartition("@")[0].rpartition(":")[0] for each in replays.uncovered if each.key in waits]
    for kernel in manifest.traces:
        if kernel.number == trace:
            places = places_of(manifest, trace)
            halves = [
                row for row in kernel.instances if row.kind == Kind.WAIT and bool(row.enter) is not bool(row.exit)
            ]
            where += [places[row.number].where for row in halves]
    return list(dict.fromkeys(where))


def split_waits(timelines: Iterable[Timeline], places: Mapping[int, Place]) -> Iterator[str]:
    """A sentence for each wait whose two stamps are of two replays: by how much the lengths of its stalls may be wrong.

    `timelines` are of one kernel trace.
    """
    of_wait: dict[int, list[Slice]] = {}
    for warp in (warp for timeline in timelines for warp in timeline.warps):
        for part in warp.slices:
            if part.state in (State.STALL, State.PASS) and part.length_error:
                of_wait.setdefault(part.instance, []).append(part)
    for instance, parts in sorted(of_wait.items()):
        place = places.get(instance)
        where = f"{place.label()} at {place.where}" if place else f"instance {instance}"
        length, error = (round(median(getattr(part, name) for part in parts)) for name in ("cycles", "length_error"))
        drowned = sum(is_drowned(part) for part in parts)
        most = f"; {drowned:,} are no longer than their own error, and may be none" if drowned else ""
        yield (
            f"{where}: its stamps are of two replays, so the lengths of its {count_of(len(parts), 'visit')} (median {length:,}"
            f" cycles) are right to {error:,} cycles in the median{most}"
        )


def site_errors(timeline: Timeline) -> dict[tuple[str, int], int]:
    """By role and first instance of a wait's site: what the lengths of its stalls are right to, in the median. Sites of whose
    stalls each is of one replay are not in it.
    """
    errors: dict[tuple[int, int], list[int]] = {}
    for warp in timeline.warps:
        for part in warp.slices:
            if part.state is State.STALL:
                errors.setdefault((warp.warp, part.instance), []).append(part.length_error)
    found = {}
    for site in timeline.sites:
        of_site = [errors.get((warp, each), []) for warp in site.warps for each in (site.instances or (site.instance,))]
        every = [error for each in of_site for error in each]
        if any(every):
            found[site.role, site.instance] = round(median(every))
    return found


def is_drowned(part: Slice) -> bool:
    """True for a wait whose length is no more than it may be off by."""
    return part.state is not State.ACTIVE and 0 < part.length_error >= part.cycles
