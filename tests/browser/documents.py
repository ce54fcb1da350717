# SPDX-License-Identifier: Apache-2.0
"""Report documents built by hand, and pages that hold them: the page is tested without the analysis in between."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[2] / "autostamp/report/assets/report.html"
ACTIVE, STALL, PASS = 0, 1, 2
ASYNC, INFERRED = 1, 2
NO_SPREAD = {"count": 0, "total": 0, "p10": 0, "median": 0, "p90": 0, "longest": 0}
SPAN_COLUMNS = ("start", "end", "state", "instance", "visit", "stage", "cause")
SIGNAL_COLUMNS = ("at", "instance", "visit", "stage")
ARROW_COLUMNS = (
    "from_row", "from", "from_instance", "to_row", "to", "to_instance", "to_visit", "barrier", "stage", "use", "flags",
)  # fmt: skip
CAUSE_COLUMNS = ("ending", "arrow", "awaited", "in_flight", "handed_over", "unexplained", "binding")
PATH_COLUMNS = ("row", "kind", "barrier", "start", "end")

Table = Sequence[Sequence[int]]

SOURCE = """\
import cutlass
def load(k_pipe, v_pipe):
    for tile in range(8):
        k_pipe.producer_acquire(tile)
        k_pipe.producer_commit(tile)
def mma(k_pipe):
    for tile in range(8):
        k_pipe.consumer_wait(tile)
        k_pipe.consumer_release(tile)
    named_barrier.sync()
