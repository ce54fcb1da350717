# SPDX-License-Identifier: Apache-2.0
"""Pipes: rates and latencies of MUFU.EX2, F2FP, FFMA, FMNMX and SHFL, alone and mixed (kernels/probes/pipes.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Derived, Launch, Loop, Probe, Yield
from autostamp.runtime.probes.readings import cycles_each, rate

FILE: Final = "pipes.cu"
THREADS: Final = 512
CHAINS: Final = 8
STEPS: Final = 32
LATENCY_STEPS: Final = 64
RATE: Final = "thread-instr/clk/SM"
_EX2: Final = "MUFU.EX2"
_BF16X2: Final = "F2FP.BF16"
_E4M3X2: Final = "F2FP.SATFINITE.E4M3"
_FFMA: Final = "FFMA"
_MAX: Final = "FMNMX"
_SHUFFLE: Final = "SHFL.BFLY"
_FULL: Final = f"{CHAINS} independent chains a thread, {THREADS // 32} warps"
_ALL: Final = CHAINS * STEPS
_TRIPS: Final = (32, 160)


def _rate(kernel: str, constant: str, counts: dict[str, int], condition: str, least: int, alone: bool = True) -> Probe:
    # A few moves stand in the loop where the compiler has run out of a register's other half.
    loop = Loop(counts, 16, alone=alone)
    row = Yield(constant, RATE, rate(sum(counts.values()) * THREADS), condition)
    return Probe(kernel, FILE, kernel, Launch(THREADS, _TRIPS), (loop,), (row,), least)


def _latency(kernel: str, constant: str, opcode: str, count: int, least: int, alone: bool = True) -> Probe:
    row = Yield(constant, "cycles", cycles_each(count), "one chain of one warp, each takes what the one before it gave")
    return Probe(kernel, FILE, kernel, Launch(32, (32, 160)), (Loop({opcode: count}, 8, alone=alone),), (row,), least)


PROBES: Final = (
    _rate("ex2", "mufu_ex2", {_EX2: _ALL}, f"f32; {_FULL}", 75),
    _rate("fma_rate", "fma_fp32", {_FFMA: _ALL}, f"FFMA; {_FULL}", 75, alone=False),
    _rate("cvt_bf16x2", "cvt_bf16x2", {_BF16X2: _ALL}, f"F2FP of two f32; {_FULL}", 80),
    _rate("cvt_e4m3x2", "cvt_e4m3x2", {_E4M3X2: 2 * _ALL}, f"F2FP of two f32, every second merges; {_FULL}", 89),
    _rate("ex2_cvt_bf16x2", "ex2_cvt_bf16x2", {_EX2: _ALL, _BF16X2: _ALL // 2}, "both together, 2 ex2 to 1 cvt", 80),
    _rate("ex2_cvt_e4m3x2", "ex2_cvt_e4m3x2", {_EX2: _ALL, _E4M3X2: _ALL // 2}, "both together, 2 ex2 to 1 cvt", 89),
    _rate("fma_ex2", "fma_ex2", {_FFMA: _ALL, _EX2: _ALL // 4}, "both together, 4 FFMA to 1 ex2", 75, alone=False),
    _rate("max_rate", "alu_int32", {_MAX: 2 * _ALL}, f"FMNMX; {_FULL}", 75),
    _rate("shuffle_rate", "shuffle", {_SHUFFLE: _ALL}, f"SHFL; {_FULL}", 75, alone=False),
    _latency("ex2_latency", "ex2_latency", _EX2, LATENCY_STEPS, 75),
    _latency("fma_latency", "ffma_latency", _FFMA, LATENCY_STEPS, 75, alone=False),
    _latency("max_latency", "alu_latency", _MAX, 2 * LATENCY_STEPS, 75),
    _latency("shuffle_latency", "shuffle_latency", _SHUFFLE, LATENCY_STEPS, 75, alone=False),
    _latency("cvt_bf16x2_latency", "cvt_bf16x2_latency", _BF16X2, LATENCY_STEPS, 80),
    _latency("cvt_e4m3x2_latency", "cvt_e4m3x2_latency", _E4M3X2, 2 * LATENCY_STEPS, 89),
)
"""The rows of this family."""


def _stretch(first: int, second: int) -> str:
    return f"time of {first} and {second} of them together over the slower alone: 1 where the pipes do not disturb each other"


def mixed_over_slower(first: int, second: int, mixed: float, first_rate: float, second_rate: float) -> float:
    """Time of `first` + `second` instructions at the rate `mixed`, over the time of the slower kind alone. 1: full overlap."""
    return (first + second) / mixed / max(first / first_rate, second / second_rate)


DERIVED: Final = (
    Derived(
        "ex2_beside_cvt_bf16x2", "ratio", ("ex2_cvt_bf16x2", "mufu_ex2", "cvt_bf16x2"),
        lambda mixed, ex2, cvt: mixed_over_slower(2, 1, mixed, ex2, cvt), _stretch(2, 1),
    ),
    Derived(
        "ex2_beside_cvt_e4m3x2", "ratio", ("ex2_cvt_e4m3x2", "mufu_ex2", "cvt_e4m3x2"),
        lambda mixed, ex2, cvt: mixed_over_slower(2, 1, mixed, ex2, cvt), _stretch(2, 1),
    ),
    Derived(
        "fma_beside_ex2", "ratio", ("fma_ex2", "fma_fp32", "mufu_ex2"),
        lambda mixed, fma, ex2: mixed_over_slower(4, 1, mixed, fma, ex2), _stretch(4, 1),
    ),
)  # fmt: skip
"""What follows from the rows."""
