# SPDX-License-Identifier: Apache-2.0
"""Replays of the bundled kernels, end to end: `python -m benchmarks.replayed OUT [--case GLOB]...`, on a GPU.

For each kernel `autostamp place` searches for sets, `autostamp run --replay` runs and joins them, and `benchmarks.replays`
prints what each set cost and what none covers. OUT gets a folder for each, with placement.json and RUN. Run again, it searches
no more: it goes on from what the last session measured, or from a placement.json that was put there.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.gallery_cases import GEMMS
from benchmarks.overhead_cuda import NVCC
from benchmarks.overhead_programs import TIME

ROOT = Path(__file__).resolve().parents[1]
AUTOSTAMP = (sys.executable, "-m", "autostamp")
CUTLASS = ("-DNDEBUG", "--expt-relaxed-constexpr", "-DSCHEDULE=Pingpong")
FLASH = "flash_attn.cute"


@dataclass(frozen=True, slots=True)
class Replayed:
    """One kernel. `targets` are modules to stamp of a Python case; a native one has its `source`, `flags` of nvcc and
    `arguments` of the program. `kernel` is a pattern for the one of its instances that runs.
    """

    name: str
    targets: tuple[str, ...] = ()
    source: str = ""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    kernel: str = "*"

    @property
    def folder(self) -> str:
        return re.sub(r"\W+", "_", self.name)

    def place(self, out: Path) -> list[str]:
        """The command that searches for sets."""
        if not self.source:
            program = [sys.executable, "-m", "benchmarks.replayed_program", "--compile", self.name]
            return [*AUTOSTAMP, "place", *self._instrument(), "-o", str(out / "placement.json"), "--", *program]
        head = [*AUTOSTAMP, "place", "--kernel", self.kernel, "-o", str(out / "placement.json")]
        return [*head, "--", *NVCC, *self.flags, self.source]

    def replay(self, out: Path, options: Sequence[str]) -> list[str]:
        """The command that runs and joins them."""
        results = str(out / "results.bin")
        head = [*AUTOSTAMP, "run", "--replay", "--placement", str(out / "placement.json"), "--time", TIME]
        head += ["--results", results, "-o", str(out / "RUN"), *options]
        if not self.source:
            program = [sys.executable, "-m", "benchmarks.replayed_program", self.name, results]
            return [*head, *self._instrument(), "--", *program]
        binary = str(out / "app_{set}")
        build = shlex.join([*AUTOSTAMP, "nvcc", "--", *NVCC, *self.flags, "-o", "APP", self.source])
        build = build.replace("APP", shlex.quote(str(out / "app_")) + "{set}")
        return [*head, "--capacity", "16384", "--build", build, "--", binary, *self.arguments, "--dump", results]

    def _instrument(self) -> list[str]:
        return [word for target in self.targets for word in ("--instrument", target)]


BURSTS = ("4096", "4096", "4096", "--repeat", "9", "--bursts", "40")


def cases(cutlass_include: str) -> list[Replayed]:
    """All of them; CUTLASS's only where its headers are given."""
    python = [
        Replayed("FA4 forward 1x128x4096x1x128 bf16", (f"{FLASH}.flash_fwd_sm90", f"{FLASH}.flash_fwd")),
        Replayed("FA4 backward 1x4096x4096x1x128 deterministic bf16", (f"{FLASH}.flash_bwd_sm90",)),
        *(
            Replayed(f"gallery GEMM {variant} 512x512x8192 bf16", (GEMMS,))
            for variant in ("plain", "pingpong", "cooperative")
        ),
    ]
    seeded = (*BURSTS, "--dtype", "bf16", "--seed", "7")
    native = [
        Replayed(f"CUDA C++ GEMM {variant}", (), f"kernels/cuda/gemm/gemm_{variant}.cu", (), seeded, "*bfloat16*")
        for variant in ("serial", "plain", "pingpong", "cooperative")
    ]
    native.append(Replayed("CUDA C++ gemm_ws", (), "kernels/cuda/gemm_ws.cu", (), BURSTS))
    if cutlass_include:
        flags = (*CUTLASS, f"-I{cutlass_include}")
        native.append(Replayed("CUTLASS pingpong", (), "benchmarks/cuda/cutlass_gemm.cu", flags, BURSTS))
    return [*python, *native]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose name holds it")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and do nothing")
    parser.add_argument("--cutlass-include", default="", metavar="FOLDER", help="CUTLASS's headers: adds its pingpong")
    jobs = max(1, min(12, (os.cpu_count() or 1) - 2))  # programs that import and compile beside the one that is timed
    parser.add_argument(
        "--options",
        default=f"--runs 4 --try-uncovered --jobs {jobs}",
        help="of `autostamp run --replay` (default %(default)s)",
    )
    options = parser.parse_args()
    chosen = [
        case
        for case in cases(options.cutlass_include)
        if not options.case or any(fnmatch.fnmatchcase(case.name, f"*{glob}*") for glob in options.case)
    ]
    if options.list:
        sys.stdout.writelines(f"{case.name}\n" for case in chosen)
        return 0
    joined = [run for case in chosen if (run := _replayed(case, options.out.resolve(), options.options.split()))]
    if not joined:
        return 1
    words = [sys.executable, "-m", "benchmarks.replays", *joined, "--json", str(options.out / "replays.json")]
    return subprocess.run(words, cwd=ROOT, check=False).returncode


def _replayed(case: Replayed, out: Path, options: Sequence[str]) -> str:
    """NAME=RUN of a case that could be joined, else nothing. What the commands say goes to their own stderr and stdout."""
    folder = out / case.folder
    folder.mkdir(parents=True, exist_ok=True)
    paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    take_on(folder)
    if not (folder / "placement.json").is_file():
        subprocess.run(case.place(folder), cwd=ROOT, env=environment, check=False)
    subprocess.run(case.replay(folder, options), cwd=ROOT, env=environment, check=False)
    return f"{case.name}={folder / 'RUN'}" if (folder / "RUN/replays.json").is_file() else ""


def take_on(folder: Path) -> None:
    """Make what an earlier session would run next the placement; where none of its sets could be joined, it lies beside RUN."""
    for learnt in (folder / "RUN" / "placement.json", folder / "RUN-placement.json"):
        if learnt.is_file():
            learnt.replace(folder / "placement.json")


if __name__ == "__main__":
    sys.exit(main())
