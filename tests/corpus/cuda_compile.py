# SPDX-License-Identifier: Apache-2.0
"""What stamping does to published sm_90a kernels: compile them clean, off and stamped, and print what differs. Needs no GPU.

    python -m tests.corpus.cuda_compile --cutlass-include DIR --flash-attention DIR --deepgemm DIR --fast-cu DIR

takes checkouts, and compiles what it is given: FlashAttention-3 forward and DeepGEMM's bf16 GEMM, which need CUTLASS's include
folder, and matmul 12 of pranjalssh/fast.cu. Exit status 1 when a stamped build is more than the clean one plus stamps, or an
off build, of the stamped text without the macro that turns stamps on, is not the clean one byte for byte (the hash of the
source's path in names of internal symbols aside); 2 when something does not compile.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autostamp.passes.safety import Limits
from tests.cuda_builds import ROOT, SM_90A, BuildError, Builds, Kernel, build

FLASH_INSTANCE = "flash_fwd_hdim128_fp16_split_sm90"
"""Of its instances one whose producer has a register to spare: README.md says what others spill (--flash-instance names one)."""

FLASH_WITHOUT = (
    *("APPENDKV", "BACKWARD", "CLUSTER", "FP8", "LOCAL", "PACKGQA", "PAGEDKV", "SM8x", "SOFTCAP", "SPLIT", "VARLEN"),
)
"""hopper/setup.py turns each of these off by a FLASHATTENTION_DISABLE_ variable: what stays is causal and not, and what an
instance is for.
"""

FLASH_FLAGS = (
    *("-O3", "-std=c++17", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-DNDEBUG"),
    *("-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED", "-DCUTLASS_ENABLE_GDC_FOR_SM90", "-DCUTLASS_DEBUG_TRACE_LEVEL=0"),
)
"""As in hopper/setup.py, with what CuTe needs of --expt- options. An instantiation includes nothing of torch."""

DEEPGEMM_FLAGS = (
    *("-std=c++20", "--diag-suppress=39,161,174,177,186,940", "--ptxas-options=--register-usage-level=10", "-O3"),
    *("--expt-relaxed-constexpr", "--expt-extended-lambda"),
    "--compiler-options=-fPIC,-O3,-fconcepts,-Wno-deprecated-declarations,-Wno-abi",
)
"""As in csrc/jit/compiler.hpp."""

DEEPGEMM_CODE = """
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

using namespace deep_gemm;

static void __instantiate_kernel() {
    auto ptr = reinterpret_cast<void*>(&sm90_bf16_gemm_impl<
        cute::UMMA::Major::K, cute::UMMA::Major::K,
        0, 4096, 4096,
        1,
        128, 128, 64,
        128, 128, 128,
        6,
        128, 256,
        2, false,
        132,
        GemmType::Normal, false,
        cutlass::bfloat16_t
    >);
};
"""
"""As csrc/jit_kernels/impls/sm90_bf16_gemm.hpp writes it: N = K = 4096, tiles of 128 by 128 by 64, six stages, clusters of 2."""

FAST_CU_FLAGS = (
    *("-std=c++17", "-O3", "-DNDEBUG", "-w", "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math"),
)
"""As in its Makefile."""

HEADER = (
    *("kernel", "off", "C75xx", "spilled bytes", "registers", "sync counts", "distance", "stamps", "clock reads", "s"),
)


@dataclass(frozen=True)
class Unit:
    """One compilation: a name, and nvcc's words."""

    name: str
    words: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, print the table, and return the exit status."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as scratch:
        out = (options.out or Path(scratch)).absolute()
        out.mkdir(parents=True, exist_ok=True)
        variables = {"AUTOSTAMP_SKIP": " ".join(options.skip)} if options.skip else {}
        rows, is_good = [HEADER], True
        for unit in _units(options, out):
            began = time.monotonic()
            words = [*unit.words, *(["-DAUTOSTAMP_NO_PAYLOAD"] if options.no_payload else [])]
            try:
                builds = build(out / unit.name, words, ("clean", "stamped", "copies"), **variables)
            except BuildError as error:
                print(f"error: {unit.name}: {error}", file=sys.stderr)
                return 2
            seconds = time.monotonic() - began
            rows += [_row(unit.name, builds, kernel, seconds) for kernel in builds.kernels]
            is_good &= _is_good(builds)
            _explain(unit.name, builds)
    _print(rows)
    return 0 if is_good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.cuda_compile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for name, what in (
        ("cutlass-include", "include folder of CUTLASS"),
        ("flash-attention", "Dao-AILab/flash-attention"),
        ("deepgemm", "deepseek-ai/DeepGEMM"),
        ("fast-cu", "pranjalssh/fast.cu"),
    ):
        parser.add_argument(f"--{name}", type=lambda text: Path(text).absolute(), metavar="DIR", help=what)
    parser.add_argument(
        "--skip", action="append", default=[], metavar="TERM", help="sites to leave out (--skip of nvcc)"
    )
    parser.add_argument(
        "--flash-instance",
        default=FLASH_INSTANCE,
        metavar="NAME",
        help="of hopper/instantiations (default %(default)s)",
    )
    parser.add_argument("--no-payload", action="store_true", help="records without operands (AUTOSTAMP_NO_PAYLOAD)")
    parser.add_argument("--out", type=Path, help="keep cubins, PTX and logs here")
    return parser


