# SPDX-License-Identifier: Apache-2.0
"""Case files of the gallery: the sites of a kernel by role, and who ends a wait of whom.

A line is `site ROLE KIND METHOD BARRIER SIDE CALLS` or `edge FROM TO BARRIER SIDE`; a role of `-` is none, a blank in a label
is written `_`, and `#` begins a comment. CALLS counts the calls that are compiled, an unrolled loop's one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from autostamp.model.flow import Flow
from autostamp.model.manifest import KernelTrace, Manifest
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace

CASES = Path(__file__).parent / "cases" / "gallery" / "cutedsl"

Site = tuple[str, str, str, str, str]
Edge = tuple[str, str, str, str]


@dataclass(frozen=True)
class Expected:
    """`sites`: calls by (role, kind, method, barrier, side). `edges`: (from, to, barrier, side)."""

    sites: Counter[Site]
    edges: set[Edge]


def read_case(name: str) -> Expected:
    """The case file of the kernel called `name`."""
    sites: Counter[Site] = Counter()
    edges: set[Edge] = set()
    for line in (CASES / f"{name}.expected").read_text(encoding="utf-8").splitlines():
        match line.split("#", maxsplit=1)[0].split():
            case []:
                continue
            case ["site", role, kind, method, barrier, side, calls]:
                assert (role, kind, method, barrier, side) not in sites, line
                sites[role, kind, method, barrier, side] = int(calls)
            case ["edge", sender, receiver, barrier, side]:
                edges.add((sender, receiver, barrier, side))
            case _:
                raise ValueError(line)
    return Expected(sites, edges)


def _label(kernel: KernelTrace, barrier: int) -> str:
    return kernel.barriers[barrier - 1].label.replace(" ", "_")


def sites_of(manifest: Manifest, kernel: KernelTrace) -> Counter[Site]:
    """What the manifest says of a kernel, in the case file's terms."""
    known = {(file.key, site.number): site for file in manifest.files for site in file.sites}
    return Counter(
        (row.role or "-", row.kind, known[row.file, row.site].method, _label(kernel, row.barrier), row.side)
        for row in kernel.instances
    )


def edges_of(trace: Trace, timeline: Timeline, flow: Flow) -> set[Edge]:
    """What the arrows of a recorded run say, in the case file's terms. The barrier is the waiting side's."""
    roles = {warp.warp: warp.role for warp in timeline.warps}
    rows = {row.number: row for row in trace.kernel.instances}
    return {
        (
            roles[arrow.signal.warp],
            roles[arrow.wait.warp],
            _label(trace.kernel, rows[arrow.wait.instance].barrier),
            arrow.side,
        )
        for arrow in flow.arrows
        if arrow.side not in ("cta", "cluster", "async-group")
    }
