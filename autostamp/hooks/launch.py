# SPDX-License-Identifier: Apache-2.0
"""Compile a unit of CUDA C++ twice, as it is and stamped, launch both on the same inputs, and compare what they leave."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from autostamp.diagnostics import Diagnostic
from autostamp.hooks.launch_plan import LaunchPlan
from autostamp.hooks.stamped_unit import stamp
from autostamp.hooks.unit_build import Built, StampedUnit, build
from autostamp.model.options import InstrumentOptions
from autostamp.passes.stamped import key_of
from autostamp.runtime import machine, store
from autostamp.runtime.cuda.comparison import Difference, difference
from autostamp.runtime.cuda.device import Device, Loaded, attempts
from autostamp.runtime.manifest_file import write_all

Stamper = Callable[[Path, bytes, InstrumentOptions, tuple[str, ...]], StampedUnit | None]
"""Stamps a unit, given the folders of -I; None when there is nothing to stamp."""

STAMPER: Stamper = stamp
"""What `autostamp launch` stamps with."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One launched copy. `outputs` are the arrays after the launch, `microseconds` the median over the timed launches."""

    cubin: bytes
    symbol: str
    registers: int
    local_bytes: int
    outputs: tuple[npt.NDArray[Any], ...]
    microseconds: float | None = None


