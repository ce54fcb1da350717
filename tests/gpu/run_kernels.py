# SPDX-License-Identifier: Apache-2.0
"""Run the sample kernels of the tests on the GPU: `python -m tests.gpu.run_kernels OUT MODE`.

OUT gets `NAME.npz` with the arrays of each kernel after its launch, and a RUN folder when stamped.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"
COUNT, WARP, SIZE = 50, 32, 4096


def numbers(seed: int) -> NDArray[np.float32]:
    """Small integers: exact in every sum."""
    return np.random.default_rng(seed).integers(-99, 100, SIZE).astype(np.float32)


def until_negative() -> NDArray[np.int32]:
    """COUNT numbers, the last of which ends the reader's loop."""
    values = np.zeros(SIZE, np.int32)
    values[: COUNT - 1] = np.arange(COUNT - 1)
    values[COUNT - 1] = -1
    return values


def arguments() -> dict[str, tuple[list[NDArray[Any]], tuple[object, ...]]]:
    """By kernel: its arrays, and what its host function takes after them (None stands for COUNT)."""
    empty = np.zeros(SIZE, np.float32)
    return {
        "conditions": ([until_negative(), np.zeros(SIZE, np.int32)], (None,)),
        "named_barriers": ([empty], (8,)),
        "participants": ([numbers(1), empty], (None,)),
        "polling": ([empty], (None,)),
        "raw_mbarriers": ([numbers(2), empty], (None,)),
        "two_kernels": ([numbers(3)[:64]], ()),
        "two_pipelines": ([numbers(4), numbers(5), empty, empty], (None,)),
        "wrappers": ([numbers(6), empty], (None,)),
    }


def launch(name: str, arrays: list[NDArray[Any]], rest: tuple[object, ...]) -> list[NDArray[Any]]:
    """Compile and launch one kernel; its arrays afterwards."""
    import cupy
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings import driver
    from cutlass.cute.runtime import from_dlpack

    on_gpu = [cupy.asarray(array) for array in arrays]
    tensors = [from_dlpack(array) for array in on_gpu]
    counts = [cutlass.Int32(COUNT if number is None else number) for number in rest]
    current = cupy.cuda.get_current_stream()
    stream = driver.CUstream(current.ptr)
    constants = (False,) if name == "two_kernels" else ()
    compiled = cute.compile(importlib.import_module(name).host, *tensors, *counts, *constants, stream)
    compiled(*tensors, *counts, stream)
    current.synchronize()
    return [cupy.asnumpy(array) for array in on_gpu]


def main(out: Path, mode: str) -> None:
    """Run everything; `mode` is clean or stamped."""
    import autostamp

    out.mkdir(parents=True)
    sys.path.insert(0, str(FIXTURES))
    session = autostamp.session(str(FIXTURES), out=out / "run") if mode == "stamped" else contextlib.nullcontext()
    with session:
        for name, (arrays, rest) in arguments().items():
            np.savez(out / f"{name}.npz", *launch(name, arrays, rest))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
