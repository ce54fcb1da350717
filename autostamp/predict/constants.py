# SPDX-License-Identifier: Apache-2.0
"""The constants that the model knows by name: unit and meaning of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

FLOP: Final = "FLOP/clk/SM"
BYTE: Final = "B/clk/SM"
LANE: Final = "thread-instr/clk/SM"
WARP: Final = "warp-instr/clk/SM"

UNITS: Final = (
    FLOP,
    BYTE,
    LANE,
    WARP,
    "cycles",
    "ns",
    "ns/KB",
    "GHz",
    "SMs",
    "bytes",
    "registers",
    "warps",
    "stages",
    "ratio",
)
"""Every unit that a constant may have. FLOP counts a multiply-add as 2; thread-instr counts one lane; KB is 1024 bytes."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Unit of a constant, and what it is."""

    unit: str
    what: str


_ROWS: Final = (
    ("sms", "SMs", "streaming multiprocessors"),
    ("clock", "GHz", "SM clock that turns cycles into time"),
    ("clock_max", "GHz", "highest SM clock"),
    ("clock_loaded", "GHz", "SM clock while tensor cores run"),
    ("tensor_bf16", FLOP, "tensor core, bf16, f32 accumulation"),
    ("tensor_fp16", FLOP, "tensor core, fp16, f32 accumulation"),
    ("tensor_tf32", FLOP, "tensor core, tf32"),
    ("tensor_fp8", FLOP, "tensor core, fp8, f32 accumulation"),
    ("tensor_fp8_f16", FLOP, "tensor core, fp8, f16 accumulation"),
    ("tensor_mxfp8", FLOP, "tensor core, fp8 with block scales"),
    ("tensor_fp6", FLOP, "tensor core, fp6"),
    ("tensor_fp4", FLOP, "tensor core, fp4 with block scales, K = 64"),
    ("tensor_fp4_k96", FLOP, "tensor core, fp4 with block scales, K = 96"),
    ("tensor_int8", FLOP, "tensor core, int8"),
    ("tensor_fp64", FLOP, "fp64, on tensor cores where they have it"),
    ("tensor_bf16_m64", FLOP, "tcgen05, bf16, M = 64 in one CTA"),
    ("tensor_fp16_m64", FLOP, "tcgen05, fp16, M = 64 in one CTA"),
    ("tensor_fp8_m64", FLOP, "tcgen05, fp8, M = 64 in one CTA"),
    ("mma_sync_bf16", FLOP, "mma.sync, bf16"),
    ("mufu_ex2", LANE, "MUFU.EX2, f32"),
    ("mufu_ex2_f16x2", LANE, "MUFU.EX2, two fp16 values an instruction"),
    ("mufu_other", LANE, "MUFU other than EX2: RCP, RSQ, LG2, SIN, COS, SQRT, TANH"),
    ("fma_fp32", LANE, "FFMA, FMUL, FADD"),
    ("fma_packed", LANE, "FFMA2, FMUL2, FADD2: two f32 values an instruction"),
    ("alu_int32", LANE, "integer add, logic, shift, min and max"),
    ("shuffle", LANE, "SHFL"),
    ("cvt_bf16x2", LANE, "two f32 values to bf16x2"),
    ("cvt_e4m3x2", LANE, "two f32 values to e4m3x2"),
    ("cvt_e2m1x2", LANE, "two f32 values to e2m1x2"),
    ("cvt_unpack_f16x2", LANE, "two narrow values to f16x2"),
    ("issue", WARP, "instructions issued, all schedulers"),
    ("smem", BYTE, "shared memory port"),
    ("smem_write_share", "ratio", "bytes of MMA operands lost for each byte that TMA writes"),
    ("smem_lds", BYTE, "shared memory as LDS reads it"),
    ("tmem_load", BYTE, "tcgen05.ld"),
    ("tmem_store", BYTE, "tcgen05.st"),
    ("tma_bytes", BYTE, "what the TMA engine of one SM moves"),
    ("l2", BYTE, "L2 to SM, all SMs at once"),
    ("l2_shared", BYTE, "L2 to SM, all SMs the same lines at once"),
    ("l2_peak", BYTE, "L2 to SM, what the vendor states"),
    ("hbm", BYTE, "device memory to SM, all SMs at once"),
    ("hbm_peak", BYTE, "device memory to SM, what the vendor states"),
    ("mbarrier_round_trip", "cycles", "mbarrier: arrive to the end of a wait that stood there"),
    ("mbarrier_round_trip_loaded", "cycles", "the same beside many resident warps"),
    ("mbarrier_handoff", "cycles", "mbarrier: one warp's arrive to another's wait's end, one way"),
    ("mbarrier_handoff_loaded", "cycles", "the same beside many resident warps"),
    ("mbarrier_arrive", "cycles", "mbarrier arrive alone"),
    ("mbarrier_ready_wait", "cycles", "wait on an mbarrier that is complete"),
    ("named_barrier", "cycles", "bar.sync of 128 threads"),
    ("named_barrier_loaded", "cycles", "the same beside many resident warps"),
    ("named_handoff", "cycles", "bar.arrive of one warp to the end of another's bar.sync, one way"),
    ("named_handoff_loaded", "cycles", "the same beside many resident warps"),
    ("syncwarp", "cycles", "__syncwarp"),
    ("syncthreads_fixed", "cycles", "__syncthreads, beside what each warp adds"),
    ("syncthreads_per_warp", "cycles", "__syncthreads, for each warp"),
    ("cluster_barrier", "cycles", "cluster barrier, release and acquire"),
    ("cluster_barrier_relaxed", "cycles", "cluster barrier, relaxed"),
    ("cluster_barrier_ns", "ns", "cluster barrier, in time"),
    ("tma_latency_l2", "cycles", "TMA load, issue to landing, out of L2"),
    ("tma_latency_hbm", "cycles", "TMA load, issue to landing, out of device memory"),
    ("tma_fixed_l2", "ns", "TMA load out of L2, beside what its bytes take"),
    ("tma_fixed_hbm", "ns", "TMA load out of device memory, beside what its bytes take"),
    ("tma_per_kb_l2", "ns/KB", "TMA load out of L2, for each KB"),
    ("tma_per_kb_hbm", "ns/KB", "TMA load out of device memory, for each KB"),
    ("tma_issue", "cycles", "TMA issue by one thread, back to back"),
    ("tma_box_issue", "cycles", "TMA issue of a box of a tensor map by one thread, back to back"),
    ("tma_box_latency_l2", "cycles", "TMA load of a box of a tensor map, issue to landing, out of L2"),
    ("tma_box_latency_hbm", "cycles", "TMA load of a box of a tensor map, issue to landing, out of device memory"),
    ("tma_box_bytes", BYTE, "what the TMA engine of one SM moves in boxes of a tensor map"),
    ("l2_box", BYTE, "L2 to SM in boxes of a tensor map, all SMs at once"),
    ("l2_box_shared", BYTE, "the same, all SMs the same boxes"),
    ("hbm_box", BYTE, "device memory to SM in boxes of a tensor map, all SMs at once"),
    ("tma_ring_iteration", "cycles", "producer loop with one TMA load a stage"),
    ("tma_ring_iteration_ns", "ns", "producer loop with one TMA load a stage, in time"),
    ("tma_box", "bytes", "largest box of one TMA load"),
    ("wgmma_first", "cycles", "wgmma fence, one m64n8k16, commit, wait for all"),
    ("wgmma_next", "cycles", "each further m64n8k16"),
    ("wgmma_depth", "stages", "wgmma in flight that saturate the tensor core"),
    ("tcgen05_depth", "stages", "tcgen05.mma in flight that saturate the tensor core, one CTA"),
    ("tcgen05_latency_ss", "cycles", "tcgen05.mma, M = 128, both operands in shared memory, beside N / 2"),
    ("tcgen05_latency_ts", "cycles", "tcgen05.mma, M = 128, A in tensor memory, beside N / 2"),
    (
        "tcgen05_pair_latency_ss",
        "cycles",
        "tcgen05.mma of two CTAs, M = 256, both operands in shared memory, beside N / 2",
    ),
    ("tcgen05_pair_latency_ts", "cycles", "tcgen05.mma of two CTAs, M = 256, A in tensor memory, beside N / 2"),
    ("lds_latency", "cycles", "LDS"),
    ("l1_latency", "cycles", "load that hits L1"),
    ("l2_latency", "cycles", "load that hits L2"),
    ("hbm_latency", "cycles", "load from device memory"),
    ("ffma_latency", "cycles", "FFMA"),
    ("alu_latency", "cycles", "FMNMX and other instructions of the ALU pipe"),
    ("ex2_latency", "cycles", "MUFU.EX2"),
    ("cvt_bf16x2_latency", "cycles", "F2FP to bf16x2"),
    ("cvt_e4m3x2_latency", "cycles", "F2FP to e4m3x2"),
    ("rcp_latency", "cycles", "MUFU.RCP"),
    ("rsq_latency", "cycles", "MUFU.RSQ"),
    ("shuffle_latency", "cycles", "SHFL"),
    ("clock_read", "cycles", "32-bit clock read"),
    ("clock64_read", "cycles", "64-bit clock read"),
    ("clock_step", "cycles", "clock read twice, back to back"),
    ("clock_s2ur", "cycles", "clock read that became S2UR"),
    ("globaltimer_step", "ns", "step of globaltimer"),
    ("globaltimer_read", "cycles", "globaltimer read"),
    ("tma_beside_mma", "ratio", "how much longer TMA takes beside MMA"),
    ("mma_beside_tma", "ratio", "how much longer MMA takes beside TMA"),
    ("ring_coupling", "ratio", "period of a ring beside its slower side alone"),
    ("registers", "registers", "32-bit registers of an SM"),
    ("smem_bytes", "bytes", "shared memory of an SM"),
    ("smem_bytes_per_cta", "bytes", "shared memory that one CTA may have"),
    ("tmem_bytes", "bytes", "tensor memory of an SM"),
    ("max_warps", "warps", "warps resident on an SM"),
    ("l2_bytes", "bytes", "size of L2"),
)

MEANINGS: Final[Mapping[str, Meaning]] = MappingProxyType({name: Meaning(unit, what) for name, unit, what in _ROWS})
"""By name, in the order in which they are shown."""
