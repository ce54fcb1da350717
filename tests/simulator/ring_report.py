# SPDX-License-Identifier: Apache-2.0
"""The ring kernel of `tables.run_ring` with its default arguments, analysed with pencil and paper.

producer  acquires 0-0, 10-10 (granted), 20-40, 50-70 and commits at 10, 20, 50, 80, where it ends;
consumer  waits 0-10, 40-40, 70-70, 100-100 and releases at 40, 70, 100, 130, where it ends.

So the consumer computes without a break from 10 on: 30 cycles an iteration, of which the load warp needs 10.
"""

from __future__ import annotations

from autostamp.model.flow import (
    Arrow,
    Blame,
    Cause,
    CriticalPath,
    Depth,
    EarlySignals,
    End,
    Ending,
    Flow,
    Overlap,
    PathKind,
    PathPart,
    Slack,
    Steady,
)
from autostamp.model.timeline import (
    RoleTotals,
    Signal,
    SiteStall,
    Slice,
    Spread,
    State,
    Timeline,
    WarpTimeline,
)
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, EPILOGUE, RELEASE

LOAD, MMA = 0, 1


def _wait(start: int, end: int, instance: int, visit: int) -> Slice:
    """A ready wait takes no time here."""
    return Slice(start, end, State.STALL if end > start else State.PASS, instance, visit, visit % 2)


def _hold(start: int, end: int, instance: int, visit: int, signal: int) -> Slice:
    return Slice(start, end, State.ACTIVE, instance, visit, visit % 2, signal)


def ring_timeline() -> Timeline:
    """Both warps; without a clock."""
    load = (
        _wait(0, 0, ACQUIRE, 0),
        _hold(0, 10, ACQUIRE, 0, COMMIT),
        _wait(10, 10, ACQUIRE, 1),
        _hold(10, 20, ACQUIRE, 1, COMMIT),
        _wait(20, 40, ACQUIRE, 2),
        _hold(40, 50, ACQUIRE, 2, COMMIT),
        _wait(50, 70, ACQUIRE, 3),
        _hold(70, 80, ACQUIRE, 3, COMMIT),
    )
    mma = (
        _wait(0, 10, CONSUME, 0),
        _hold(10, 40, CONSUME, 0, RELEASE),
        _wait(40, 40, CONSUME, 1),
        _hold(40, 70, CONSUME, 1, RELEASE),
        _wait(70, 70, CONSUME, 2),
        _hold(70, 100, CONSUME, 2, RELEASE),
        _wait(100, 100, CONSUME, 3),
        _hold(100, 130, CONSUME, 3, RELEASE),
    )
    commits = tuple(Signal(at, COMMIT, visit, visit % 2) for visit, at in enumerate((10, 20, 50, 80)))
    releases = tuple(Signal(at, RELEASE, visit, visit % 2) for visit, at in enumerate((40, 70, 100, 130)))
    warps = (
        WarpTimeline(LOAD, "load", load, 80, 40, 40, 0, 0, 0, 80, commits),
        WarpTimeline(MMA, "mma", mma, 130, 10, 120, 0, 0, 0, 130, releases),
    )
    roles = (RoleTotals("load", (LOAD,), 80, 40, 40, 0), RoleTotals("mma", (MMA,), 130, 10, 120, 0))
    sites = (
        SiteStall(ACQUIRE, "load", (LOAD,), Spread(2, 40, 20.0, 20.0, 20.0, 20), (ACQUIRE,)),
        SiteStall(CONSUME, "mma", (MMA,), Spread(1, 10, 10.0, 10.0, 10.0, 10), (CONSUME,)),
    )
    return Timeline("ring", warps, roles, sites, (EPILOGUE,), 0.0, trace=1, smid=0)


def _full(visit: int, committed: int, left: int) -> Arrow:
    return Arrow(End(LOAD, COMMIT, visit, committed), End(MMA, CONSUME, visit, left), 1, "full", visit % 2, visit // 2)


def _empty(visit: int, released: int) -> Arrow:
    """The acquire of the use two later leaves when this one is released."""
    signal, wait = End(MMA, RELEASE, visit, released), End(LOAD, ACQUIRE, visit + 2, released)
    return Arrow(signal, wait, 1, "empty", visit % 2, 0)


def ring_flow(notes: tuple[str, ...] = ()) -> Flow:
    """Its flow; the steady window is from the second to the fourth wait of the consumer, 40 to 100."""
    timeline = ring_timeline()
    arrows = (_full(0, 10, 10), _full(1, 20, 40), _empty(0, 40), _full(2, 50, 70), _empty(1, 70), _full(3, 80, 100))
    load, mma = timeline.warps
    causes = (
        Cause(MMA, mma.slices[0], Ending.SIGNAL, arrows[0], "load", 10, 0, 0, 0, True),
        Cause(LOAD, load.slices[4], Ending.SIGNAL, arrows[2], "mma", 20, 0, 0, 0, True),
        Cause(LOAD, load.slices[6], Ending.SIGNAL, arrows[4], "mma", 20, 0, 0, 0, True),
    )
    blame = (
        Blame("load", 1, "empty", "mma", Ending.SIGNAL, 2, 40, 1.0),
        Blame("mma", 1, "full", "load", Ending.SIGNAL, 1, 10, 1.0),
    )
    window = (RoleTotals("load", (LOAD,), 40, 20, 20, 0), RoleTotals("mma", (MMA,), 60, 0, 60, 0))
    period = Spread(2, 60, 30.0, 30.0, 30.0, 30)
    steady = Steady(40, 100, MMA, "mma", CONSUME, 2, period, (40, 70, 100), 1, 1, window)
    work = PathPart(MMA, "mma", PathKind.ACTIVE, 0, "", 40, 100)
    path = CriticalPath((work,), (("mma", 1.0),), (), (Slack("load", 20, 20.0, 3),))
    # The load warp is busy 40-50 and 70-80, all of which the MMA warp is.
    overlaps = (Overlap("load", "mma", 20, 60),)
    depths, early = (Depth(1, 2, 1.0, 2),), (EarlySignals(COMMIT, "load", 0, 4),)
    return Flow(arrows, causes, blame, steady, path, overlaps, depths, early, notes)
