# SPDX-License-Identifier: Apache-2.0
"""wgmma: cycles of one instruction by N, with A in shared memory and in registers (kernels/probes/wgmma.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Derived, Launch, Loop, Probe, Yield
from autostamp.runtime.probes.readings import cycles_each

FILE: Final = "wgmma.cu"
ARCH: Final = "sm_90a"
MMAS: Final = 16
SIZES: Final = (8, 16, 32, 64, 96, 128, 192, 256)
OPERANDS: Final = {"ss": "both operands in shared memory, 128-byte swizzle", "rs": "A in registers"}
_TRIPS: Final = (200, 1_000)


SOURCES: Final = {"ss": "gdesc", "rs": "R"}
"""What SASS shows as A: a descriptor of shared memory, or a register."""


def mma_loop(n: int, form: str = "ss") -> Loop:
    """The loop of 16 instructions. For wide N, ptxas puts a NOP between them, which takes no time of the tensor core."""
    return Loop({f"HGMMA.64x{n}x16.F32.BF16 {SOURCES[form]}": MMAS, "WARPGROUP.DEPBAR": 1}, 24)


def _probe(form: str, n: int) -> Probe:
    name = f"wgmma_{form}_n{n}"
    condition = f"m64n{n}k16, bf16, f32 accumulators, {OPERANDS[form]}; one warpgroup, 16 to 32 in flight"
    row = Yield(name, "cycles", cycles_each(MMAS), condition)
    return Probe(name, FILE, f"{form}_n{n}", Launch(128, _TRIPS), (mma_loop(n, form),), (row,), only=ARCH)


PROBES: Final = tuple(_probe(form, n) for form in OPERANDS for n in SIZES)
"""The rows of this family."""

SS_LOAD: Final = next(probe for probe in PROBES if probe.name == "wgmma_ss_n256")
"""The heaviest load that a probe makes."""

DERIVED: Final = (
    Derived(
        "tensor_bf16", "FLOP/clk/SM", ("wgmma_ss_n256",), lambda cycles: 2 * 64 * 256 * 16 / cycles,
        "2 m n k over the cycles of wgmma m64n256k16, both operands in shared memory",
    ),
    Derived(
        "smem_wgmma", "B/clk/SM", ("wgmma_ss_n32",), lambda cycles: (64 + 32) * 16 * 2 / cycles,
        "operand bytes (64 + 32) * 32 over the cycles of wgmma m64n32k16, which shared memory binds",
    ),
)  # fmt: skip
"""What follows from the rows."""
