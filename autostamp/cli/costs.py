# SPDX-License-Identifier: Apache-2.0
"""What stamping cost: from the files of `autostamp safety --json` and `benchmarks/overhead.py --json`, and from the cubins and
times that `autostamp launch` leaves in its run folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.manifest import KernelTrace
    from autostamp.model.replay import Replays
    from autostamp.report.cost import Cost


def read_costs(
    kernels: Sequence[KernelTrace],
    safety: Path | None,
    overhead: Path | None,
    case: str | None = None,
    run: Path | None = None,
    replays: Replays | None = None,
) -> dict[int, Cost]:
    """The cost of each kernel trace, by its number; what no file says comes from the run folder, and of a joined run (`replays`)
    the time is that of its slowest set. Raises AS7004 for a file that is something else, that holds no such kernel or case, or
    that leaves open which it is.
    """
    from autostamp.report.replays_text import worst_ratio

    ratio = _ratio(overhead, kernels, case) if overhead is not None else _launch_ratio(run)
    if replays is not None:
        ratio = ratio or worst_ratio(replays)
    compared = _objects(safety, "kernels") if safety is not None else _from_cubins(run)
    found: dict[int, Cost] = {}
    for kernel in kernels:
        row = _of_kernel(compared, kernel, len(kernels), safety) if compared else None
        found[kernel.number] = _cost(row, ratio, safety)
    return found


def _launch_ratio(run: Path | None) -> float | None:
    """Stamped ÷ clean time of a launch, None where it was not timed."""
    import json

    from autostamp.runtime.store import TIMES_NAME

    try:
        times = json.loads((run / TIMES_NAME).read_bytes()) if run is not None else {}
        return float(times["stamped"]) / float(times["clean"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def _from_cubins(run: Path | None) -> list[Mapping[str, Any]]:
    """What `autostamp safety` says of the two cubins of a launch; nothing where there are none, or no tool that reads them."""
    import msgspec

    from autostamp.passes import safety
    from autostamp.runtime import cubin

    files = [run / f"{name}.cubin" for name in ("clean", "stamped")] if run is not None else []
    if not files or not all(file.is_file() for file in files):
        return []
    try:
        pairs = safety.pair(*(cubin.read_file(file) for file in files))
    except AutostampError:
        return []
    reports = [safety.compare(before, after) for before, after in pairs]
    return [msgspec.to_builtins(each) | {"schedule_distance": each.schedule.distance} for each in reports]


def _cost(row: Mapping[str, Any] | None, ratio: float | None, path: Path | None) -> Cost:
    from autostamp.passes.safety import REGISTERS, SPILLS
    from autostamp.report.cost import Cost

    if row is None:
        return Cost(time_ratio=ratio)
    try:
        pairs = {each["name"]: (int(each["clean"]), int(each["stamped"])) for each in row["resources"]}
        spilled = [pairs[name] for name in SPILLS]
        spills = sum(clean for clean, _ in spilled), sum(stamped for _, stamped in spilled)
        return Cost(ratio, pairs[REGISTERS], spills, float(row["schedule_distance"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"it is not what `autostamp safety --json` prints ({error!r})") from error


def _of_kernel(
    rows: Sequence[Mapping[str, Any]], kernel: KernelTrace, kernels: int, path: Path | None
) -> Mapping[str, Any]:
    """The row of the kernel's symbol; of a file with one row that names no other kernel of the run, this one."""
    named = [row for row in rows if kernel.symbol and row.get("kernel") == kernel.symbol]
    if named:
        return named[0]
    if len(rows) == 1 and kernels == 1:
        return rows[0]
    there = ", ".join(str(row.get("kernel")) for row in rows) or "none"
    raise _refused(path, f"no row is kernel trace {kernel.number} ({kernel.symbol or kernel.kernel}); it has {there}")


def _ratio(path: Path, kernels: Sequence[KernelTrace], case: str | None) -> float:
    """Stamped ÷ clean time, the median over the rounds of the case."""
    if len(kernels) > 1:
        raise _refused(path, "one time belongs to one kernel: choose it with --kernel or --trace")
    rows = _objects(path, "cases")
    chosen = [row for row in rows if case in (None, row.get("name"))]
    if len(chosen) != 1:
        there = ", ".join(str(row.get("name")) for row in rows) or "none"
        raise _refused(path, f"choose one of its cases with --case; it has {there}")
    try:
        return float(chosen[0]["ratio"]["median"])
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"its case {chosen[0].get('name')} has no median ratio") from error


def _objects(path: Path, key: str) -> list[Mapping[str, Any]]:
    import json

    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _refused(path, str(error)) from error
    rows = value.get(key) if isinstance(value, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _refused(path, f"it has no list {key!r}")
    return rows


def _refused(path: Path | None, detail: str) -> AutostampError:
    return AutostampError.of("AS7004", path=path, detail=detail)
