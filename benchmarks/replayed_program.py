# SPDX-License-Identifier: Apache-2.0
"""One kernel as a program to replay: `python -m benchmarks.replayed_program CASE OUT`, a case of `REPLAYED` by its name.

Prints `us_per_launch X`, the median over bursts of CUDA-graph replays with rest between, and writes the outputs' bytes to OUT.
`--compile` compiles the kernel and no more, with fake tensors and no GPU: what `autostamp place` runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.hooks import caches
from benchmarks.gallery_cases import GalleryGemm
from benchmarks.overhead import COMPILE_ONLY, _fake_tensors
from benchmarks.overhead_cases import Case, FlashBackward, FlashForward, Shape
from benchmarks.overhead_statistics import launches_for

if TYPE_CHECKING:
    import torch

REST_S = 0.006
"""Before each burst: a GPU that is at rest most of the time is not limited by its power, and clean runs agree."""
BURSTS, WARM_UP = 60, 10
BURST_US = 1500.0
MOST_LAUNCHES = 20


def replayed(*, is_real: bool) -> list[Case]:
    """The Python cases, each of a size that leaves the GPU below its power limit."""
    flash = [FlashForward(Shape(1, 128, 4096, 1, 128), False), FlashBackward(Shape(1, 4096, 4096, 1, 128), False, True)]
    variants = ("plain", "pingpong", "cooperative")
    return [*flash, *(GalleryGemm(variant, 512, 512, 8192, is_real) for variant in variants)]


def named(name: str, *, is_real: bool) -> Case:
    """Raises SystemExit for a name that no case has."""
    cases = {case.name: case for case in replayed(is_real=is_real)}
    if name not in cases:
        raise SystemExit(f"no case {name!r}; there are: {'; '.join(cases)}")
    return cases[name]


def compile_only(case: Case) -> None:
    """Compile the case's kernels with fake tensors."""
    os.environ.update(caches.switched_off() | COMPILE_ONLY)
    if isinstance(case, FlashBackward):
        _fake_semaphores()
    with _fake_tensors():
        case.prepare()
        case.launch({})


def _fake_semaphores() -> None:
    """The counters by which a deterministic backward orders its CTAs are handed over as real tensors otherwise."""
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_tensor
    from flash_attn.cute import utils

    def fake(tensor: torch.Tensor, leading_dim: int, alignment: int = 16, **_: object) -> object:
        sizes = tuple(cute.sym_int() for _ in range(tensor.ndim))
        strides = tuple(1 if at == leading_dim else cute.sym_int64() for at in range(tensor.ndim))
        return make_fake_tensor(cutlass.Int32, sizes, strides, assumed_align=alignment)

    utils.convert_from_dlpack_leading_static = fake


def microseconds(case: Case) -> float:
    """Of a launch: the median over bursts, each some `BURST_US` of launches in one CUDA graph."""
    import torch

    kept: dict[str, dict[object, object]] = {}
    case.prepare()
    case.launch(kept)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        case.launch(kept)
    torch.cuda.synchronize()

    def captured(count: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                case.launch(kept)
        return graph

    def burst(graph: torch.cuda.CUDAGraph, count: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        time.sleep(REST_S)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1000 / count

    probe = captured(4)
    burst(probe, 4)
    count = launches_for(burst(probe, 4), BURST_US, MOST_LAUNCHES)
    graph = captured(count)
    return statistics.median([burst(graph, count) for _ in range(WARM_UP + BURSTS)][WARM_UP:])


def write_outputs(case: Case, path: Path) -> None:
    """The bytes of all outputs, one behind the other."""
    import torch

    with path.open("wb") as file:
        for tensor in case.outputs().values():
            file.write(tensor.contiguous().view(torch.uint8).cpu().numpy().tobytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--compile", action="store_true", dest="is_compiled_only")
    options = parser.parse_args()
    case = named(options.case, is_real=not options.is_compiled_only)
    if options.is_compiled_only:
        compile_only(case)
        return 0
    spent = microseconds(case)
    if options.out is not None:
        write_outputs(case, options.out)
    sys.stdout.write(f"us_per_launch {spent:.3f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
