# SPDX-License-Identifier: Apache-2.0
"""The three CuTe-DSL GEMMs of the gallery beside cuBLAS: TFLOP/s, and whether the results are equal in every bit.

    python benchmarks/gemm_cutedsl.py [--json FILE] [--size S]... [--rounds N]

Needs a Hopper GPU, torch and nvidia-cutlass-dsl; takes about a minute. All are called on the same random bf16 operands in the
same process; torch.mm (B transposed, bf16 result) stands for cuBLAS. A round times each of them in turn, each time a replay of a
CUDA graph with enough launches for about two milliseconds. Printed are the medians of the rounds with p10 and p90.

Exit status: 0 done, 1 a result is wrong, 2 wrong usage, 3 no GPU or no torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.runtime import machine
from benchmarks.gallery_cases import GalleryGemm, Kept
from benchmarks.overhead_statistics import Spread, launches_for, spread_of, table

VARIANTS: Final = ("plain", "pingpong", "cooperative")
BATCH_US: Final = 2000.0
MOST_LAUNCHES: Final = 64
WARM_UP: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on one size. `us` is a launch; `tflops` counts 2 S^3; `error` is in units in the last place of bf16."""

    size: int
    kernel: str
    us: Spread
    tflops: Spread
    error: float
    equals_cublas: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--size", type=int, action="append", help="M = N = K, a multiple of 256; default 2048, 4096, 8192"
    )
    parser.add_argument("--rounds", type=int, default=20, help="default %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to a file")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("error: torch sees no CUDA device", file=sys.stderr)
        return 3
    kept: Kept = {}
    rows = [row for size in options.size or (2048, 4096, 8192) for row in measure(size, options.rounds, kept)]
    gpu = str(torch.cuda.get_device_name())
    print(report(gpu, options.rounds, rows))
    if options.json:
        content = {"schema_version": 1, "gpu": gpu, "driver": machine.driver_version(), "versions": machine.versions()}
        content |= {"rounds": options.rounds, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0 if all(is_right(row) for row in rows) else 1


def is_right(row: Row) -> bool:
    """True when every element is the rounded exact sum, up to ties. cuBLAS itself is not judged."""
    from autostamp.kernels.cutedsl.gemm_gallery.reference import UNITS_IN_THE_LAST_PLACE

    return row.kernel == "cuBLAS" or row.error <= UNITS_IN_THE_LAST_PLACE


def measure(size: int, rounds: int, kept: Kept) -> list[Row]:
    """Rows of all kernels on one size, cuBLAS last."""
    import torch

    from autostamp.kernels.cutedsl.gemm_gallery.reference import FRACTION_BITS, worst_error

    cases = [GalleryGemm(variant, size, size, size) for variant in VARIANTS]
    cases[0].prepare()
    for case in cases[1:]:
        case.share_operands(cases[0])
    a, b, _ = cases[0].operands
    product = torch.empty(size, size, dtype=torch.bfloat16, device="cuda")
    kernels: dict[str, Callable[[], object]] = {
        case.variant: lambda case=case: case.launch(kept)
        for case in cases  # type: ignore[misc]
    }
    kernels["cuBLAS"] = lambda: torch.mm(a, b.T, out=product)
    results = {case.variant: case.outputs()["c"] for case in cases} | {"cuBLAS": product}
    graphs = {name: Graph(launch) for name, launch in kernels.items()}
    times: dict[str, list[float]] = {name: [] for name in kernels}
    for _ in range(rounds):
        for name, graph in graphs.items():
            times[name].append(graph.time_us())
    errors = {name: worst_error(result, a, b, FRACTION_BITS["bf16"]) for name, result in results.items()}
    return [
        Row(
            size,
            name,
            spread_of(times[name]),
            spread_of([2e-6 * size**3 / us for us in times[name]]),
            errors[name],
            bool(torch.equal(result, product)),
        )
        for name, result in results.items()
    ]


class Graph:
    """A CUDA graph of as many launches as last about `BATCH_US`."""

    def __init__(self, launch: Callable[[], object]) -> None:
        import torch

        for _ in range(WARM_UP):
            launch()
        torch.cuda.synchronize()
        self.launches = 1
        self._capture(launch)
        self.launches = launches_for(self.time_us(), BATCH_US, MOST_LAUNCHES)
        self._capture(launch)

    def _capture(self, launch: Callable[[], object]) -> None:
        import torch

        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for _ in range(self.launches):
                launch()

    def time_us(self) -> float:
        """Microseconds of a launch in one replay."""
        import torch

        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # An untimed replay comes first: on an idle GPU the time would include the host's part of launching.
        self._graph.replay()
        first.record()
        self._graph.replay()
        last.record()
        last.synchronize()
        return float(1000 * first.elapsed_time(last)) / self.launches


def report(gpu: str, rounds: int, rows: Sequence[Row]) -> str:
    """A table for people, in Markdown."""
    headings = ("size, kernel", "µs", "TFLOP/s", "p10-p90", "÷ cuBLAS", "worst error, ulp", "bits of cuBLAS")
    library = {row.size: row.tflops.median for row in rows if row.kernel == "cuBLAS"}
    lines = [
        (
            f"{row.size}, {row.kernel}",
            f"{row.us.median:,.1f}",
            f"{row.tflops.median:,.1f}",
            f"{row.tflops.p10:,.1f}-{row.tflops.p90:,.1f}",
            f"{row.tflops.median / library[row.size]:.3f}",
            f"{row.error:.3f}",
            "equal" if row.equals_cublas else "differ",
        )
        for row in rows
    ]
    return f"{gpu}: bf16, {rounds} rounds\n\n{table(headings, lines)}"


if __name__ == "__main__":
    sys.exit(main())
