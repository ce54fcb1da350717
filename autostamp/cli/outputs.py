# SPDX-License-Identifier: Apache-2.0
"""What `autostamp export` and `autostamp report` make of analysed kernel traces. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.flow import Flow
    from autostamp.model.timeline import Timeline
    from autostamp.runtime.store import RunData

    Pair = tuple[Timeline, Flow]

Window = tuple[int | None, int | None]


def perfetto_bytes(pairs: Sequence[Pair], data: RunData) -> bytes:
    """A Perfetto trace."""
    from io import BytesIO

    from autostamp.report.perfetto import write_perfetto

    packed = BytesIO()
    timelines, flows = [timeline for timeline, _ in pairs], [flow for _, flow in pairs]
    write_perfetto(packed, timelines, data.manifest, data.facts, flows)
    return packed.getvalue()


def svg_text(pairs: Sequence[Pair], data: RunData, window: Window) -> str:
    """The picture. Raises AS9001 for a window that holds nothing of any kernel."""
    from autostamp.report.svg import timeline_svg

    timelines, flows = [timeline for timeline, _ in pairs], [flow for _, flow in pairs]
    try:
        return timeline_svg(timelines, data.manifest, data.facts, window, flows)
    except ValueError as error:
        ends = ", ".join(f"{max(warp.end for warp in timeline.warps):,}" for timeline in timelines)
        raise AutostampError.of("AS9001", detail=f"--from and --to: {error}; the kernels end at {ends}") from error


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
