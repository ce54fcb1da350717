# SPDX-License-Identifier: Apache-2.0
"""How much work a shape is: pure arithmetic, without a machine.

Sources: FlashAttention-4, arXiv 2603.05451, section 3.1 (FLOP, operand bytes of 128 x 128 atoms, exponentials); FlashAttention-3,
arXiv 2407.08608 (wgmma reads B again for every 64 rows). That one law, 128 B a cycle for operands, explains published rates of
wgmma on H100 (flash-vla) to 5 %, and of tcgen05 on B200 (microbench-blackwell) to 1.2 % with one CTA and 9.7 % with a pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from autostamp.diagnostics import AutostampError


@dataclass(frozen=True, slots=True)
class Dtype:
    """An operand type: bytes an element, the constant with its tensor core rate, and elements that share a one-byte scale."""

    bytes: float
    rate: str
    scaled_by: int = 0


DTYPES: Final[Mapping[str, Dtype]] = MappingProxyType(
    {
        "bf16": Dtype(2, "tensor_bf16"),
        "fp16": Dtype(2, "tensor_fp16"),
        "tf32": Dtype(4, "tensor_tf32"),
        "fp8": Dtype(1, "tensor_fp8"),
        "mxfp8": Dtype(1, "tensor_mxfp8", 32),
        "nvfp4": Dtype(0.5, "tensor_fp4", 16),
        "mxfp4": Dtype(0.5, "tensor_fp4", 32),
        "int8": Dtype(1, "tensor_int8"),
        "fp64": Dtype(8, "tensor_fp64"),
    }
)
"""By name. Scales of nvfp4 are e4m3 for 16 elements, those of mx types e8m0 for 32."""

ATOM_BYTES_OF_K: Final = 32
"""Bytes of K that one wgmma or tcgen05.mma takes, whatever the type (K = 16 for bf16, 32 for fp8)."""


class Operand(StrEnum):
    """Where an MMA finds its A operand. B is always in shared memory."""

    SMEM = "smem"
    REGISTERS = "registers"
    TMEM = "tmem"


@dataclass(frozen=True, slots=True)
class Mma:
    """One product C[m, n] += A[m, k] B[k, n] of an iteration, of one CTA.

    It is made of instructions of `atom_m` x `atom_n`, each of which reads its own A and B. `ctas` 2: a tcgen05 pair, of which
    this CTA has `m` rows, and reads half of B. `atom_k` 96 chooses the faster fp4 instruction of sm_103a.
    """

    name: str
    m: int
    n: int
    k: int
    dtype: str
    a: Operand
    atom_m: int
    atom_n: int
    ctas: int = 1
    atom_k: int = 0


def dtype_of(name: str) -> Dtype:
    """The type; raises AS7106 for an unknown one."""
    found = DTYPES.get(name)
    if found is None:
        raise AutostampError.of("AS7106", what="dtype", detail=f"{name} is none of {', '.join(DTYPES)}")
    return found


def check_sizes(what: str, **sizes: float) -> None:
    """Raises AS7106 for a size or amount that is not above zero."""
    for name, size in sizes.items():
        if not math.isfinite(size) or size <= 0:
            raise AutostampError.of("AS7106", what=what, detail=f"{name} is {size:g}, and must be above zero")


def flop(mma: Mma) -> int:
    """2 m n k: a multiply-add counts as two."""
    return 2 * mma.m * mma.n * mma.k


def operand_bytes(mma: Mma) -> float:
    """Bytes that the MMA's instructions read from shared memory, whole atoms: a part of an atom reads as much as all of it.

    b * ceil(m / atom_m) * ceil(n / atom_n) * k * (atom_m, if A is there, + atom_n / ctas).
    """
    instructions = math.ceil(mma.m / mma.atom_m) * math.ceil(mma.n / mma.atom_n)
    rows = (mma.atom_m if mma.a is Operand.SMEM else 0) + mma.atom_n / mma.ctas
    return dtype_of(mma.dtype).bytes * instructions * mma.k * rows


def scale_bytes(mma: Mma) -> float:
    """Bytes of block scales, which tcgen05.cp moves from shared to tensor memory: (m + n) k / block; 0 for a type without."""
    block = dtype_of(mma.dtype).scaled_by
    return (mma.m + mma.n) * mma.k / block if block else 0.0


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """Cycles that one MMA instruction needs of the tensor core and of the shared memory port; the longer one is its time."""

    tensor: float
    smem: float

    @property
    def cycles(self) -> float:
        """Steady issue of equal instructions; measured ones take 0.5 to 1.3 cycles longer."""
        return max(self.tensor, self.smem)


def instruction_time(mma: Mma, tensor_rate: float, smem_rate: float) -> InstructionTime:
    """The operand law of one instruction: max(2 m n k / R, bytes / 128), with the atom's m, n and its 32 bytes of K."""
    size = dtype_of(mma.dtype).bytes
    one = Mma(
        mma.name,
        mma.atom_m,
        mma.atom_n,
        int(ATOM_BYTES_OF_K / size),
        mma.dtype,
        mma.a,
        mma.atom_m,
        mma.atom_n,
        mma.ctas,
    )
    return InstructionTime(flop(one) / tensor_rate, operand_bytes(one) / smem_rate)


def stage_bytes(rows: int, columns: int, depth: int, dtype: str) -> float:
    """Bytes of one ring stage that holds an A tile of `rows` and a B tile of `columns`, both `depth` elements deep."""
    return (rows + columns) * depth * dtype_of(dtype).bytes


def stages_that_fit(smem: float, taken: float, stage: float) -> int:
    """Stages that fit into `smem` bytes beside `taken` bytes of other things (epilogue, barriers)."""
    return int((smem - taken) // stage)


@dataclass(frozen=True, slots=True)
class Waves:
    """How `tiles` fall on `slots` (SMs, or clusters): waves of them, and the share of slots that have work."""

    tiles: int
    slots: int

    @property
    def count(self) -> int:
        """Waves, the last of which may be partial."""
        return math.ceil(self.tiles / self.slots)

    @property
    def efficiency(self) -> float:
        """Tiles over the tiles that as many full waves would hold, 0 to 1."""
        return self.tiles / (self.count * self.slots)


def per_sm_cycle(bytes_per_second: float, sms: float, hertz: float) -> float:
    """A bandwidth of the whole chip as bytes per cycle and SM."""
    return bytes_per_second / sms / hertz
