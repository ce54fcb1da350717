# SPDX-License-Identifier: Apache-2.0
"""The ladder of NVFP4 matrix-vector products beside the floor: reading the same bytes and doing nothing else.

    python benchmarks/gemv.py [--json OUT] [--shape M,K,L]... [--repeat N] [--program PATH]

Compiles kernels/cuda/gemv/gemv.cu with nvcc (unless --program names a build of it) and runs it for each shape. Every rung's
result is compared with one in double, and each time is the median of single launches with nothing of the data in L2. The floor
is measured in the same run. Takes half a minute on an H200.

Exit status: 0 done, 1 a result is wrong, 2 wrong usage or a CUDA call failed, 3 no nvcc or no GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if not __package__:  # run as a script: what it imports lies beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.runtime import devices, machine
from benchmarks.overhead_statistics import table

SOURCE = Path(__file__).resolve().parents[1] / "kernels" / "cuda" / "gemv" / "gemv.cu"
NVCC = ("nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
SHAPES = ("7168,16384,1", "4096,7168,8", "7168,2048,4")
HBM_BYTES_PER_US = 4.8e6
"""Of an H200, by NVIDIA's data sheet: 4.8 TB/s."""

FLOOR = "floor"
EMPTY = "empty"
"""A kernel that does nothing: what a launch takes in itself."""

_HEAD = re.compile(r"M (\d+) K (\d+) L (\d+) bytes (\d+) seed (\d+) repeat (\d+)")
_RUNG = re.compile(
    r"(?P<name>\w+) us_per_launch (?P<median>[\d.]+) p10 (?P<p10>[\d.]+) p90 (?P<p90>[\d.]+) least (?P<least>[\d.]+)"
    r"(?: max_error_of_allowed (?P<error>[\d.e+-]+|inf|nan) wrong (?P<wrong>\d+))?"
)


@dataclass(frozen=True, slots=True)
class Rung:
    """Times in microseconds, and how many results are wrong; the floor has none."""

    name: str
    median: float
    p10: float
    p90: float
    least: float
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Ladder:
    """One shape. `bytes_read` are those of the matrix, the vector and all scales."""

    m: int
    k: int
    l: int  # noqa: E741 - the problem's own letter
    bytes_read: int
    seed: int
    repeat: int
    rungs: tuple[Rung, ...]

    @property
    def floor(self) -> Rung:
        """The read kernel's row."""
        return next(rung for rung in self.rungs if rung.name == FLOOR)

    @property
    def shape(self) -> str:
        """For people."""
        return f"{self.m} x {self.k}, L = {self.l}"


def read(text: str) -> Ladder:
    """What the program printed. Raises ValueError when a part is missing."""
    head = _HEAD.search(text)
    rungs = tuple(
        Rung(row["name"], *(float(row[key]) for key in ("median", "p10", "p90", "least")), int(row["wrong"] or 0))
        for row in _RUNG.finditer(text)
    )
    if head is None or not any(rung.name == FLOOR for rung in rungs):
        message = f"the program printed no ladder: {text.strip()[-200:]!r}"
        raise ValueError(message)
    return Ladder(*(int(group) for group in head.groups()), rungs)


def report(ladders: Sequence[Ladder]) -> str:
    """One Markdown table: a row for each rung, and for each shape its time and how much of it the floor is."""
    headings = ["rung"]
    for ladder in ladders:
        headings += [f"{ladder.shape}: µs (p10-p90)", "floor ÷ time"]
    rows = []
    for number, rung in enumerate(ladders[0].rungs):
        row = [rung.name]
        for ladder in ladders:
            here = ladder.rungs[number]
            share = "" if rung.name == EMPTY else f"{ladder.floor.median / here.median:.0%}"
            row += [f"{here.median:,.1f} ({here.p10:,.1f}-{here.p90:,.1f})", "wrong" if here.wrong else share]
        rows.append(tuple(row))
    return table(tuple(headings), rows)


def rates(ladders: Sequence[Ladder]) -> str:
    """What the floor is in bytes a second, beside the data sheet."""
    lines = []
    for ladder in ladders:
        rate = ladder.bytes_read / ladder.floor.median / 1e6
        sheet = ladder.bytes_read / HBM_BYTES_PER_US
        lines.append(
            f"{ladder.shape}: {ladder.bytes_read / 1e6:.1f} MB, read in {ladder.floor.median:.1f} µs: {rate:.2f} TB/s"
            f" (4.8 TB/s would be {sheet:.1f} µs)"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, run and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write everything, with the machine's facts, to a file"
    )
    parser.add_argument("--shape", action="append", metavar="M,K,L", help=f"default {' '.join(SHAPES)}")
    parser.add_argument("--repeat", type=int, default=100, help="launches of each rung (default %(default)s)")
    parser.add_argument("--program", type=Path, help="a build of gemv.cu")
    options = parser.parse_args(arguments)
    if options.program is None and shutil.which(NVCC[0]) is None:
        print("error: nvcc is not on PATH; --program names a build", file=sys.stderr)
        return 3
    if not devices.find_gpus()[0]:
        print(f"error: {devices.find_gpus()[1]}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        program = options.program or Path(folder) / "gemv"
        if options.program is None:
            subprocess.run([*NVCC, "-o", str(program), str(SOURCE)], check=True)
        status, ladders = 0, []
        for shape in options.shape or SHAPES:
            command = [str(program.resolve()), *shape.split(","), "--repeat", str(options.repeat)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            status = max(status, done.returncode)
            sys.stderr.write(done.stderr)
            if done.returncode > 1:
                return done.returncode
            ladders.append(read(done.stdout))
    print(f"{report(ladders)}\n\n{rates(ladders)}")
    if options.json:
        _write(options.json, ladders)
    return status


def _write(path: Path, ladders: Sequence[Ladder]) -> None:
    gpu = devices.find_gpus()[0][0]
    content = {"schema_version": 1, "gpu": gpu.name, "driver": gpu.driver, "versions": machine.versions()}
    content |= {"ladders": [asdict(ladder) for ladder in ladders]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
