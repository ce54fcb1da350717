# SPDX-License-Identifier: Apache-2.0
"""What `autostamp export` and `autostamp report` make of analysed kernel traces. Nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.flow import Flow
    from autostamp.model.timeline import Timeline
    from autostamp.report.document_prediction import Predicted
    from autostamp.runtime.store import RunData

    Pair = tuple[Timeline, Flow]

Window = tuple[int | None, int | None]
_NONE: Mapping[int, Predicted] = MappingProxyType({})


def perfetto_bytes(pairs: Sequence[Pair], data: RunData, predicted: Mapping[int, Predicted] = _NONE) -> bytes:
    """A Perfetto trace. `predicted` timelines are processes of their own."""
    from io import BytesIO

    from autostamp.report.perfetto import write_perfetto
    from autostamp.report.predicted_rows import with_predicted

    packed = BytesIO()
    shown = with_predicted(pairs, data.manifest, predicted, data.facts)
    timelines, flows = [timeline for timeline, _ in shown.pairs], [flow for _, flow in shown.pairs]
    write_perfetto(packed, timelines, shown.manifest, data.facts, flows)
    return packed.getvalue()


def svg_text(pairs: Sequence[Pair], data: RunData, window: Window, predicted: Mapping[int, Predicted] = _NONE) -> str:
    """The picture, `predicted` timelines above the measured ones. Raises AS9001 for a window that holds nothing of any kernel."""
    from autostamp.report.predicted_rows import with_predicted
    from autostamp.report.svg import timeline_svg

    shown = with_predicted(pairs, data.manifest, predicted, data.facts)
    timelines, flows = [timeline for timeline, _ in shown.pairs], [flow for _, flow in shown.pairs]
    try:
        return timeline_svg(timelines, shown.manifest, data.facts, window, flows, shown.axis_of, _remarks(data))
    except ValueError as error:
        ends = ", ".join(f"{max(warp.end for warp in timeline.warps):,}" for timeline in timelines)
        raise AutostampError.of("AS9001", detail=f"--from and --to: {error}; the kernels end at {ends}") from error


def _remarks(data: RunData) -> dict[int, tuple[str, ...]]:
    """What a joined run says of itself, in a few words, by kernel trace."""
    from autostamp.report.joined_notes import unrecorded_waits
    from autostamp.report.replays_text import replay_lines

    if data.replays is None:
        return {}
    headline, *_ = replay_lines(data.replays, data.manifest)
    numbers = {trace.kernel.number for trace in data.recorded}
    return {number: (headline, *unrecorded_waits(data.replays, data.manifest, number)) for number in sorted(numbers)}


def png_bytes(svg: str, path: object) -> bytes:
    """The picture as PNG. Raises AS7003 where it cannot be drawn here."""
    from autostamp.report.png import NoFontError, png

    try:
        return png(svg)
    except ModuleNotFoundError as error:
        hint = "pip install 'autostamp[png]', or write the picture with --svg."
        raise AutostampError.of("AS7003", path=path, detail=f"resvg is not installed ({error})", hint=hint) from error
    except NoFontError as error:
        hint = "Install a font (Debian and Ubuntu: apt install fonts-dejavu-core), or write the picture with --svg."
        raise AutostampError.of("AS7003", path=path, detail=str(error), hint=hint) from error