def _units(options: argparse.Namespace, out: Path) -> Iterator[Unit]:
    if options.cutlass_include is None and (options.flash_attention or options.deepgemm):
        raise SystemExit("error: FlashAttention and DeepGEMM need --cutlass-include")
    cutlass = f"-I{options.cutlass_include}"
    if options.fast_cu:
        source = ROOT / "benchmarks" / "cuda" / "fast_cu.cu"
        yield Unit("fast.cu-12", (*SM_90A, *FAST_CU_FLAGS, "-DKERNEL=12", f"-I{options.fast_cu}", str(source)))
    if options.deepgemm:
        code = out / "deepgemm_kernel.cu"
        code.write_text(DEEPGEMM_CODE)
        includes = (f"-I{options.deepgemm}/deep_gemm/include", cutlass)
        yield Unit("DeepGEMM-bf16", (*SM_90A, *DEEPGEMM_FLAGS, *includes, str(code)))
    if options.flash_attention:
        parts = options.flash_instance.upper().split("_")
        without = [f"-DFLASHATTENTION_DISABLE_{name}" for name in FLASH_WITHOUT if name.removesuffix("KV") not in parts]
        source = options.flash_attention / "hopper" / "instantiations" / f"{options.flash_instance}.cu"
        includes = (f"-I{options.flash_attention}/hopper", cutlass)
        yield Unit("FlashAttention-3", (*SM_90A, *FLASH_FLAGS, *without, *includes, str(source)))


def _row(name: str, builds: Builds, kernel: Kernel, seconds: float) -> tuple[str, ...]:
    stores = [f"{each.spill_store_bytes}+{each.spill_load_bytes}" for each in (kernel.clean, kernel.stamped)]
    return (
        f"{name} {kernel.stamped.kernel[-24:]}",
        "identical" if _is_off(builds) else "DIFFERS",
        str(len(builds.added_messages())),
        " -> ".join(stores),
        f"{kernel.clean.registers} -> {kernel.stamped.registers}",
        "equal" if not kernel.changed else "CHANGED",
        f"{kernel.report.schedule.distance:.3f}",
        str(len(set(kernel.written.events))),
        f"{kernel.clock_reads} for {kernel.written.total}",
        f"{seconds:.0f}",
    )


def _is_off(builds: Builds) -> bool:
    return builds.pathless("copies") == builds.pathless("clean")


def _is_good(builds: Builds) -> bool:
    if not _is_off(builds) or builds.added_messages():
        return False
    return all(
        not kernel.changed
        and kernel.spills[1] <= kernel.spills[0]
        and kernel.report.schedule.distance <= Limits().distance
        and kernel.clock_reads >= kernel.written.total > 0
        for kernel in builds.kernels
    )


def _explain(name: str, builds: Builds) -> None:
    """What the table has no room for."""
    for message in builds.added_messages():
        print(f"{name}: {message}")
    for kernel in builds.kernels:
        for family, (clean, stamped) in kernel.changed.items():
            print(f"{name}: {family}: {clean} -> {stamped} in {kernel.stamped.kernel[:120]}")
        missing = sorted(kernel.report.stamps.missing) if kernel.report.stamps else []
        if missing:
            print(f"{name}: events in the PTX without a clock read: {missing}")


def _print(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
