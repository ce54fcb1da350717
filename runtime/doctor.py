# SPDX-License-Identifier: Apache-2.0
"""What this machine has and what can therefore run on it, for each language: stamping, compiling, running."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from autostamp.diagnostics import AutostampError
from autostamp.runtime import toolchain
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.devices import Gpu, find_gpus

PACKAGES = (
    "libcst",
    "tree-sitter",
    "tree-sitter-cuda",
    "pycparser",
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

_DSL = "nvidia-cutlass-dsl"
_OLDEST_DSL, _TOO_NEW_DSL = (4, 7), (5, 0)
_FLAVORS = {12: "nvidia-cutlass-dsl-libs-cu12", 13: "nvidia-cutlass-dsl-libs-cu13"}
_PARSERS = ("tree-sitter", "tree-sitter-cuda", "pycparser")
_CUPY = {12: "cupy-cuda12x", 13: "cupy-cuda13x"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A command-line tool: where it is and which release it says it is (both empty when it was not found)."""

    name: str
    path: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found: `tools` are those that `autostamp safety` runs, and nvcc.

    `dsl_error` is empty when the CuTe-DSL imports, `nvcc_error` when nvcc was found; `gpu_note` says why `gpus` is empty.
    """

    python: str
    platform: str
    packages: dict[str, str]
    tools: tuple[Tool, ...]
    gpus: tuple[Gpu, ...] = ()
    gpu_note: str = ""
    dsl_error: str = ""
    nvcc_error: str = ""

    @property
    def dsl_flavors(self) -> tuple[int, ...]:
        """CUDA major versions that the installed CuTe-DSL libraries are built for."""
        return tuple(major for major, name in _FLAVORS.items() if self.packages.get(name))

    @property
    def driver_cuda(self) -> int:
        """CUDA major version that the driver supports; 0 without a driver."""
        return _major(self.gpus[0].cuda) if self.gpus else 0

    @property
    def nvcc(self) -> Tool:
        """nvcc's row of `tools`."""
        return next((tool for tool in self.tools if tool.name == "nvcc"), Tool("nvcc"))


@dataclass(frozen=True, slots=True)
class CudaVerdict:
    """The same for CUDA C++, where `run` is `autostamp run -- ./app` and `launch` is `autostamp launch`."""

    instrument: str
    compile: str
    run: str
    launch: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """For each step an empty string when it can run here, else the reason why not; `install` lists what to do about it.

    The first three are those of the CuTe-DSL.
    """

    instrument: str
    compile: str
    launch: str
    cuda: CudaVerdict
    install: tuple[str, ...]


def examine() -> Facts:
    """Look at the interpreter, the installed packages, the tools and the GPUs of this machine. Starts a few processes."""
    packages = {name: _version(name) for name in PACKAGES}
    gpus, gpu_note = find_gpus()
    compiler, nvcc_error = _examine_nvcc()
    return Facts(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=packages,
        tools=(*(_examine_tool(name) for name in toolchain.DISTRIBUTIONS), compiler),
        gpus=gpus,
        gpu_note=gpu_note,
        dsl_error=_import_error("cutlass.cute") if packages[_DSL] else "not installed",
        nvcc_error=nvcc_error,
    )


def judge(facts: Facts) -> Verdict:
    """Decide from the facts alone what can run, and what to install for the rest."""
    instrument = "" if facts.packages.get("libcst") else "libcst is not installed"
    compile_ = _why_not_compile(facts)
    launch = compile_ or _why_not_launch(facts)
    cuda = _judge_cuda(facts)
    return Verdict(instrument, compile_, launch, cuda, _advice(facts, compile_, launch, cuda))


def _judge_cuda(facts: Facts) -> CudaVerdict:
    missing = ", ".join(name for name in _PARSERS if not facts.packages.get(name))
    instrument = f"not installed: {missing}" if missing else ""
    compile_ = instrument or facts.nvcc_error
    run = compile_ or _why_not_run(facts)
    return CudaVerdict(instrument, compile_, run, run or _why_no_cupy(facts))


def _why_not_run(facts: Facts) -> str:
    if not facts.gpus:
        return f"no GPU: {facts.gpu_note}"
    if facts.driver_cuda and facts.driver_cuda < _major(facts.nvcc.release):
        return f"the driver supports CUDA {facts.gpus[0].cuda}, older than nvcc {facts.nvcc.release}"
    return ""


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
    return _why_no_cupy(facts)


def _why_no_cupy(facts: Facts) -> str:
    if any(facts.packages.get(name) for major, name in _CUPY.items() if major <= facts.driver_cuda):
        return ""
    return "cupy, which holds the record buffer, is not installed for this driver"


def _advice(facts: Facts, compile_: str, launch: str, cuda: CudaVerdict) -> tuple[str, ...]:
    advice = []
    if cuda.instrument:
        advice.append("pip install --upgrade autostamp  (its parsers of CUDA C++ are missing)")
    if facts.gpus and launch:
        advice.append(f"pip install 'autostamp[cuda{13 if facts.driver_cuda >= 13 else 12}]'  (to compile and launch)")
    elif compile_:
        advice.append("pip install 'autostamp[cutedsl]'  (to compile)")
    absent = {tool.name for tool in facts.tools if not tool.path}
    wheels = " ".join(wheel for name, wheel in toolchain.DISTRIBUTIONS.items() if name in absent)
    if wheels:
        advice.append(f"pip install {wheels}  (for `autostamp safety`)")
    if facts.nvcc_error:
        advice.append("the CUDA toolkit, whose nvcc compiles CUDA C++: put it on PATH or name it in CUDA_HOME")
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


def _examine_nvcc() -> tuple[Tool, str]:
    """(nvcc, why it cannot be used)."""
    try:
        found = nvcc.find()
    except AutostampError as error:
        return Tool("nvcc"), error.diagnostic.message
    return Tool("nvcc", str(found.path), found.version), ""


def _major(release: str) -> int:
    """The number before the first dot; 0 when there is none."""
    return int(release.partition(".")[0] or 0)


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