"""
ACQUIRE, COMMIT, WAIT, RELEASE, SYNC = 1, 2, 3, 4, 5
LINES = {ACQUIRE: 4, COMMIT: 5, WAIT: 8, RELEASE: 9, SYNC: 10}


def column(values: Iterable[int], delta: bool = False) -> dict[str, Any]:
    """A list of integers as the document stores it."""
    numbers = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.int64)
    stored = np.diff(numbers, prepend=0) if delta and len(numbers) else numbers
    packed = base64.b64encode(stored.astype("<i4").tobytes()).decode()
    return {"n": len(numbers), "i32": packed, "delta": delta}


def columns(names: Sequence[str], rows: Table, deltas: Sequence[str] = ()) -> dict[str, Any]:
    """Rows of a table as named columns."""
    found = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: column(values, name in deltas) for name, values in zip(names, found, strict=True)}


def row(
    warp: int, role: str, start: int, end: int, spans: Table = (), signals: Table = (), lost: int = 0
) -> dict[str, Any]:
    """One warp. Spans may lie inside each other: a cycle in a stall is a stall, in a pass a pass, else active."""
    state = np.full(end - start, -1, dtype=np.int8)
    for kind in (ACTIVE, PASS, STALL):
        for span in spans:
            if span[2] == kind:
                state[span[0] - start : span[1] - start] = kind
    sums = {name: int((state == kind).sum()) for name, kind in (("stall", 1), ("passed", 2), ("active", 0))}
    return {
        "warp": warp, "role": role, "start": start, "end": end, "lost": lost, "span": end - start, **sums,
        "untracked": end - start - sum(sums.values()),
        "spans": columns(SPAN_COLUMNS, spans, deltas=("start", "end")),
        "signals": columns(SIGNAL_COLUMNS, signals, deltas=("at",)),
    }  # fmt: skip


def timeline(rows: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    """A timeline of these rows, all else unknown or empty unless `changes` give it."""
    sums = ("span", "stall", "passed", "active", "untracked")
    roles = [
        {"role": role, "warps": [item["warp"] for item in rows if item["role"] == role]}
        | {name: sum(item[name] for item in rows if item["role"] == role) for name in sums}
        for role in dict.fromkeys(item["role"] for item in rows)
    ]
    return {
        "kernel": "ring", "trace": 1, "launch": 0, "block": [0, 0, 0], "smid": 3, "wave": None,
        "offset": 0, "alignment_error": None,
        "start": min((item["start"] for item in rows), default=0),
        "end": max((item["end"] for item in rows), default=0),
        "sm_mhz": 2000.0, "lost": sum(item["lost"] for item in rows),
        "verdict": {"headline": "mma waits for K", "lines": ["one line", "another line"]},
        "cost": {"time_ratio": None, "registers": None, "spills": None, "schedule_distance": None, "lost": 0},
        "roles": roles, "rows": list(rows),
        "arrows": columns(ARROW_COLUMNS, ()), "causes": columns(CAUSE_COLUMNS, ()),
        "blame": [], "steady": None, "path": None, "overlaps": [], "depths": [], "early": [], "sites": [], "prediction": None,
    } | changes  # fmt: skip


def document(timelines: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    """A document of one source with the five calls of SOURCE."""
    calls = (
        (ACQUIRE, "producer_acquire", "wait", "empty", "load", 1),
        (COMMIT, "producer_commit", "signal", "full", "load", 1),
        (WAIT, "consumer_wait", "wait", "full", "mma", 1),
        (RELEASE, "consumer_release", "signal", "empty", "mma", 1),
        (SYNC, "sync", "wait", "named", "mma", 2),
    )
    lines = SOURCE.splitlines()
    return {
        "schema_version": 1, "tool": "autostamp 0.1.0", "title": "Timeline of ring",
        "machine": {"gpu": "NVIDIA H200", "driver": "580.0", "recorded_at": "2026-01-02"},
        "notes": [],
        "sources": [{"path": "src/ring.py", "language": "cutedsl", "text": SOURCE}],
        "sites": [
            {"source": 0, "line": LINES[number], "column": 9, "text": lines[LINES[number] - 1].strip(),
             "method": method, "kind": kind, "side": side}
            for number, method, kind, side, _, _ in calls
        ],
        "instances": [
            {"number": number, "site": index, "barrier": barrier, "label": f"{'KB'[barrier - 1]} {method}",
             "side": side, "role": role, "is_async": number == COMMIT}
            for index, (number, method, _, side, role, barrier) in enumerate(calls)
        ],
        "barriers": [
            {"number": 1, "label": "K", "type": "PipelineTmaAsync", "stages": 2, "is_inferred": False},
            {"number": 2, "label": "Block", "type": "NamedBarrier", "stages": 0, "is_inferred": False},
        ],
        "timelines": list(timelines),
    } | changes  # fmt: skip


def write(document: Mapping[str, Any], path: Path) -> Path:
    """The page with the document in it, as a file."""
    packed = base64.b64encode(gzip.compress(json.dumps(document).encode(), compresslevel=1, mtime=0)).decode()
    script = f'<script type="application/octet-stream" id="autostamp-document">{packed}</script>'
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!--AUTOSTAMP-DOCUMENT-->") == 1
    path.write_text(
        page.replace("<!--AUTOSTAMP-DOCUMENT-->", script).replace("AUTOSTAMP-TITLE", document["title"]),
        encoding="utf-8",
    )
    return path


def with_prediction() -> dict[str, Any]:
    """`small` with a prediction of 1000 cycles an iteration over two iterations from cycle 3600 on.

    Predicted load works 3600 to 4600 and 4600 to 5600; mma waits on ring P 3600 to 4100, then works to 4600 and 5600.
    """
    load = row(0, "load", 3600, 5600, [(3600, 4600, ACTIVE, 0, 0, -1, -1), (4600, 5600, ACTIVE, 0, 1, -1, -1)])
    mma = row(
        1, "mma", 3600, 5600,
        [(3600, 4100, STALL, 6, 0, 0, -1), (4100, 4600, ACTIVE, 6, 0, 0, -1), (4600, 5600, ACTIVE, 0, 1, -1, -1)],
    )  # fmt: skip
    made = small()
    made["timelines"][0]["prediction"] = {
        "headline": "the model is incomplete", "lines": ["period: predicted 1,000", "role  busy", "mma    500"],
        "period": {"predicted": 1000, "measured": 1234.5},
        "timeline": {"iterations": 2, "start": 3600, "end": 5600, "rows": [load, mma]},
    }  # fmt: skip
    made["instances"].append(
        {"number": 6, "site": None, "barrier": 3, "label": "P", "side": "full", "role": "mma", "is_async": False}
    )
    made["barriers"].append({"number": 3, "label": "P", "type": "predicted", "stages": 2, "is_inferred": True})
    return made


def small() -> dict[str, Any]:
    """Two roles over 10,000 cycles: `load` fills a ring of two stages, four warps of `mma` wait for it.

    load, warp 0: stall 1000 to 3000 on K empty, hold 3000 to 3400 with its commit at 3400, stall 5000 to 5004.
    mma, warps 4 to 7: stall 500 to 3600 on K full, hold 3600 to 7000 with a stall on Block at 4000 to 4500 inside, a pass
    from 7200 to 7225. The commit at 3400 ended the wait at 3600: 2900 cycles awaited, 200 in flight.
    """
    load = row(
        0, "load", 0, 10_000,
        [(1000, 3000, STALL, ACQUIRE, 1, 0, -1), (3000, 3400, ACTIVE, ACQUIRE, 1, 0, -1),
         (5000, 5004, STALL, ACQUIRE, 2, 1, -1)],
        [(3400, COMMIT, 1, 0)],
    )  # fmt: skip
    mma = [
        row(
            warp, "mma", 0, 10_000,
            [(500, 3600, STALL, WAIT, 1, 0, index), (3600, 7000, ACTIVE, WAIT, 1, 0, -1),
             (4000, 4500, STALL, SYNC, 1, -1, -1), (7200, 7225, PASS, WAIT, 2, 1, -1)],
            [(7000, RELEASE, 1, 0)],
        )
        for index, warp in enumerate(range(4, 8))
    ]  # fmt: skip
    rows = [load, row(1, "spare", 0, 400), *mma]
    arrows = [(0, 3400, COMMIT, index + 2, 3600, WAIT, 1, 1, 0, 0, ASYNC) for index in range(4)]
    arrows.append((2, 7000, RELEASE, 0, 7000, ACQUIRE, 3, 1, 0, 1, INFERRED))
    marks = [3600, 4600, 5600, 6600]
    steady = {
        "start": 3600, "end": 6600, "warp": 4, "role": "mma", "instance": WAIT, "iterations": 3,
        "marks": column(marks, delta=True), "fill": 3600, "drain": 3400, "roles": [],
        "period": {"count": 3, "total": 3000, "p10": 1000, "median": 1000, "p90": 1000, "longest": 1000},
    }  # fmt: skip
    parts = [(0, 0, 0, 3600, 4000), (2, 2, 1, 4000, 4600), (2, 0, 0, 4600, 6600)]
    path = {
        "parts": columns(PATH_COLUMNS, parts), "by_role": [["mma", 0.8]], "by_barrier": [[1, "full", 0.2]],
        "slack": [{"role": "load", "least": 10, "median": 20, "arrows": 4}],
    }  # fmt: skip
    stall = {"p10": 3100, "median": 3100, "p90": 3100, "longest": 3100}
    short = {"p10": 500, "median": 500, "p90": 500, "longest": 500}
    # 4 and 2000 cycles, percentiles between them in proportion to rank.
    mixed = {"p10": 203.6, "median": 1002, "p90": 1800.4, "longest": 2000}
    return document(
        [
            timeline(
                rows,
                arrows=columns(ARROW_COLUMNS, arrows),
                causes=columns(CAUSE_COLUMNS, [(1, index, 2900, 200, 0, 0, 1) for index in range(4)]),
                blame=[
                    {"role": "mma", "barrier": 1, "side": "full", "by": "load", "ending": "transfer", "count": 4,
                     "cycles": 12_400, "share": 0.861},
                ],
                steady=steady,
                path=path,
                cost={"time_ratio": 1.13, "registers": [168, 168], "spills": [0, 0], "schedule_distance": 12, "lost": 0},
                sites=[
                    {"instance": WAIT, "role": "mma", "count": 4, "total": 12_400, **stall},
                    {"instance": SYNC, "role": "mma", "count": 4, "total": 2000, **short},
                    {"instance": ACQUIRE, "role": "load", "count": 2, "total": 2004, **mixed},
                ],
            )
        ]
    )  # fmt: skip


def many(spans: int, warps: int = 12) -> dict[str, Any]:
    """`spans` spans over 12 warps that alternate between a stall and a hold, of lengths that differ from warp to warp."""
    rng = np.random.default_rng(7)
    each = spans // warps
    rows = []
    sent: list[np.ndarray] = []
    for warp in range(warps):
        lengths = rng.integers(30, 400, each)
        gaps = rng.integers(0, 60, each)
        end = np.cumsum(lengths + gaps)
        start = end - lengths
        state = (np.arange(each) % 2 == 0).astype(np.int64)
        # Fewer stalls in the second half of the run, so that a far view has something to show.
        state[(np.arange(each) > each // 2) & (np.arange(each) % 6 == 0)] = ACTIVE
        role = "load" if warp == 0 else "mma"
        instance = np.where(np.arange(each) % 10 == 0, SYNC, ACQUIRE if warp == 0 else WAIT)
        numbers = {
            "start": start, "end": end, "state": state, "instance": instance,
            "visit": np.arange(each) // 2, "stage": np.arange(each) // 2 % 2, "cause": np.full(each, -1),
        }  # fmt: skip
        at = end[state == ACTIVE]
        sent.append(at[::2])
        signal = {
            "at": at,
            "instance": np.full(len(at), RELEASE),
            "visit": np.arange(len(at)),
            "stage": np.zeros(len(at)),
        }
        stall, active = int(lengths[state == STALL].sum()), int(lengths[state == ACTIVE].sum())
        last = int(end[-1]) + 100
        rows.append(
            {
                "warp": warp, "role": role, "start": 0, "end": last, "lost": 0, "span": last, "stall": stall,
                "passed": 0, "active": active, "untracked": last - stall - active,
                "spans": {name: column(values, name in ("start", "end")) for name, values in numbers.items()},
                "signals": {name: column(values, name == "at") for name, values in signal.items()},
            }
        )  # fmt: skip
    total = [sum(item["stall"] for item in rows[:1]), sum(item["stall"] for item in rows[1:])]
    sites = [
        {"instance": ACQUIRE, "role": "load", **NO_SPREAD, "total": total[0]},
        {"instance": WAIT, "role": "mma", **NO_SPREAD, "total": total[1]},
    ]
    # One arrow for every other hold, to the next warp.
    number = np.concatenate(sent)
    zeros = np.zeros(len(number), dtype=np.int64)
    to_row = np.concatenate([np.full(len(one), (warp + 1) % warps) for warp, one in enumerate(sent)])
    arrows = {name: column(zeros) for name in ARROW_COLUMNS} | {
        "from_row": column((to_row - 1) % warps), "from": column(number), "from_instance": column(zeros + RELEASE),
        "to_row": column(to_row), "to": column(number + 40), "to_instance": column(zeros + WAIT),
    }  # fmt: skip
    return document([timeline(rows, sites=sites, arrows=arrows)])
