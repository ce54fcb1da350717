# SPDX-License-Identifier: Apache-2.0
"""Budgets of a GEMM main loop: one k-tile between TMA and the tensor core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autostamp.model.budget import Budget, Origin, Resource, ResourceRow, Ring
from autostamp.model.machine import MachineTable
from autostamp.predict.laws import Mma, Operand, check_sizes, dtype_of, flop, stage_bytes, stages_that_fit
from autostamp.predict.machines import constant
from autostamp.predict.rings import rate_step, tma_ring
from autostamp.predict.work import mma_rows, row, smem_row, tensor_constant, write_share

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
    table: MachineTable,
    tile: GemmTile,
    load: str = "load",
    mma: str = "mma",
    *,
    smem_write_share: float | None = None,
    active_sms: int | None = None,
) -> Budget:
    """One k-tile. What the machine's table lacks (L2, TMA, latencies) becomes a blind spot.

    `active_sms`: SMs that run the kernel at once and share L2's bandwidth (default: all of them). Raises AS7103 where the
    machine lacks the rate of tensor core or shared memory, AS7106 for sizes that are not above zero.
    """
    check_sizes("GEMM", m=tile.m, n=tile.n, k=tile.k, share_a=tile.share_a, share_b=tile.share_b)
    rows = list(mma_rows(tile.mma, table, mma))
    rows.append(smem_row(table, load, "TMA writes A and B", tile.stage, TILE, is_write=True))
    feed, blind = _feed(table, tile, load, active_sms)
    rings: tuple[Ring, ...] = ()
    if tile.stages:
        consume = (rate_step(table, "MMA", flop(tile.mma), tensor_constant(tile.mma, table)),)
        ring, missing = tma_ring(table, "A and B", (load, mma), tile.stages, consume)
        rings = (ring,) if ring else ()
        blind = (*blind, *missing)
    else:
        blind = (*blind, "credit bound: the depth of the ring is unknown")
    return Budget(
        "GEMM",
        table.product,
        f"one k-tile ({tile.m} x {tile.n} x {tile.k})",
        (*rows, *feed),
        rings=rings,
        smem_write_share=write_share(table, smem_write_share),
        blind_spots=blind,
    )


def fitting_stages(table: MachineTable, tile: GemmTile, taken: float = 0.0) -> int:
    """Stages that fit into a CTA's shared memory beside `taken` bytes. Raises AS7103 where its size is unknown."""
    return stages_that_fit(constant(table, "smem_bytes_per_cta").value, taken, tile.stage)


def _feed(
    table: MachineTable, tile: GemmTile, role: str, active_sms: int | None
) -> tuple[tuple[ResourceRow, ...], tuple[str, ...]]:
    """What the SM's TMA engine moves, and its part of what L2 delivers to all SMs."""
    part, of = 1.0, ""
    if active_sms is not None:
        sms = constant(table, "sms").value
        check_sizes("GEMM", active_sms=active_sms)
        part, of = min(1.0, active_sms / sms), f", {active_sms} of {sms:.0f} SMs"
    wanted = (
        (Resource.TMA_BYTES, "tma_bytes", "A and B by TMA", tile.feed),
        (Resource.L2, "l2", f"A and B out of L2{of}", tile.feed * part),
    )
    rows = tuple(
        row(table, role, resource, what, work, name, origin=Origin.SHAPE, source=TILE)
        for resource, name, what, work in wanted
        if name in table.constants
    )
    missing = [(resource, name) for resource, name, *_ in wanted if name not in table.constants]
    return rows, tuple(
        f"not counted: {resource}, for {table.product} has no constant {name}" for resource, name in missing
    )
