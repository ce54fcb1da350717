# SPDX-License-Identifier: Apache-2.0
"""The copy engine: issue, latency and bytes a cycle of bulk copies out of L2 and device memory (kernels/probes/tma.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Launch, Loop, Path, Probe, Yield
from autostamp.runtime.probes.readings import counted_each, cycles_each, rate

FILE: Final = "tma.cu"
FILL_KERNEL: Final = "fill"
"""Fills the source; no probe."""
BATCH: Final = 16
STAGE_BYTES: Final = 16 << 10
STAGES: Final = 12
"""192 KiB in flight, more than latency times bandwidth of one SM: some 1,000 cycles times the 67 to 76 B/clk that
revollllt/flash-vla (hardware/nvidia/h100/measured) has for one CTA of an H100 are 75 KB."""
LINE_BYTES: Final = 128
_SMALL: Final = 1 << 20
_SPREAD: Final = 16 << 20
"""All CTAs' own parts together: less than half of L2 (50 MB on H100 and H200, NVIDIA data sheets), which has two halves."""
_OWN: Final = 128 << 10
_WAIT: Final = {"UBLKCP": 1, "SYNCS.PHASECHK": 1}
_ISSUE_LOOP: Final = Loop({"UBLKCP": BATCH, "CS2R SR_CLOCK": 2}, 110)
# Beside hundreds of cycles of waiting, what else stands in these loops does not count.
_LATENCY_LOOP: Final = Loop(_WAIT, 64)
_STREAM_LOOP: Final = Loop(_WAIT, 64, alone=False)


def _latency(name: str, path: Path, size: int, where: str) -> Probe:
    condition = f"bulk copy of {size} bytes {where}: expect_tx, copy, wait, by one thread; no tensor map"
    launch = Launch(32, (64, 320), extra=size, path=path)
    row = Yield(name, "cycles", cycles_each(1), condition)
    return Probe(name, FILE, "tma_latency", launch, (_LATENCY_LOOP,), (row,), 90)


def _stream(name: str, path: Path, every_sm: bool, where: str) -> Probe:
    condition = (
        f"bulk copies of 16 KiB {where}, up to {STAGES} in flight; {'all SMs at once' if every_sm else 'one SM'}"
    )
    launch = Launch(32, (100, 600), every_sm, stages=STAGES, path=path)
    row = Yield(name, "B/clk/SM", rate(STAGE_BYTES), condition)
    return Probe(name, FILE, "tma_stream", launch, (_STREAM_LOOP,), (row,), 90)


_COLD: Final = Path(0, STAGE_BYTES)
_COLD_LINES: Final = Path(0, 4096)
PROBES: Final = (
    Probe(
        "tma_issue", FILE, "tma_issue", Launch(32, (64, 320), path=Path(_SMALL, STAGE_BYTES)), (_ISSUE_LOOP,),
        (Yield("tma_issue", "cycles", counted_each(BATCH), "16 bulk copies of 1 KiB back to back, by one thread"),), 90,
    ),
    _latency("tma_latency_l2", Path(_SMALL // 4, 4096), LINE_BYTES, "out of L2"),
    _latency("tma_latency_hbm", _COLD_LINES, LINE_BYTES, "out of device memory"),
    _latency("tma_latency_l2_16k", Path(_SMALL, STAGE_BYTES), STAGE_BYTES, "out of L2"),
    _latency("tma_latency_hbm_16k", _COLD, STAGE_BYTES, "out of device memory"),
    _stream("tma_bytes", Path(_SMALL, STAGE_BYTES), False, "out of L2"),
    _stream("tma_bytes_hbm", _COLD, False, "out of device memory"),
    _stream("l2", Path(_SPREAD, STAGE_BYTES, _OWN), True, "out of L2, each SM other lines of 16 MiB"),
    _stream("l2_shared", Path(_SMALL, STAGE_BYTES), True, "out of L2, all SMs the same lines of 1 MiB"),
    _stream("hbm", _COLD, True, "out of device memory"),
)  # fmt: skip
"""The rows of this family."""
