# SPDX-License-Identifier: Apache-2.0
"""Registers, spills and instructions of the two builds of `benchmarks/overhead.py`, from their cubins."""

from __future__ import annotations

from typing import Any

from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.runtime import cubin
from benchmarks.overhead_cases import Build, Builds
from benchmarks.overhead_timing import say


def resources_of(builds: Builds) -> list[dict[str, Any]]:
    """Registers, spills and instructions of every kernel that was compiled in both builds; none without the tools."""
    found: list[dict[str, Any]] = []
    try:
        for owner, clean in builds.kept[Build.CLEAN].items():
            for key, compiled in clean.items():
                pair = (compiled, builds.kept[Build.STAMPED].get(owner, {}).get(key))
                images = [getattr(item, "__cubin__", None) for item in pair]
                if all(isinstance(image, bytes) for image in images):
                    facts = [cubin.read(image) for image in images if isinstance(image, bytes)]
                    found += [_row(builds.made_for[owner, key], owner, *both) for both in zip(*facts, strict=True)]
    except (AutostampError, ValueError) as error:
        say(f"no registers and spills: {error}")
    return found


def _row(case: str, owner: str, clean: CubinFacts, stamped: CubinFacts) -> dict[str, Any]:
    row: dict[str, Any] = {"case": case, "owner": owner.lstrip("_"), "kernel": clean.kernel}
    for build, facts in ((Build.CLEAN, clean), (Build.STAMPED, stamped)):
        row[build.value] = {
            "registers": facts.registers,
            "spill_bytes": facts.spill_store_bytes,
            "instructions": facts.instruction_count,
        }
    return row
