# SPDX-License-Identifier: Apache-2.0
"""Shared memory: its rate, and whether the copy engine's writes take turns with reads (kernels/probes/smem_port.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Derived, Launch, Loop, Path, Probe, Reading, Yield
from autostamp.runtime.probes.readings import copied, cycles_each, rate
from autostamp.runtime.probes.tma import STAGE_BYTES
from autostamp.runtime.probes.wgmma import ARCH, MMAS, mma_loop

FILE: Final = "smem_port.cu"
COPY_STAGES: Final = 8
LOADS: Final = 32
LDS_WARPS: Final = 16
_LOAD_BYTES: Final = 16 * 32
_A_BYTES: Final = 64 * 128
_COPY_LOOP: Final = Loop({"UBLKCP": 1, "SYNCS.PHASECHK": 1}, 64, alone=False)
_PATH: Final = Path(1 << 20, STAGE_BYTES)
_BESIDE: Final = "beside a stream of bulk copies out of L2 into the same SM"
_ALONE: Final = "with nothing else in the SM"


def _pair(
    kernel: str, what: str, launch: tuple[int, tuple[int, int], int], loop: Loop, row: Yield, only: str
) -> tuple[Probe, Probe]:
    threads, trips, operand_bytes = launch
    shared = operand_bytes + COPY_STAGES * STAGE_BYTES
    alone, beside = (
        Launch(threads, trips, shared_bytes=shared, extra=extra, path=_PATH if extra else None) for extra in (0, 1)
    )
    with_copies = Yield(f"{row.name}_beside_tma", row.unit, row.reading, f"{row.condition}; {_BESIDE}")
    moved = Yield(
        f"tma_beside_{what}",
        "B/clk/SM",
        copied(STAGE_BYTES),
        f"bulk copies of 16 KiB out of L2, 8 in flight, beside {what}",
    )
    loops = (loop, _COPY_LOOP)
    return (
        Probe(f"{what}_alone", FILE, kernel, alone, loops, (row,), 90, only),
        Probe(f"{what}_beside_tma", FILE, kernel, beside, loops, (with_copies, moved), 90, only),
    )


def _mma(n: int) -> tuple[Probe, Probe]:
    name = f"wgmma_ss_n{n}"
    reading: Reading = cycles_each(MMAS)
    row = Yield(f"{name}_port", "cycles", reading, f"m64n{n}k16, bf16, both operands in shared memory; {_ALONE}")
    return _pair(f"ss_n{n}_port", name, (160, (1_000, 5_000), _A_BYTES + n * 128), mma_loop(n), row, ARCH)


PROBES: Final = (
    *_pair(
        "lds_port",
        "lds",
        (32 * (LDS_WARPS + 1), (200, 1_000), LOADS * _LOAD_BYTES),
        Loop({"LDS.128": LOADS}, 72),
        Yield(
            "smem_lds",
            "B/clk/SM",
            rate(LDS_WARPS * LOADS * _LOAD_BYTES),
            f"LDS.128 of {LDS_WARPS} warps, no bank conflict",
        ),
        "",
    ),
    *_mma(32),
    *_mma(128),
)
"""The rows of this family."""


def write_share(alone: float, beside: float, written: float) -> float:
    """Bytes of reads lost for each byte written: 1 where writes take the port like reads, 0 where they do not disturb."""
    return (alone - beside) / written


def _operand_bytes(n: int, cycles: float) -> float:
    return (64 + n) * 32 / cycles


DERIVED: Final = (
    Derived(
        "smem_write_share_lds", "ratio", ("smem_lds", "smem_lds_beside_tma", "tma_beside_lds"), write_share,
        "bytes of LDS.128 lost for each byte that the copy engine writes",
    ),
    Derived(
        "smem_write_share", "ratio", ("wgmma_ss_n32_port", "wgmma_ss_n32_port_beside_tma", "tma_beside_wgmma_ss_n32"),
        lambda alone, beside, written: write_share(_operand_bytes(32, alone), _operand_bytes(32, beside), written),
        "operand bytes of wgmma m64n32k16 lost for each byte that the copy engine writes",
    ),
    Derived(
        "mma_beside_tma", "ratio", ("wgmma_ss_n128_port", "wgmma_ss_n128_port_beside_tma"),
        lambda alone, beside: beside / alone,
        "time of wgmma m64n128k16, both operands in shared memory, beside bulk copies over alone",
    ),
    Derived(
        "tma_beside_mma", "ratio", ("tma_bytes", "tma_beside_wgmma_ss_n128"), lambda alone, beside: alone / beside,
        "time of bulk copies out of L2 in one SM beside wgmma m64n128k16 (8 in flight) over alone (12 in flight)",
    ),
)  # fmt: skip
"""What follows from the rows."""
