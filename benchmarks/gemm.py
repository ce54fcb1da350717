# SPDX-License-Identifier: Apache-2.0
"""The four GEMMs of kernels/cuda/gemm beside cuBLAS: TFLOP/s, and which results are equal in every bit.

    python benchmarks/gemm.py [--json FILE] [--size S]... [--dtype tf32|bf16]... [--rounds N] [--library FOLDER]
                              [--change VARIANT:CONSTANT=VALUE[,CONSTANT=VALUE]...]...

Needs a Hopper GPU, torch and nvcc; takes about a minute. Every variant is built as a library and called on the same random
operands in the same process. A round times each of them in turn, cuBLAS included (torch.mm, B transposed, f32 result), with
CUDA events around a batch of launches that lasts about two milliseconds. Printed are TFLOP/s: medians of the batches with p10
and p90. A times B transposed, both with K contiguous; bf16 sums and results are f32 too. With --change a variant is also built
with other constants of its source, for example pingpong:CLUSTER=1.

Exit status: 0 done, 1 a result is wrong, 2 wrong usage, 3 no GPU, no torch or no nvcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.runtime import machine
from benchmarks.overhead_statistics import Spread, spread_of, table

if TYPE_CHECKING:
    import torch

KERNELS: Final = Path(__file__).parent.parent / "kernels" / "cuda" / "gemm"
VARIANTS: Final = ("serial", "plain", "pingpong", "cooperative")
NVCC: Final = ("nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3", "-shared", "-Xcompiler=-fPIC")
DTYPES: Final = ("tf32", "bf16")
"""In the order of `Dtype` in operands.h."""
WGMMA_K: Final = {"tf32": 8, "bf16": 16}
BATCH_US: Final = 2000.0
BATCHES: Final = 5

Multiply = Callable[[int], "torch.Tensor"]
"""Launch so many times on prepared operands; what the last launch wrote."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on one shape. `tflops` counts 2 M N K operations; `us` is a launch."""

    size: int
    dtype: str
    kernel: str
    us: Spread
    tflops: Spread
    is_right: bool
    equals_cublas: bool
    equals_plain: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=int, action="append", help="M = N = K, a multiple of 256; default 2048, 4096, 8192"
    )
    parser.add_argument("--dtype", choices=DTYPES, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--change", type=_change, action="append", default=[], metavar="VARIANT:CONSTANT=VALUE,...")
    parser.add_argument("--library", type=Path, help="a folder with the libraries, when they have been built before")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    sizes = options.size or [2048, 4096, 8192]
    if any(size <= 0 or size % 256 for size in sizes) or options.rounds < 1:
        parser.error("a size is a multiple of 256, and there is at least one round")
    missing = _missing(options.library)
    if missing:
        print(f"error: {missing}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="autostamp-") as scratch:
        names = (*VARIANTS, *options.change)
        libraries = load(options.library or build(Path(scratch), names), names)
        rows = [
            row
            for size in sizes
            for dtype in options.dtype or DTYPES
            for row in compare(libraries, size, dtype, options)
        ]
    print(report(rows))
    if options.json:
        facts = asdict(machine.facts(("python", "benchmarks/gemm.py", *(arguments or sys.argv[1:])), 0.0))
        content = {
            "schema_version": 1,
            "machine": facts,
            "rounds": options.rounds,
            "rows": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.is_right for row in rows) else 1


def _missing(library: Path | None) -> str:
    """What this machine lacks, or ''."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return "torch sees no Hopper GPU"
    return "" if library or shutil.which("nvcc") else "nvcc is not installed"


def _change(text: str) -> str:
    """A variant with other constants, as it is named in the table."""
    if not re.fullmatch(rf"({'|'.join(VARIANTS)}):[A-Z_]+=\d+(,[A-Z_]+=\d+)*", text):
        message = f"{text!r} is not VARIANT:CONSTANT=VALUE,..."
        raise argparse.ArgumentTypeError(message)
    return text


def _stem(name: str) -> str:
    """The file name of a variant: nvcc takes no '=' in it."""
    return "gemm_" + re.sub(r"\W+", "_", name)


def build(folder: Path, names: Sequence[str]) -> Path:
    """Compile every variant as a library into `folder`, side by side."""
    sources = shutil.copytree(KERNELS, folder / "sources")
    running = []
    for name in names:
        variant, _, changes = name.partition(":")
        text = (KERNELS / f"gemm_{variant}.cu").read_text(encoding="utf-8")
        for constant, value in re.findall(r"(\w+)=(\d+)", changes):
            text, found = re.subn(rf"(constexpr int {constant} = )[^;]*;", rf"\g<1>{value};", text)
            if found != 1:
                raise SystemExit(f"error: gemm_{variant}.cu has no constant {constant}")
        source = sources / f"{_stem(name)}.cu"
        source.write_text(text, encoding="utf-8")
        running.append(subprocess.Popen([*NVCC, "-o", str(folder / f"{source.stem}.so"), str(source)]))
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise SystemExit(3)
    return folder


def load(folder: Path, names: Sequence[str]) -> dict[str, Callable[..., None]]:
    """The entry `gemm` of each library: pointers to A, B and C, sizes, dtype, how often, stream."""
    entries = {}
    for name in names:
        entry = ctypes.CDLL(str(folder.resolve() / f"{_stem(name)}.so")).gemm
        entry.restype = None
        entry.argtypes = (*[ctypes.c_void_p] * 4, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
        entries[name] = entry
    return entries


def compare(
    libraries: Mapping[str, Callable[..., None]], size: int, dtype: str, options: argparse.Namespace
) -> list[Row]:
    """All kernels on fresh operands of one shape and type."""
    a, b = (operand(size, dtype) for _ in range(2))
    calls = {"cuBLAS": cublas(a, b)} | {name: ours(entry, a, b, dtype) for name, entry in libraries.items()}
    results = {name: call(1).clone() for name, call in calls.items()}
    times = timed(calls, options.rounds)
    rows = []
    for name in (*libraries, "cuBLAS"):
        rates = [2e-6 * size**3 / us for us in times[name]]
        equals = [bool((results[name] == results[other]).all()) for other in ("cuBLAS", "plain")]
        is_right = is_close(results[name], a, b, dtype)
        rows.append(Row(size, dtype, name, spread_of(times[name]), spread_of(rates), is_right, *equals))
    return rows


def operand(size: int, dtype: str) -> torch.Tensor:
    """Random numbers from -1 to 1, new in each run; those of TF32 have the 24 bits of a float."""
    import torch

    values = torch.rand(size, size, device="cuda") * 2 - 1
    return values if dtype == "tf32" else values.bfloat16()


def cublas(a: torch.Tensor, b: torch.Tensor) -> Multiply:
    """torch.mm with TF32 allowed and an f32 result."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    c = torch.empty(len(a), len(b), device="cuda")

    def multiply(times: int) -> torch.Tensor:
        for _ in range(times):
            if a.dtype == torch.float32:
                torch.mm(a, b.t(), out=c)
            else:
                torch.mm(a, b.t(), out_dtype=torch.float32, out=c)
        return c

    return multiply


def ours(entry: Callable[..., None], a: torch.Tensor, b: torch.Tensor, dtype: str) -> Multiply:
    """One of our variants; its result starts as NaNs, so that an element never written is found."""
    import torch

    c = torch.full((len(a), len(b)), float("nan"), device="cuda")
    sizes = (ctypes.c_int * 3)(len(a), len(b), a.shape[1])

    def multiply(times: int) -> torch.Tensor:
        stream = torch.cuda.current_stream().cuda_stream
        entry(a.data_ptr(), b.data_ptr(), c.data_ptr(), ctypes.addressof(sizes), DTYPES.index(dtype), times, stream)
        return c

    return multiply


def timed(calls: Mapping[str, Multiply], rounds: int) -> dict[str, list[float]]:
    """Microseconds a launch of each batch. A kernel's first batch in a round only warms up."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in calls}
    launches = dict.fromkeys(calls, 1)
    for measured in range(rounds + 1):
        for name, call in calls.items():
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(BATCHES + 1)]
            for mark in marks:
                call(launches[name])
                mark.record()
            torch.cuda.synchronize()
            found = [1e3 * first.elapsed_time(last) / launches[name] for first, last in pairwise(marks)]
            if measured:
                times[name] += found
            else:  # the round that says how many launches fill a batch
                launches[name] = max(1, round(BATCH_US / min(found)))
    return times


def is_close(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dtype: str) -> bool:
    """Whether 64 random rows of C are the product: within 2^-22 of the sum of the magnitudes for each wgmma, sums in double."""
    import torch

    rows = torch.randint(len(a), (64,), device="cuda")
    left, right = (multiplied(matrix, dtype).double() for matrix in (a[rows], b))
    error = (c[rows].double() - left @ right.t()).abs()
    allowed = a.shape[1] / WGMMA_K[dtype] * 2.0**-22 * (left.abs() @ right.abs().t())
    return bool((error <= allowed).all())


def multiplied(matrix: torch.Tensor, dtype: str) -> torch.Tensor:
    """What the tensor cores see: of a float the nearest TF32, with 10 bits after the point, ties to even."""
    import torch

    if dtype != "tf32":
        return matrix
    bits = matrix.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def report(rows: Sequence[Row]) -> str:
    """TFLOP/s of every kernel on every shape, median (p10-p90), in Markdown; below it, which results agree."""
    kernels = list(dict.fromkeys(row.kernel for row in rows))
    cells = {
        (row.size, row.dtype, row.kernel): f"{row.tflops.median:.1f} ({row.tflops.p10:.0f}-{row.tflops.p90:.0f})"
        for row in rows
    }
    problems = dict.fromkeys((row.size, row.dtype) for row in rows)
    lines = [(str(size), dtype, *(cells[size, dtype, kernel] for kernel in kernels)) for size, dtype in problems]
    return "\n".join((table(("M = N = K", "type", *kernels), lines), "", *_agreement(rows)))


def _agreement(rows: Sequence[Row]) -> list[str]:
    """Sentences about the results, one for each exception."""
    wrong = [f"{row.kernel} {row.size} {row.dtype} is WRONG" for row in rows if not row.is_right]
    for other, equal in (("cuBLAS", lambda row: row.equals_cublas), ("plain", lambda row: row.equals_plain)):
        wrong += [f"{row.kernel} {row.size} {row.dtype} differs in bits from {other}" for row in rows if not equal(row)]
    return wrong or ["all results are right, and of each shape and type equal in every bit"]


if __name__ == "__main__":
    sys.exit(main())
