# SPDX-License-Identifier: Apache-2.0
"""The report document: one JSON object with everything that the page draws and `autostamp report --json` writes.

docs/formats/report.md says what each key means, `assets/report.schema.json` what may stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from autostamp import __version__
from autostamp.model.comparison import LaunchFigure
from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.replay import Bound, Replays
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline
from autostamp.report.columns import Encode, packed
from autostamp.report.cost import Cost
from autostamp.report.document_prediction import Predicted, prediction_object
from autostamp.report.document_tables import Tables, tables_of
from autostamp.report.document_timeline import timeline_object
from autostamp.report.joined_notes import caveat, split_waits, unrecorded_waits
from autostamp.report.launches_text import launch_lines
from autostamp.report.notes import loud_notes, placed_notes
from autostamp.report.places import places_of
from autostamp.report.replays_text import replays_object
from autostamp.report.units import CYCLES
from autostamp.report.verdict import verdict

SCHEMA_VERSION: Final = 1
"""Raised when a key is renamed, removed or changes its meaning; added keys leave it."""

Pair = tuple[Timeline, Flow]


def document(
    pairs: Sequence[Pair],
    manifest: Manifest,
    facts: MachineFacts | None = None,
    sources: Mapping[str, str] | None = None,
    *,
    costs: Mapping[int, Cost] | None = None,
    findings: Sequence[Sequence[str]] = (),
    predicted: Mapping[int, Predicted] | None = None,
    launches: Mapping[int, Sequence[LaunchFigure]] | None = None,
    replays: Replays | None = None,
    bounds: Sequence[Bound] = (),
    columns: Encode = packed,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """The document of timelines with their flows; the same input gives the same object.

    `sources` are original texts by file key (what is missing is noted), `costs` are by kernel trace, and `findings` say for each
    pair what is wrong with its records (a sentence each; empty: nothing is). `predicted` is by index of a pair, `launches`
    (figures over several launches) by kernel trace, `replays` what a joined run says of itself, `bounds` where the stamps lie
    that it lacks. `columns` says how columns are stored, `progress` is called after each timeline. Raises OverflowError where a
    packed column cannot hold a value.
    """
    facts = facts or MachineFacts()
    tables = tables_of(manifest, (timeline.trace for timeline, _ in pairs), sources or {})
    found: list[dict[str, Any]] = []
    told: list[tuple[Timeline, str]] = []
    joined = _joined_notes([timeline for timeline, _ in pairs], manifest, replays)
    for index, (timeline, flow) in enumerate(pairs):
        own = (*(findings[index] if findings else ()), *loud_notes(timeline, manifest, with_split=False))
        cost = (costs or {}).get(timeline.trace, Cost())
        spread = launch_lines((launches or {}).get(timeline.trace, ()), places_of(manifest, timeline.trace))
        said = verdict(
            timeline, flow, manifest, facts, cost, launches=spread, caveat=caveat(replays, manifest, timeline.trace)
        )
        found.append(timeline_object((timeline, flow), facts, said, cost, tables.numbers[timeline.trace], columns))
        missing = joined[timeline.trace]
        told += [(timeline, note) for note in dict.fromkeys((*missing, *own, *flow.notes))]
        progress()
    for index, prediction in sorted((predicted or {}).items()):
        found[index]["prediction"] = prediction_object(prediction, tables, columns)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"autostamp {__version__}",
        "title": title_of([timeline for timeline, _ in pairs], facts),
        **_unit([timeline for timeline, _ in pairs]),
        "machine": _machine(facts),
        "notes": [*placed_notes(told, [timeline for timeline, _ in pairs]), *_without_text(tables)],
        "sources": tables.sources,
        "sites": tables.sites,
        "instances": tables.instances,
        "barriers": tables.barriers,
        "timelines": found,
        **({"replays": replays_object(replays, manifest, bounds)} if replays is not None else {}),
    }


def _joined_notes(
    timelines: Sequence[Timeline], manifest: Manifest, replays: Replays | None
) -> dict[int, tuple[str, ...]]:
    """By kernel trace: the waits of a joined run whose stall is not known, or not well, over all its timelines."""
    found = {}
    for trace in dict.fromkeys(timeline.trace for timeline in timelines):
        own = [timeline for timeline in timelines if timeline.trace == trace]
        missing = unrecorded_waits(replays, manifest, trace) if replays is not None else ()
        found[trace] = (*missing, *split_waits(own, places_of(manifest, trace)))
    return found


def _unit(timelines: Sequence[Timeline]) -> dict[str, str]:
    """What all that is called cycles is counted in, where it is no cycles. All timelines of a report are of one input."""
    units = {timeline.unit for timeline in timelines}
    return {"unit": units.pop()} if len(units) == 1 and units != {CYCLES} else {}


def title_of(timelines: Sequence[Timeline], facts: MachineFacts) -> str:
    """The kernels, and the GPU where it is known."""
    kernels = list(dict.fromkeys(timeline.kernel for timeline in timelines))
    named = ", ".join(kernels[:2]) + (f" and {len(kernels) - 2} more" if len(kernels) > 2 else "")
    return f"{named} on {facts.gpu}" if facts.gpu else named


def _machine(facts: MachineFacts) -> dict[str, Any]:
    """Facts of the machine; what is unknown is None."""
    values = {**asdict(facts), "command": list(facts.command)}
    return {name: value or None for name, value in values.items()} | {"versions": dict(facts.versions)}


def _without_text(tables: Tables) -> Iterable[str]:
    missing = [source["path"] for source in tables.sources if not source["text"]]
    if missing:
        yield f"the original source was not kept, so no lines are shown of: {', '.join(missing)}"
