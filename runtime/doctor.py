# SPDX-License-Identifier: Apache-2.0
"""What this machine has and what can therefore run on it: stamping, compiling, launching."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from autostamp.diagnostics import AutostampError
from autostamp.runtime import toolchain
from autostamp.runtime.devices import Gpu, find_gpus

PACKAGES = (
    "libcst",
    "numpy",
    "msgspec",
    "perfetto",
    "nvidia-cutlass-dsl",
    "nvidia-cutlass-dsl-libs-cu12",
    "nvidia-cutlass-dsl-libs-cu13",
    "cuda-bindings",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
    "flash-attn-4",
    "quack-kernels",
)
"""Distributions that autostamp, its extras or the kernels it is tried on need, in the order in which they are shown."""

TOOLS = (*toolchain.DISTRIBUTIONS, "nvcc")
"""Command-line tools: what `autostamp safety` runs, and the CUDA C++ compiler."""

_DSL = "nvidia-cutlass-dsl"
_OLDEST_DSL, _TOO_NEW_DSL = (4, 7), (5, 0)
_FLAVORS = {12: "nvidia-cutlass-dsl-libs-cu12", 13: "nvidia-cutlass-dsl-libs-cu13"}
_CUPY = {12: "cupy-cuda12x", 13: "cupy-cuda13x"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A command-line tool: where it is and which release it says it is (both empty when it was not found)."""

    name: str
    path: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found. `dsl_error` is empty when the CuTe-DSL imports, `gpu_note` says why `gpus` is empty."""

    python: str
    platform: str
    packages: dict[str, str]
    tools: tuple[Tool, ...]
    gpus: tuple[Gpu, ...] = ()
    gpu_note: str = ""
    dsl_error: str = ""

    @property
    def dsl_flavors(self) -> tuple[int, ...]:
        """CUDA major versions that the installed CuTe-DSL libraries are built for."""
        return tuple(major for major, name in _FLAVORS.items() if self.packages.get(name))

    @property
    def driver_cuda(self) -> int:
        """CUDA major version that the driver supports; 0 without a driver."""
        return int(self.gpus[0].cuda.partition(".")[0] or 0) if self.gpus else 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """For each step an empty string when it can run here, else the reason why not; `install` lists what to do about it."""

    instrument: str
    compile: str
    launch: str
    install: tuple[str, ...]


def examine() -> Facts:
    """Look at the interpreter, the installed packages, the tools and the GPUs of this machine. Starts a few processes."""
    packages = {name: _version(name) for name in PACKAGES}
    gpus, gpu_note = find_gpus()
    return Facts(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=packages,
        tools=tuple(_examine_tool(name) for name in TOOLS),
        gpus=gpus,
        gpu_note=gpu_note,
        dsl_error=_import_error("cutlass.cute") if packages[_DSL] else "not installed",
    )


def judge(facts: Facts) -> Verdict:
    """Decide from the facts alone what can run, and what to install for the rest."""
    instrument = "" if facts.packages.get("libcst") else "libcst is not installed"
    compile_ = _why_not_compile(facts)
    launch = compile_ or _why_not_launch(facts)
    return Verdict(instrument, compile_, launch, _advice(facts, compile_, launch))


def _why_not_compile(facts: Facts) -> str:
    if not facts.packages.get(_DSL):
        return "the CuTe-DSL (nvidia-cutlass-dsl) is not installed"
    version = facts.packages[_DSL]
    if not _OLDEST_DSL <= _numbers(version) < _TOO_NEW_DSL:
        return f"the CuTe-DSL is {version}; autostamp knows 4.7 up to, not including, 5"
    return f"the CuTe-DSL cannot be imported: {facts.dsl_error}" if facts.dsl_error else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _why_not_launch(facts: Facts) -> str:
    if not facts.gpus:
        return f"no GPU: {facts.gpu_note}"
    usable = [major for major in facts.dsl_flavors if major <= facts.driver_cuda]
    if not usable:
        return f"the driver supports CUDA {facts.gpus[0].cuda}, older than the installed CuTe-DSL libraries"
    if not any(facts.packages.get(name) for major, name in _CUPY.items() if major <= facts.driver_cuda):
        return "cupy, which holds the record buffer, is not installed for this driver"
    return ""


def _advice(facts: Facts, compile_: str, launch: str) -> tuple[str, ...]:
    advice = []
    if facts.gpus and launch:
        advice.append(f"pip install 'autostamp[cuda{13 if facts.driver_cuda >= 13 else 12}]'  (to compile and launch)")
    elif compile_:
        advice.append("pip install 'autostamp[cutedsl]'  (to compile)")
    absent = {tool.name for tool in facts.tools if not tool.path}
    wheels = " ".join(wheel for name, wheel in toolchain.DISTRIBUTIONS.items() if name in absent)
    if wheels:
        advice.append(f"pip install {wheels}  (for `autostamp safety`)")
    if not facts.gpus:
        advice.append("a GPU and its driver, to launch: pip cannot install those")
    return tuple(advice)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _examine_tool(name: str) -> Tool:
    try:
        path = toolchain.find(name)
    except AutostampError:
        return Tool(name)
    done = _run(str(path), "--version")
    found = re.search(r"\brelease (\d+\.\d+)", done.stdout) if done else None
    return Tool(name, str(path), found[1] if found else "")


def _import_error(module: str) -> str:
    """Import in a process of its own: a broken native library may end the interpreter, and must not end this one."""
    done = _run(sys.executable, "-P", "-c", f"import {module}")
    if done is None:
        return f"importing {module} did not end"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit status {done.returncode}")


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return None
