# SPDX-License-Identifier: Apache-2.0
"""Probes to cubins: compiled with nvcc for one architecture, and their machine code checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.cubin import CubinFacts
from autostamp.runtime import cubin
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.probes import machine_code
from autostamp.runtime.probes.probe import Probe


@dataclass(frozen=True, slots=True)
class Built:
    """Probes compiled for `arch`.

    `cubins`: by file of kernels/probes. `good`: probes whose machine code is what it must be; `findings`: AS4040 for each of
    the others. `absent`: probes of instructions that the architecture lacks.
    """

    arch: str
    cubins: dict[str, Path]
    good: tuple[Probe, ...]
    findings: tuple[Diagnostic, ...]
    absent: tuple[Probe, ...]


def folder() -> Path:
    """Where the sources of the probes are."""
    return Path(str(resources.files("autostamp"))) / "kernels" / "probes"


def build(probes: Sequence[Probe], arch: str, into: Path, also: Sequence[str] = ()) -> Built:
    """Compile the files of `probes`, and the files `also`, for `arch` into `into`, and check each probe's machine code.

    Raises AS4010, AS4011 and AS4014 without a compiler that can, AS4041 for a file that does not compile, AS4002 and AS4003
    where the machine code cannot be read.
    """
    compiler = nvcc.find()
    nvcc.require(compiler, arch)
    there = [probe for probe in probes if probe.runs_on(arch)]
    cubins: dict[str, Path] = {}
    found: dict[str, Diagnostic] = {}
    for file in dict.fromkeys((*(probe.file for probe in there), *also)):
        compiled = _compile(compiler, file, arch, into)
        assert compiled.cubin is not None
        cubins[file] = compiled.cubin
        functions = {facts.kernel: facts for facts in cubin.read_file(compiled.cubin)}
        advice = [message.text for message in compiled.messages if message.is_performance]
        for probe in there:
            if probe.file == file and (wrong := _wrong(probe, functions, advice)):
                found[probe.name] = Diagnostic.of("AS4040", probe=probe.name, arch=arch, detail="; ".join(wrong))
    return Built(
        arch,
        cubins,
        tuple(probe for probe in there if probe.name not in found),
        tuple(found[probe.name] for probe in there if probe.name in found),
        tuple(probe for probe in probes if not probe.runs_on(arch)),
    )


def _compile(compiler: nvcc.Nvcc, file: str, arch: str, into: Path) -> nvcc.Compilation:
    source = folder() / file
    compiled = nvcc.compile_unit(compiler, source, source.read_bytes(), nvcc.Flags(arch), into)
    if compiled.cubin is None:
        detail = compiled.errors[0].text if compiled.errors else compiled.output.strip()
        raise AutostampError.of("AS4041", path=source, arch=arch, detail=detail)
    return compiled


def _wrong(probe: Probe, functions: dict[str, CubinFacts], advice: Sequence[str]) -> list[str]:
    """What the compiler said against the kernel (C75xx: instructions that it had to serialize) and what its code shows."""
    if probe.kernel not in functions:
        return [f"{probe.file} has no kernel {probe.kernel}"]
    said = [text for text in advice if text.rstrip("'").endswith(f"'{probe.kernel}")]
    return [*said, *machine_code.findings(functions[probe.kernel], probe.loops)]
