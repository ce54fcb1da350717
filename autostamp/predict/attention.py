# SPDX-License-Identifier: Apache-2.0
"""Budgets of attention: one key tile of the forward and the backward main loop, on Blackwell and on Hopper.

Formulas: FlashAttention-4, arXiv 2603.05451, section 3.1 (Blackwell), and FlashAttention-3, arXiv 2407.08608 (Hopper). Every
MMA's operands follow from its shape and from where its A operand is; nothing here is a formula of one kernel only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Dependency, ResourceRow, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.laws import Mma, Operand, check_sizes, dtype_of, flop
from autostamp.predict.rings import latency, rate_step
from autostamp.predict.work import (
    conversion_constant,
    convert_row,
    exp_row,
    is_hopper,
    is_tcgen05,
    mma_rows,
    smem_row,
    tensor_constant,
    write_share,
)

BLACKWELL_ATOM: Final = 128
HOPPER_ROWS: Final = 64
FA4: Final = "FlashAttention-4, arXiv 2603.05451, section 3.1"
FA3: Final = "FlashAttention-3, arXiv 2407.08608"


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """One iteration: `m` rows of Q, `n` of K and V, head dimension `d`. `qk` and `pv` are the dtypes of S = Q K' and of P V.

    `software_exp`: the share of exponentials that FMA computes instead of the MUFU, 0 to below 1. `atom_k`: 96
    for the faster fp4 instruction of sm_103a.
    """

    m: int
    n: int
    d: int
    qk: str = "bf16"
    pv: str = "bf16"
    software_exp: float = 0.0
    atom_k: int = 0


@dataclass(frozen=True, slots=True)
class Roles:
    """What the kernel calls the warps that load, issue MMAs, and compute the softmax; Hopper kernels do the last two in one."""

    load: str = "load"
    mma: str = "mma"
    softmax: str = "softmax"


def forward(
    table: MachineTable, tile: AttentionTile, roles: Roles | None = None, *, smem_write_share: float | None = None
) -> Budget:
    """One key tile of the forward pass. On sm_90a S = Q K' reads both operands and P is in registers; on sm_100a P is in TMEM.

    Raises AS7103 where the machine lacks a rate of tensor core, shared memory or MUFU, AS7106 for sizes that are not above
    zero. Other rates that are missing become blind spots.
    """
    check_sizes("attention", m=tile.m, n=tile.n, d=tile.d, hardware_exp=1 - tile.software_exp)
    roles = roles or Roles()
    source = FA3 if is_hopper(table) else FA4
    rows = [row for mma in forward_mmas(table, tile) for row in mma_rows(mma, table, roles.mma)]
    exps = (1 - tile.software_exp) * tile.m * tile.n
    rows.append(exp_row(table, roles.softmax, exps, f"m n exponentials: {source}"))
    optional, blind = _conversion(table, roles.softmax, tile.m * tile.n, tile.pv)
    size = tile.n * tile.d * (dtype_of(tile.qk).bytes + dtype_of(tile.pv).bytes)
    rows += [*optional, smem_row(table, roles.load, "TMA writes K and V", size, "n d bytes each", is_write=True)]
    if tile.software_exp:
        blind = (*blind, "the FMA work of exponentials that are computed in software is not counted")
    return Budget(
        "attention forward",
        table.product,
        f"one key tile ({tile.m} x {tile.n} x {tile.d})",
        tuple(rows),
        smem_write_share=write_share(table, smem_write_share),
        blind_spots=(*blind, "softmax beside exponentials and conversion is not counted: add it from the cubin"),
    )


def forward_mmas(table: MachineTable, tile: AttentionTile) -> tuple[Mma, Mma]:
    """S = Q K' and P V."""
    if is_hopper(table):
        qk = Mma("QK", tile.m, tile.n, tile.d, tile.qk, Operand.SMEM, HOPPER_ROWS, tile.n)
        return qk, Mma("PV", tile.m, tile.d, tile.n, tile.pv, Operand.REGISTERS, HOPPER_ROWS, tile.d)
    atom = (BLACKWELL_ATOM, BLACKWELL_ATOM, 1, tile.atom_k)
    qk = Mma("QK", tile.m, tile.n, tile.d, tile.qk, Operand.SMEM, *atom)
    return qk, Mma("PV", tile.m, tile.d, tile.n, tile.pv, Operand.TMEM, *atom)


