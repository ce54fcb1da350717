# SPDX-License-Identifier: Apache-2.0
"""The runs of several replay sets, read and joined kernel by kernel, and written as one run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autostamp.model.manifest import Manifest
    from autostamp.model.replay import Fit, Recording, Refusal, ReplayedSet, Replays
    from autostamp.model.trace import Trace
    from autostamp.runtime.store import RunData

    Key = tuple[str, int, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class JoinedRuns:
    """Joined traces of all kernels, and the runs that they come from: those of the reference first."""

    traces: tuple[Trace, ...]
    reference: int
    fits: tuple[Fit, ...]
    refusals: tuple[Refusal, ...]
    runs: tuple[RunData, ...]

    def write(self, out: Path, replays: Replays, command: tuple[str, ...]) -> None:
        """Write the run folder. Raises AS7001."""
        from autostamp.runtime import joined_run, store

        kernels = tuple(dict.fromkeys(trace.kernel for trace in self.traces))
        manifest: Manifest = joined_run.united([run.manifest for run in self.runs], kernels)
        store.write_run(
            out,
            manifest,
            joined_run.regions_of(self.traces),
            replace(self.runs[0].facts, command=command),
            joined_run.sources_of([run.path for run in self.runs], store.SOURCES_NAME),
            joined_run.files_of(replays, self.traces),
        )


def join_runs(kept: Sequence[tuple[ReplayedSet, Sequence[Path]]], allowance: float) -> JoinedRuns:
    """Join the runs of the sets that were kept. A set that fits in one kernel and not in another is refused as a whole.

    The reference is the set with which fewest warps of the others share no site, since those are placed by other warps; of equals
    the one with the most records, which are right to the cycle. Where that refuses others, it is the one with which the joined
    sets have the most records.
    """
    from autostamp.runtime.store import load_run

    loaded = {made.number: [load_run(path) for path in paths] for made, paths in kept}
    ratios = {made.number: made.times.ratio for made, _ in kept}
    sizes = {number: _records(runs[0]) for number, runs in loaded.items()}
    sites = {number: _sites(runs[0]) for number, runs in loaded.items()}
    order = sorted(loaded, key=lambda number: (_strangers(number, sites), -sizes[number], number))
    best, most = _joined(order, loaded, ratios, allowance), -1
    for first in order if best.refusals else []:
        found = _joined([first, *(number for number in order if number != first)], loaded, ratios, allowance)
        size = sum(sizes.values()) - sum(sizes[each.number] for each in found.refusals)
        if size > most:
            best, most = found, size
    return best


def _joined(
    order: Sequence[int],
    loaded: Mapping[int, Sequence[RunData]],
    ratios: Mapping[int, float],
    allowance: float,
) -> JoinedRuns:
    """All kernels joined onto the first of these sets that has no fault of its own."""
    from autostamp.analysis.join import join
    from autostamp.runtime.joined_run import fitted

    refused: dict[int, Refusal] = {}
    while True:
        left = [number for number in order if number not in refused]
        keys = dict.fromkeys(key for number in left for key in by_kernel(loaded[number][0]))
        found = [join(_recordings(left, loaded, ratios, key), allowance) for key in keys]
        again = {refusal.number: refusal for one in found for refusal in one.refusals}
        if not again:
            break
        refused |= again
    of_kernel: dict[tuple[str, int], list[Trace]] = {}
    for key, one in zip(keys, found, strict=True):
        of_kernel.setdefault(key[:2], []).extend(one.traces)
    traces = [
        trace
        for number, every in enumerate(of_kernel.values(), 1)
        for trace in fitted(sorted(every, key=lambda each: each.launch), number)
    ]
    runs = tuple(run for number in left for run in loaded[number])
    fits = tuple(fit for one in found for fit in one.fits)
    return JoinedRuns(tuple(traces), left[0] if left else 0, fits, tuple(refused.values()), runs)


def by_kernel(run: RunData) -> dict[Key, list[Trace]]:
    """The launches of each kernel and CTA: by the kernel's name, its place among those of that name, and the block."""
    seen: dict[str, list[int]] = {}
    found: dict[Key, list[Trace]] = {}
    for trace in run.recorded:
        of_name = seen.setdefault(trace.kernel.kernel, [])
        if trace.kernel.number not in of_name:
            of_name.append(trace.kernel.number)
        if trace.lanes:
            key = (trace.kernel.kernel, of_name.index(trace.kernel.number), trace.block)
            found.setdefault(key, []).append(trace)
    return found


def wait_keys(run: Path) -> frozenset[str]:
    """The keys of the waits among the sites that a run stamped."""
    from autostamp.model.placement import site_key
    from autostamp.model.sync import Kind
    from autostamp.runtime.store import load_run

    files = load_run(run).manifest.files
    return frozenset(site_key(file, site) for file in files for site in file.sites if site.kind is Kind.WAIT)


def launches(run: Path) -> int:
    """How many launches a run kept."""
    from autostamp.runtime.store import load_run

    return max((trace.launch + 1 for trace in load_run(run).recorded), default=0)


def _recordings(
    numbers: Sequence[int], loaded: Mapping[int, Sequence[RunData]], ratios: Mapping[int, float], key: Key
) -> list[Recording]:
    """The launches of both runs of each set, as far as it has the kernel."""
    from autostamp.model.replay import Recording

    found = []
    for number in numbers:
        launches = [trace for run in loaded[number] for trace in by_kernel(run).get(key, [])]
        if launches:
            numbered = tuple(replace(trace, launch=at) for at, trace in enumerate(launches))
            found.append(Recording(number, numbered, ratios[number]))
    return found


def _sites(run: RunData) -> dict[tuple[Key, int], set[tuple[str, int]]]:
    """The sites that each warp of each kernel and CTA recorded, in the first launch."""
    found: dict[tuple[Key, int], set[tuple[str, int]]] = {}
    for key, traces in by_kernel(run).items():
        site = {row.number: (row.file, row.site) for row in traces[0].kernel.instances}
        found |= {(key, lane.warp): {site[event.instance] for event in lane.events} for lane in traces[0].lanes}
    return found


def _strangers(number: int, sites: Mapping[int, Mapping[tuple[Key, int], set[tuple[str, int]]]]) -> int:
    """How many warps of other sets have records and no site in common with this set."""
    own = sites[number]
    others = (warp for other, warps in sites.items() if other != number for warp in warps.items())
    return sum(bool(there) and there.isdisjoint(own.get(warp, set())) for warp, there in others)


def _records(run: RunData) -> int:
    return sum(len(lane.events) for trace in run.recorded for lane in trace.lanes)
