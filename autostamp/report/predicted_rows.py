# SPDX-License-Identifier: Apache-2.0
"""Predicted timelines above the measured ones, for pictures and files that show one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline
from autostamp.report.clock import clock_mhz
from autostamp.report.document_prediction import Predicted, moved

NO_FLOW = Flow((), (), (), None, None, (), (), ())


@dataclass(frozen=True, slots=True)
class Shown:
    """Timelines in the order in which they are shown, and the manifest that names the waits of all.

    `axis_of`: by the place of a predicted timeline that of the measured one, whose axis it has.
    """

    pairs: tuple[tuple[Timeline, Flow], ...]
    manifest: Manifest
    axis_of: Mapping[int, int]


def with_predicted(
    pairs: Sequence[tuple[Timeline, Flow]], manifest: Manifest, predicted: Mapping[int, Predicted], facts: MachineFacts
) -> Shown:
    """`predicted` are by the place of the pair that they belong to. A predicted timeline gets the next free trace number."""
    shown: list[tuple[Timeline, Flow]] = []
    axis_of: dict[int, int] = {}
    traces = list(manifest.traces)
    for place, pair in enumerate(pairs):
        if (found := predicted.get(place)) is not None:
            (kernel,) = found.manifest.traces
            number = max((each.number for each in traces), default=0) + 1
            traces.append(replace(kernel, number=number))
            axis_of[len(shown)] = len(shown) + 1
            shown.append((_beside(found, pair[0], number, facts), NO_FLOW))
        shown.append(pair)
    return Shown(tuple(shown), replace(manifest, traces=tuple(traces)), axis_of)


def _beside(found: Predicted, measured: Timeline, number: int, facts: MachineFacts) -> Timeline:
    """The predicted timeline on the measured one's axis, with its clock."""
    offset = measured.offset
    if measured.alignment_error < 0:
        # Alone, a measured timeline begins at 0; so must this one, whose first record comes later.
        offset = -min((warp.start for warp in measured.warps), default=0)
    return replace(
        found.timeline,
        kernel=f"predicted: {measured.kernel}",
        warps=tuple(moved(warp, found.begin) for warp in found.timeline.warps),
        trace=number,
        block=measured.block,
        launch=measured.launch,
        offset=offset,
        alignment_error=max(measured.alignment_error, 0),
        sm_mhz=clock_mhz(measured, facts),
    )