def backward(
    table: MachineTable,
    tile: AttentionTile,
    roles: Roles | None = None,
    *,
    ctas: int = 1,
    smem_write_share: float | None = None,
) -> Budget:
    """One iteration of the backward pass on Blackwell, of one CTA: five MMAs, eight of whose ten operands are in shared memory.

    `ctas` 2 is a pair that shares the B operands of all but dQ, exchanges dS through distributed shared memory, and adds dQ
    up half as often. The traffic of that exchange is the paper's figure for 128 x 128 (1.5 tiles of dS), scaled with the tile.
    Raises AS7106 on a machine without tcgen05, and what `forward` raises.
    """
    if not is_tcgen05(table):
        raise AutostampError.of("AS7106", what="attention backward", detail=f"{table.arch} has no tensor memory")
    check_sizes("attention", m=tile.m, n=tile.n, d=tile.d)
    roles = roles or Roles()
    rows = [row for mma in backward_mmas(tile, ctas) for row in mma_rows(mma, table, roles.mma)]
    scores = tile.m * tile.n * dtype_of(tile.pv).bytes
    rows.append(smem_row(table, roles.softmax, "dS is written", scores, f"m n: {FA4}"))
    if ctas > 1:
        rows.append(smem_row(table, roles.softmax, "dS is exchanged", 1.5 * scores, f"1.5 m n: {FA4}, its figure"))
    sums = 2 * 4 * tile.m * tile.d / ctas
    rows.append(smem_row(table, roles.softmax, "dQ is written and read", sums, f"fp32, m d each: {FA4}"))
    rows.append(exp_row(table, roles.softmax, tile.m * tile.n, f"m n exponentials: {FA4}"))
    return Budget(
        "attention backward",
        table.product,
        f"one tile ({tile.m} x {tile.n} x {tile.d}), {ctas} CTA",
        tuple(rows),
        smem_write_share=write_share(table, smem_write_share),
        blind_spots=("TMA writes of Q, dO and their sums are not counted",),
    )


def backward_mmas(tile: AttentionTile, ctas: int = 1) -> tuple[Mma, ...]:
    """S and dP (both operands in shared memory), dV and dK (A in tensor memory), dQ (dS and K in shared memory)."""
    m, n, d = tile.m, tile.n, tile.d
    smem, tmem, atom = Operand.SMEM, Operand.TMEM, BLACKWELL_ATOM
    return (
        Mma("S", m, n, d, tile.qk, smem, atom, atom, ctas),
        Mma("dP", m, n, d, tile.qk, smem, atom, atom, ctas),
        Mma("dV", n, d, m, tile.pv, tmem, atom, atom, ctas),
        Mma("dK", n, d, m, tile.pv, tmem, atom, atom, ctas),
        Mma("dQ", m, d, n, tile.pv, smem, atom, atom),
    )


def forward_chain(
    table: MachineTable, tile: AttentionTile, q_stages: int, hand_offs: int = 4, round_trip: Step | None = None
) -> tuple[Dependency, ...]:
    """What a Q tile's iterations need of each other: QK, then softmax, then PV, then QK `q_stages` tiles later.

    `q_stages` tiles of Q take turns on the tensor core, so that a chain may take that many iterations. `hand_offs` mbarrier
    round trips stand in the chain, `round_trip` each (default: the machine's `mbarrier_round_trip`; AS7103 where unknown).
    """
    qk, pv = forward_mmas(table, tile)
    step = round_trip or latency(table, "hand-off", "mbarrier_round_trip")
    exps = (1 - tile.software_exp) * tile.m * tile.n
    return (
        Dependency("QK", "softmax", (_mma_step(table, qk),)),
        Dependency("softmax", "PV", (rate_step(table, "exponentials", exps, "mufu_ex2"),)),
        Dependency("PV", "QK", (_mma_step(table, pv), *[step] * hand_offs), q_stages),
    )


def _mma_step(table: MachineTable, mma: Mma) -> Step:
    return rate_step(table, mma.name, flop(mma), tensor_constant(mma, table))


def _conversion(
    table: MachineTable, role: str, count: float, dtype: str
) -> tuple[tuple[ResourceRow, ...], tuple[str, ...]]:
    name = conversion_constant(dtype)
    if name in table.constants:
        return (convert_row(table, role, count, dtype),), ()
    return (), (f"conversion of P is not counted: {table.product} has no constant {name}",)
