# SPDX-License-Identifier: Apache-2.0
"""Budgets of a GEMM main loop: one k-tile between TMA and the tensor core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autostamp.model.budget import Budget, Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.laws import Mma, Operand, check_sizes, dtype_of, flop, stage_bytes, stages_that_fit
from autostamp.predict.machines import constant
from autostamp.predict.rings import rate_step, tma_ring
from autostamp.predict.work import mma_rows, row, smem_row, tensor_constant

TILE: Final = "bytes of the tile's A and B"


@dataclass(frozen=True, slots=True)
class GemmTile:
    """One iteration: `m` x `n` of C, `k` deep, made of MMA instructions of `atom_m` x `atom_n`.

    `ctas` 2: a tcgen05 pair that computes 2 m x n, of which this CTA has `m` rows, and loads and reads half of B.
    `share_a` (`share_b`): CTAs of a cluster that load A (B) once, by multicast. `stages`: depth of the ring (0: unknown).
    """

    m: int
    n: int
    k: int
    atom_m: int
    atom_n: int
    dtype: str = "bf16"
    ctas: int = 1
    share_a: int = 1
    share_b: int = 1
    stages: int = 0

    @property
    def stage(self) -> float:
        """Bytes that one stage takes in this CTA's shared memory."""
        return stage_bytes(self.m, self.n // self.ctas, self.k, self.dtype)

    @property
    def feed(self) -> float:
        """Bytes that L2 delivers to this CTA's SM for one stage: of what a cluster shares, its part."""
        size = dtype_of(self.dtype).bytes
        return (self.m / self.share_a + self.n / self.ctas / self.share_b) * self.k * size

    @property
    def mma(self) -> Mma:
        """The product of one stage."""
        return Mma("MMA", self.m, self.n, self.k, self.dtype, Operand.SMEM, self.atom_m, self.atom_n, self.ctas)


def gemm(
    table: MachineTable, tile: GemmTile, load: str = "load", mma: str = "mma", *, smem_write_share: float = 1.0
) -> Budget:
    """One k-tile. L2 is a row where the machine's rate is known, and the ring is where its latencies are; else a blind spot.

    Raises AS7103 where the machine lacks the rate of tensor core or shared memory, AS7106 for sizes that are not above zero.
    """
    check_sizes("GEMM", m=tile.m, n=tile.n, k=tile.k, share_a=tile.share_a, share_b=tile.share_b)
    rows = list(mma_rows(tile.mma, table, mma))
    rows.append(smem_row(table, load, "TMA writes A and B", tile.stage, TILE, is_write=True))
    l2, blind = _l2(table, tile, load)
    rings = []
    if tile.stages:
        consume = (rate_step(table, "MMA", flop(tile.mma), tensor_constant(tile.mma, table)),)
        ring, missing = tma_ring(table, "A and B", tile.stages, consume)
        rings = [ring] if ring else []
        blind = (*blind, *missing)
    else:
        blind = (*blind, "credit bound: the depth of the ring is unknown")
    return Budget(
        "GEMM",
        table.product,
        f"one k-tile ({tile.m} x {tile.n} x {tile.k})",
        (*rows, *l2),
        rings=tuple(rings),
        smem_write_share=smem_write_share,
        blind_spots=blind,
    )


def fitting_stages(table: MachineTable, tile: GemmTile, taken: float = 0.0) -> int:
    """Stages that fit into a CTA's shared memory beside `taken` bytes. Raises AS7103 where its size is unknown."""
    return stages_that_fit(constant(table, "smem_bytes_per_cta").value, taken, tile.stage)


def _l2(table: MachineTable, tile: GemmTile, role: str) -> tuple[tuple[ResourceRow, ...], tuple[str, ...]]:
    if "l2" not in table.constants:
        return (), (f"L2 is not counted: {table.product} has no constant l2",)
    what = "A and B out of L2"
    return (row(table, role, Resource.L2, what, tile.feed, "l2", origin=Origin.SHAPE, source=TILE),), ()
