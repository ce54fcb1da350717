# SPDX-License-Identifier: Apache-2.0
"""What stamping cost, read from the files of `autostamp safety --json` and `benchmarks/overhead.py --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.manifest import KernelTrace
    from autostamp.report.cost import Cost


def read_costs(
    kernels: Sequence[KernelTrace], safety: Path | None, overhead: Path | None, case: str | None = None
) -> dict[int, Cost]:
    """The cost of each kernel trace, by its number. Raises AS7004 for a file that is something else, that holds no such kernel
    or case, or that leaves open which it is.
    """

    ratio = _ratio(overhead, kernels, case) if overhead is not None else None
    compared = _objects(safety, "kernels") if safety is not None else []
    found: dict[int, Cost] = {}
    for kernel in kernels:
        row = _of_kernel(compared, kernel, len(kernels), safety) if safety is not None else None
        found[kernel.number] = _cost(row, ratio, safety)
    return found


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