@dataclass(frozen=True, slots=True)
class ArrayResult:
    """One array. `difference` is None where both copies left the same bits; `is_equal` is None when only one was launched."""

    name: str
    number: str
    shape: tuple[int, ...]
    is_const: bool
    is_changed: bool
    is_equal: bool | None
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What a launch gave. `records` are the bytes of the stamped copy's region."""

    clean: Copy | None
    stamped: Copy | None
    arrays: tuple[ArrayResult, ...]
    findings: tuple[Diagnostic, ...]
    records: npt.NDArray[np.uint8] | None = None

    @property
    def outputs(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays after the stamped launch, or the clean one where there was no other."""
        copy = self.stamped or self.clean
        return copy.outputs if copy is not None else ()


def launch(plan: LaunchPlan, stamped: StampedUnit | None, device: Device) -> LaunchResult:
    """Compile, launch and compare. Raises what `build` raises, AS8005 for a shape that the kernel cannot have, and AS8008
    when a launch fails. What does not stop it is in the result's findings: AS3101, AS8006, AS8007, AS8009.
    """
    plan.shape.check()
    with tempfile.TemporaryDirectory(prefix="autostamp-launch-") as folder:
        built = build(plan, stamped, Path(folder))
        return _Launch(plan, device, *built).run(stamped)


class _Launch:
    """The two copies on the device."""

    def __init__(self, plan: LaunchPlan, device: Device, clean: Built, stamped: Built | None) -> None:
        self._plan = plan
        self._device = device
        self._clean = clean
        self._stamped = stamped
        self._loaded: dict[str, Loaded] = {}

    def run(self, unit: StampedUnit | None) -> LaunchResult:
        findings: list[Diagnostic] = []
        records = clean = stamped = None
        if self._plan.compare or unit is None or self._plan.repeat:
            clean = self._copy("clean", self._clean)
        if unit is not None and self._stamped is not None:
            loaded = self._load("stamped", self._stamped)
            with attempts("stamped"):
                address = unit.bind(loaded.module, self._plan.kernel, self._device.memory)
            stamped = self._copy("stamped", self._stamped)
            with attempts("stamped"):
                records = self._device.memory.read(address).copy()
            new = [text for text in self._stamped.advisories if text not in self._clean.advisories]
            findings += [
                Diagnostic.of("AS3101", detail=f"ptxas says of the stamped kernel alone: {text}") for text in new
            ]
        else:
            findings.append(unstamped(self._plan))
        arrays = self._compare(clean, stamped, findings)
        if self._plan.repeat:
            clean, stamped = self._time(clean, stamped)
        return LaunchResult(clean, stamped, arrays, tuple(findings), records)

    def _load(self, name: str, built: Built) -> Loaded:
        if name not in self._loaded:
            with attempts(name):
                self._loaded[name] = self._device.load(built.cubin, built.symbol, self._plan.shape)
        return self._loaded[name]

    def _outputs(self, name: str, built: Built) -> tuple[npt.NDArray[Any], ...]:
        loaded, arguments = self._load(name, built), self._plan.arguments
        with attempts(name):
            arrays = self._device.put(arguments)
            self._device.launch(loaded, self._plan.shape, arguments, arrays)
            return self._device.get(arguments, arrays)

    def _copy(self, name: str, built: Built) -> Copy:
        outputs = self._outputs(name, built)
        loaded = self._loaded[name]
        return Copy(built.cubin.read_bytes(), built.symbol, loaded.registers, loaded.local_bytes, outputs)

    def _compare(self, clean: Copy | None, stamped: Copy | None, findings: list[Diagnostic]) -> tuple[ArrayResult, ...]:
        """What became of each array. A second clean launch tells a difference that the stamps made from one of chance."""
        again: tuple[npt.NDArray[Any], ...] | None = None
        results = []
        for number, buffer in enumerate(self._plan.arguments.buffers):
            left = [copy.outputs[number] for copy in (clean, stamped) if copy is not None]
            found = difference(left[0], left[1]) if len(left) > 1 else None
            if found is not None:
                again = again or self._outputs("clean", self._clean)
                findings.append(_differing(buffer.name, found, difference(left[0], again[number])))
            is_changed = any(difference(buffer.data, array) is not None for array in left)
            if buffer.is_const and is_changed:
                findings.append(
                    Diagnostic.of("AS8006", array=buffer.name, detail="it is const, and the kernel wrote to it")
                )
            is_equal = found is None if len(left) > 1 else None
            results.append(
                ArrayResult(buffer.name, buffer.number, buffer.shape, buffer.is_const, is_changed, is_equal, found)
            )
        return tuple(results)

    def _time(self, clean: Copy | None, stamped: Copy | None) -> tuple[Copy | None, Copy | None]:
        """Launch the copies in turn, each time on fresh inputs, and keep the median of each."""
        copies = {"clean": clean, "stamped": stamped}
        times: dict[str, list[float]] = {name: [] for name, copy in copies.items() if copy is not None}
        for _ in range(self._plan.repeat):
            for name, taken in times.items():
                with attempts(name):
                    arrays = self._device.put(self._plan.arguments)
                    taken.append(
                        self._device.launch(self._loaded[name], self._plan.shape, self._plan.arguments, arrays)
                    )
        timed = {
            name: None if copy is None else replace(copy, microseconds=median(times[name]))
            for name, copy in copies.items()
        }
        return timed["clean"], timed["stamped"]


def unstamped(plan: LaunchPlan) -> Diagnostic:
    """The finding that nothing is stamped."""
    return Diagnostic.of("AS8009", kernel=plan.kernel, detail="no wait and no signal of the file was stamped")


def _differing(array: str, found: Difference, between_clean: Difference | None) -> Diagnostic:
    if between_clean is not None:
        return Diagnostic.of("AS8007", array=array, detail=str(between_clean))
    index = ",".join(str(each) for each in found.first)
    detail = (
        f"the stamped kernel left other bits in {found.count} of {found.size} elements, the first at [{index}]: "
        f"{found.bits[1]}, clean {found.bits[0]}"
    )
    return Diagnostic.of("AS8006", array=array, detail=detail)


def write(
    out: Path, plan: LaunchPlan, result: LaunchResult, unit: StampedUnit, command: tuple[str, ...]
) -> list[Diagnostic]:
    """Write the run folder of a stamped launch, with both cubins; returns AS5003 when nothing was recorded. Raises AS7001."""
    records = result.records if result.records is not None else np.zeros(0, np.uint8)
    manifest = unit.manifest(plan.kernel, records)
    regions = {trace.region: records for trace in manifest.traces}
    traces = store.decode_all(manifest, regions)
    rates = [trace.sm_mhz for trace in traces.values() if trace.sm_mhz]
    name = f"{key_of(plan.text)}/{plan.source.name}"
    texts = {f"stamped/{name}": unit.text, f"original/{name}": plan.text}
    sources = {path: text.decode(errors="replace") for path, text in texts.items()}
    facts = machine.facts(command, median(rates) if rates else 0.0)
    store.write_run(out, manifest, regions, facts, sources)
    copies = {"clean": result.clean, "stamped": result.stamped}
    write_all({out / f"{name}.cubin": copy.cubin for name, copy in copies.items() if copy is not None})
    times = {name: copy.microseconds for name, copy in copies.items() if copy is not None and copy.microseconds}
    (out / store.TIMES_NAME).unlink(missing_ok=True)  # of an earlier launch into this folder
    if len(times) == len(copies):
        write_all({out / store.TIMES_NAME: json.dumps(times).encode() + b"\n"})
    if any(lane.events for trace in traces.values() for lane in trace.lanes):
        return []
    hint = "Check that the kernel reaches a stamped site, and that the CTA that records lies in the grid."
    return [Diagnostic.of("AS5003", detail="the stamped kernel ran and left its region empty", hint=hint)]
