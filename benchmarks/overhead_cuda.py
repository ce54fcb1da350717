# SPDX-License-Identifier: Apache-2.0
"""The bundled CUDA C++ programs for `benchmarks/overhead.py --cuda`: each built clean and stamped, for sm_90a."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.overhead_programs import Program

ROOT = Path(__file__).resolve().parents[1]
NVCC = ("nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
LAUNCHER = (sys.executable, "-m", "autostamp", "nvcc", "--strict", "--")


class CannotBuildError(Exception):
    """nvcc or the launcher ended with an error; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Bundled:
    """One bundled program, by its path in `kernels/cuda` without suffix, and the arguments of one case.

    Without a seed a program draws new numbers each time, and results could not be compared.
    """

    name: str
    source: str
    arguments: tuple[str, ...]


_GEMM = ("2048", "2048", "2048", "--seed", "7")
BUNDLED = (
    Bundled("CUDA C++ sample GEMM 128x128x4096 bf16", "gemm_ws", ("128", "128", "4096")),
    Bundled("CUDA C++ sample GEMM 4096x4096x4096 bf16", "gemm_ws", ("4096", "4096", "4096")),
    *(
        Bundled(
            f"CUDA C++ gallery GEMM {variant} 2048x2048x2048 {dtype}",
            f"gemm/gemm_{variant}",
            (*_GEMM, "--dtype", dtype),
        )
        for variant in ("serial", "plain", "pingpong", "cooperative")
        for dtype in ("tf32", "bf16")
    ),
    Bundled("CUDA C++ NVFP4 ring 7168x16384", "gemv/gemv", ("7168", "16384", "1", "--rung", "ring", "--seed", "7")),
)


def built(folder: Path, is_chosen: Callable[[str], bool]) -> list[Program]:
    """Build the chosen programs into `folder`, clean and stamped, several at a time. Raises CannotBuildError."""
    chosen = [each for each in BUNDLED if is_chosen(each.name)]
    jobs = {
        (each.source, is_stamped): _path(folder, each.source, is_stamped) for each in chosen for is_stamped in (0, 1)
    }
    state = {"AUTOSTAMP_STATE": str(folder / "state"), "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path[1:]))}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: _build(job[0][0], job[0][1], job[1], state), jobs.items()))
    return [Program(each.name, jobs[each.source, 0], jobs[each.source, 1], each.arguments) for each in chosen]


def _path(folder: Path, source: str, is_stamped: int) -> Path:
    return folder / f"{Path(source).name}_{'stamped' if is_stamped else 'clean'}"


def _build(source: str, is_stamped: int, out: Path, variables: Mapping[str, str]) -> None:
    words: Iterable[str] = (
        *(LAUNCHER if is_stamped else ()),
        *NVCC,
        "-o",
        str(out),
        str(ROOT / "kernels/cuda" / f"{source}.cu"),
    )
    done = subprocess.run([*words], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{source}.cu: {(done.stdout + done.stderr).strip()}"
        raise CannotBuildError(message)
