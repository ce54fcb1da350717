# SPDX-License-Identifier: Apache-2.0
"""The copy engine with a tensor map: issue, latency and bytes a cycle of its boxes (kernels/probes/tensor_map.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Launch, Loop, Path, Probe, Yield
from autostamp.runtime.probes.readings import counted_each, cycles_each, rate
from autostamp.runtime.probes.tma import STAGE_BYTES, STAGES

FILE: Final = "tensor_map.cu"
COLUMNS: Final = 64
"""Of a box, in bf16: 128 bytes, the widest row with the swizzle of 128 bytes (PTX ISA, tensors, swizzling modes)."""
MATRIX_COLUMNS: Final = 4096
"""Of the source as a matrix: rows of 8 KiB, one behind the other."""
_ROW_BYTES: Final = 2 * COLUMNS
ROWS: Final = STAGE_BYTES // _ROW_BYTES
_FEW_ROWS: Final = 8
"""The rows of one swizzle pattern: 1 KiB, as the copies of `tma_issue`."""
ISSUED: Final = 8
_SMALL: Final = 1 << 20
_SPREAD: Final = 16 << 20
_OWN: Final = 128 << 10
_WAIT: Final = {"UTMALDG.2D": 1, "SYNCS.PHASECHK": 1}
_ISSUE_LOOP: Final = Loop({"UTMALDG.2D": ISSUED, "CS2R SR_CLOCK": 2}, 160)
_LATENCY_LOOP: Final = Loop(_WAIT, 64)
_STREAM_LOOP: Final = Loop(_WAIT, 64, alone=False)


def _box(rows: int) -> str:
    return f"box of {rows} x 64 bf16 ({rows * _ROW_BYTES} bytes), 128-byte swizzle, of a matrix with rows of 8 KiB"


def _issue(name: str, rows: int) -> Probe:
    stages = ISSUED * rows * _ROW_BYTES
    launch = Launch(
        32, (64, 320), shared_bytes=stages, path=Path(_SMALL, ISSUED * rows * _ROW_BYTES), box_rows=rows
    )  # fmt: skip
    row = Yield(name, "cycles", counted_each(ISSUED), f"{ISSUED} loads back to back, by one thread; {_box(rows)}")
    return Probe(name, FILE, "box_issue", launch, (_ISSUE_LOOP,), (row,), 90)


def _latency(name: str, path: Path, rows: int, where: str) -> Probe:
    launch = Launch(32, (64, 320), path=path, box_rows=rows)
    condition = f"tensor-map load {where}: expect_tx, load, wait, by one thread; {_box(rows)}"
    return Probe(
        name, FILE, "box_latency", launch, (_LATENCY_LOOP,), (Yield(name, "cycles", cycles_each(1), condition),), 90
    )


def _stream(name: str, path: Path, every_sm: bool, where: str) -> Probe:
    condition = (
        f"tensor-map loads {where}, up to {STAGES} in flight; {'all SMs at once' if every_sm else 'one SM'}; "
        f"{_box(ROWS)}"
    )
    launch = Launch(32, (100, 600), every_sm, stages=STAGES, path=path, box_rows=ROWS)
    return Probe(
        name, FILE, "box_stream", launch, (_STREAM_LOOP,),
        (Yield(name, "B/clk/SM", rate(STAGE_BYTES), condition),), 90,
    )  # fmt: skip


_COLD: Final = Path(0, STAGE_BYTES)
_COLD_FEW: Final = Path(0, 4096)
PROBES: Final = (
    _issue("tma_box_issue", _FEW_ROWS),
    _issue("tma_box_issue_16k", ROWS),
    _latency("tma_box_latency_l2", Path(_SMALL // 4, 4096), _FEW_ROWS, "out of L2"),
    _latency("tma_box_latency_hbm", _COLD_FEW, _FEW_ROWS, "out of device memory"),
    _latency("tma_box_latency_l2_16k", Path(_SMALL, STAGE_BYTES), ROWS, "out of L2"),
    _latency("tma_box_latency_hbm_16k", _COLD, ROWS, "out of device memory"),
    _stream("tma_box_bytes", Path(_SMALL, STAGE_BYTES), False, "out of L2"),
    _stream("tma_box_bytes_hbm", _COLD, False, "out of device memory"),
    _stream("l2_box", Path(_SPREAD, STAGE_BYTES, _OWN), True, "out of L2, each SM other lines of 16 MiB"),
    _stream("l2_box_shared", Path(_SMALL, STAGE_BYTES), True, "out of L2, all SMs the same lines of 1 MiB"),
    _stream("hbm_box", _COLD, True, "out of device memory"),
)
"""The rows of this family."""
