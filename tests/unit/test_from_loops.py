# SPDX-License-Identifier: Apache-2.0
"""Budgets from the loops of a kernel, by hand arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import BoundKind, Budget, Origin, Resource, Step
from autostamp.model.loop import LoopFacts, MmaShape
from autostamp.model.loop_traffic import LoopTraffic
from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.predict.bounds import predict
from autostamp.predict.from_loops import budget_of
from autostamp.predict.given import Given, GivenRing, GivenRole
from autostamp.predict.kernel import Kernel, KnownRing, RoleLoop
from autostamp.predict.machines import load_machine

H100 = load_machine("h100_sxm")
H200 = load_machine("h200")
B200 = load_machine("b200")
HGMMA = MmaShape("HGMMA.64x128x16.F32.BF16", 64, 128, 16, "bf16", "smem", 4)


def facts(counts: dict[str, int], *mma: MmaShape) -> LoopFacts:
    return LoopFacts("gemm", 0x100, 0x200, 1, counts, mma, sum(counts.values()), 0)


def mma_loop(*shapes: MmaShape, warps: int = 8, **counts: int) -> RoleLoop:
    return RoleLoop("mma", warps, "", facts(counts, *shapes), LoopTraffic())


LOAD = RoleLoop("load", 1, "", facts({"UTMALDG": 2, "BRA": 6}), LoopTraffic(announced=32768, announcements=1))
GEMM = Kernel("gemm", (mma_loop(HGMMA, HGMMA=4, LOP3=6, BRA=10), LOAD), all_roles=("mma", "load"))


def with_constants(table: MachineTable, **values: tuple[float, str]) -> MachineTable:
    own = {name: Constant(*row, "", "a test", ConstantKind.DERIVED) for name, row in values.items()}
    return replace(table, constants={**table.constants, **own})


def without(table: MachineTable, name: str) -> MachineTable:
    return replace(table, constants={key: each for key, each in table.constants.items() if key != name})


def cycles(budget: Budget) -> dict[tuple[str, Resource], float]:
    found: dict[tuple[str, Resource], float] = {}
    for row in budget.rows:
        found[row.role, row.resource] = found.get((row.role, row.resource), 0) + row.cycles
    return found


def test_every_row_of_a_gemm():
    budget = budget_of(GEMM, H200, Given())
    (tensor,) = [row for row in budget.rows if row.resource is Resource.TENSOR]
    # 8 warps are two warpgroups, each of which issues 4 wgmma m64n128k16: the tile 128 x 128 x 64.
    assert tensor.work == 128 * 128 * 64 * 2 == 2 * 4 * (2 * 64 * 128 * 16)
    assert (tensor.rate, tensor.cycles, tensor.origin) == (4096, 512, Origin.CUBIN)
    assert cycles(budget) == pytest.approx(
        {
            ("mma", Resource.TENSOR): 512,
            # Each wgmma reads 64 rows of A and 128 of B, 16 bf16 deep: 6144 B. Eight of them over 128 B a cycle.
            ("mma", Resource.SMEM): 8 * (64 + 128) * 16 * 2 / 128,
            ("mma", Resource.ALU): 6 * 8 * 32 / 64,
            ("mma", Resource.ISSUE): 20 * 8 / 4,
            ("load", Resource.ISSUE): 8 / 4,
            ("load", Resource.SMEM): 32768 / 128,
            ("load", Resource.TMA_ISSUE): 2 * 9.875,
            ("load", Resource.TMA_BYTES): 32768 / 107.7,
            ("load", Resource.L2): 32768 / 92.579,
        }
    )
    origins = {(row.role, row.resource): row.origin for row in budget.rows}
    assert origins["mma", Resource.SMEM] is Origin.SHAPE
    assert origins["load", Resource.SMEM] is Origin.CUBIN
    (written,) = [row for row in budget.rows if row.is_write]
    assert (written.role, written.resource) == ("load", Resource.SMEM)


def test_l2_is_bound_by_the_rate_of_shared_lines_until_the_user_counts_bytes():
    # 32768 B at 35.424 B a cycle, where no SM reads what another does, are 925 cycles; that is said beside the bound.
    budget = budget_of(GEMM, H200, Given())
    assert any("; 925 cycles if each reads lines of its own" in spot for spot in budget.blind_spots)
    counted = budget_of(GEMM, H200, Given(roles={"load": GivenRole(l2_bytes=32768)}))
    assert cycles(counted)["load", Resource.L2] == pytest.approx(32768 / 35.424)
    assert not any("lines of its own" in spot for spot in counted.blind_spots)


def test_loads_with_a_tensor_map_take_the_constants_of_boxes_where_these_are_known():
    known = {
        "tma_box_issue": (40, "cycles"),
        "tma_box_bytes": (64, "B/clk/SM"),
        "l2_box": (32, "B/clk/SM"),
        "l2_box_shared": (50, "B/clk/SM"),
        "tma_box_latency_l2": (600, "cycles"),
    }
    table = with_constants(H200, **known)
    budget = budget_of(replace(GEMM, rings=(RING,)), table, Given())
    found = cycles(budget)
    assert found["load", Resource.TMA_ISSUE] == 2 * 40
    assert found["load", Resource.TMA_BYTES] == 32768 / 64
    assert found["load", Resource.L2] == 32768 / 50
    assert any("; 1,024 cycles if each reads lines of its own" in spot for spot in budget.blind_spots)
    assert budget.rings[0].fill[0].cycles == 600
    # Copies without a map have their own.
    bulk = replace(LOAD, facts=facts({"UBLKCP": 2}))
    plain = cycles(budget_of(Kernel("gemm", (bulk,)), table, Given()))
    assert plain["load", Resource.TMA_BYTES] == pytest.approx(32768 / 95.5)


def test_few_sms_take_their_part_of_l2_alone():
    # 4 of 132 SMs: 4/132 of the time that each would need beside all others.
    budget = budget_of(GEMM, H200, Given(active_sms=4))
    assert cycles(budget)["load", Resource.L2] == pytest.approx(32768 / 92.579 * 4 / 132)
    assert cycles(budget_of(replace(GEMM, active_sms=4), H200, Given())) == cycles(budget)
    # More CTAs than SMs are all SMs.
    assert cycles(budget_of(GEMM, H200, Given(active_sms=500)))["load", Resource.L2] == pytest.approx(32768 / 92.579)


def test_what_the_user_says_of_bytes_goes_first():
    said = Given("b.toml", roles={"load": GivenRole(tma_bytes=65536, l2_bytes=16384, hbm_bytes=8192)})
    budget = budget_of(GEMM, H200, said)
    found = cycles(budget)
    assert found["load", Resource.SMEM] == 512
    assert found["load", Resource.L2] == pytest.approx(16384 / 35.424)
    assert found["load", Resource.HBM] == pytest.approx(8192 / 17.387)
    assert {row.origin for row in budget.rows if row.resource in {Resource.L2, Resource.HBM}} == {Origin.GIVEN}
    assert not [spot for spot in budget.blind_spots if spot.startswith(("multicast", "device memory"))]


def test_trips_multiply_all_work_of_a_role():
    once, twice = (
        cycles(budget_of(GEMM, H200, Given(roles={"mma": GivenRole(trips=trips), "load": GivenRole(trips=trips)})))
        for trips in (1, 2)
    )
    assert twice == pytest.approx({key: 2 * value for key, value in once.items()})


def unrolled(consumer: int, producer: int, **counts: int) -> Kernel:
    """The GEMM with `consumer` k-tiles in a trip of MMAs and `producer` stages in one of loads."""
    mma = mma_loop(
        replace(HGMMA, count=4 * consumer), HGMMA=4 * consumer, LOP3=6 * consumer, BRA=10 * consumer, **counts
    )
    load = replace(LOAD.facts, counts={"UTMALDG": 2 * producer, "BRA": 6 * producer})
    announced = LoopTraffic(announced=32768 * producer, announcements=producer)
    loops = (
        replace(mma, traffic=LoopTraffic(releases=consumer), copies=consumer),
        replace(LOAD, facts=load, traffic=announced, copies=producer),
    )
    return replace(GEMM, loops=loops)


@pytest.mark.parametrize(("consumer", "producer"), [(1, 1), (2, 4), (4, 4), (4, 1), (3, 2)])
def test_unlike_unrolling_is_the_same_iteration(consumer, producer):
    # A k-tile is a k-tile, however many of them stand in a trip of either loop.
    budget = budget_of(unrolled(consumer, producer), H200, Given())
    assert cycles(budget) == pytest.approx(cycles(budget_of(GEMM, H200, Given())))
    said = " ".join(budget.blind_spots)
    assert (f"one of the {consumer} alike parts of mma's loop is an iteration" in said) is (consumer > 1)
    assert (f"fills {producer} stages and one of mma releases {consumer}" in said) is (consumer != producer)


def test_trips_that_are_given_go_first():
    kernel = unrolled(2, 4)
    found = cycles(budget_of(kernel, H200, Given(roles={"mma": GivenRole(trips=1)})))
    # Two k-tiles, and half of the four stages.
    assert found["mma", Resource.TENSOR] == 1024
    assert found["load", Resource.SMEM] == 512
    found = cycles(budget_of(kernel, H200, Given(roles={"load": GivenRole(trips=1)})))
    assert (found["mma", Resource.TENSOR], found["load", Resource.SMEM]) == (512, 1024)


def test_keys_and_values_are_alike_parts_of_one_iteration():
    # Two stages filled by a trip of loads (K and V) and two released by a trip of the softmax loop.
    load = replace(LOAD, traffic=LoopTraffic(announced=65536, announcements=2), copies=2)
    mma = replace(mma_loop(HGMMA, **{"MUFU.EX2": 64}), traffic=LoopTraffic(releases=2))
    budget = budget_of(replace(GEMM, loops=(mma, load)), H200, Given())
    assert cycles(budget)["load", Resource.SMEM] == 512
    assert not [spot for spot in budget.blind_spots if "alike" in spot]
    # The same unrolled by two on the side of the loads alone: four stages, of which an iteration takes half.
    load = replace(LOAD, traffic=LoopTraffic(announced=131072, announcements=4), copies=4)
    budget = budget_of(replace(GEMM, loops=(mma, load)), H200, Given())
    assert cycles(budget)["load", Resource.SMEM] == 512


def test_a_loop_of_a_whole_tile_is_left_out_unless_trips_say_how_often():
    store = RoleLoop("store", 1, "", facts({"UTMASTG": 4}), LoopTraffic(), is_outer=True)
    kernel = replace(GEMM, loops=(*GEMM.loops, store), all_roles=("mma", "load", "store"))
    budget = budget_of(kernel, H200, Given())
    assert cycles(budget) == cycles(budget_of(GEMM, H200, Given()))
    assert "loop 0x0100-0x0200 (store) is left out as work of a whole tile" in " ".join(budget.blind_spots)
    counted = budget_of(kernel, H200, Given(roles={"store": GivenRole(trips=0.25)}))
    # Four instructions, a quarter of a trip, four slots a cycle.
    assert cycles(counted)["store", Resource.ISSUE] == 0.25
    silent = budget_of(kernel, H200, Given(roles={"store": GivenRole(is_left_out=True)}))
    assert cycles(silent) == cycles(budget)
    assert not [spot for spot in silent.blind_spots if "(store)" in spot]


def test_warps_that_are_given_replace_those_found():
    budget = budget_of(GEMM, H200, Given(roles={"mma": GivenRole(warps=4)}))
    assert cycles(budget)["mma", Resource.TENSOR] == 256


def test_softmax_and_conversion_of_an_attention_loop():
    # FlashAttention-3's main loop: S = Q K' out of shared memory, P V with P in registers. A lane of each of 8 warps makes
    # 64 x 128 / 32 / 4 = 64 exponentials, and 32 packed conversions.
    qk = MmaShape("HGMMA.64x128x16.F32.BF16", 64, 128, 16, "bf16", "smem", 8)
    pv = replace(qk, operand_a="registers")
    loop = mma_loop(qk, pv, **{"MUFU.EX2": 64, "F2FP": 32, "FFMA": 100, "SHFL": 4})
    table = with_constants(H200, cvt_bf16x2=(16, "thread-instr/clk/SM"))
    found = cycles(budget_of(Kernel("fa", (loop,)), table, Given()))
    assert found["mma", Resource.TENSOR] == 4 * 128 * 128 * 128 / 4096 == 2048
    # (64 + 128) rows for Q K', 128 for P V, 16 of each.
    assert found["mma", Resource.SMEM] == 16 * (64 + 128 + 128) * 16 * 2 / 128 == 1280
    assert found["mma", Resource.MUFU] == 128 * 128 / 16 == 1024
    assert found["mma", Resource.CONVERT] == 128 * 128 / 2 / 16 == 512
    assert found["mma", Resource.FMA] == 100 * 8 * 32 / 128
    assert found["mma", Resource.SHUFFLE] == 4 * 8 * 32 / 32
    unknown = budget_of(Kernel("fa", (loop,)), H100, Given())
    assert any("cvt_bf16x2" in spot for spot in unknown.blind_spots)


def test_tcgen05_is_issued_by_one_thread_and_a_pair_shares_it():
    shape = MmaShape("UTCHMMA.2CTA", 256, 128, 16, "bf16", "smem", 16)
    load = replace(LOAD, traffic=LoopTraffic(announced=65536, announcements=2))
    loop = RoleLoop("mma", 1, "", facts({"UTCHMMA": 16}, shape), LoopTraffic())
    budget = budget_of(Kernel("fa", (loop, load)), B200, Given())
    (tensor,) = [row for row in budget.rows if row.resource is Resource.TENSOR]
    # Of the pair's 256 rows this CTA has 128; it reads all of its A and half of B.
    assert tensor.work == 16 * 2 * 128 * 128 * 16
    (read,) = [row for row in budget.rows if row.resource is Resource.SMEM and not row.is_write]
    assert read.work == 16 * (128 + 64) * 16 * 2
    (written,) = [row for row in budget.rows if row.is_write]
    assert written.work == 32768


def test_loads_and_stores_of_shared_and_tensor_memory():
    moved = LoopTraffic(shared_read=1024, shared_written=512, tensor_loaded=4096, tensor_stored=2048)
    loop = RoleLoop("softmax", 4, "", facts({"LDTM": 1}), moved)
    found = cycles(budget_of(Kernel("fa", (loop,)), B200, Given()))
    assert found["softmax", Resource.SMEM] == (1024 + 512) * 4 / 128
    load, store = (B200.constants[name].value for name in ("tmem_load", "tmem_store"))
    assert found["softmax", Resource.TMEM] == pytest.approx(4096 * 4 / load + 2048 * 4 / store)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (MmaShape("UTCOMMA.4X", 0, 0, 0, "", "smem", 8), "the code does not show their shape"),
        (MmaShape("HMMA.16816.F32.BF16", 16, 8, 16, "bf16", "registers", 8), "no constant mma_sync_bf16"),
        (MmaShape("HGMMA.64x8x16", 64, 8, 16, "b1", "smem", 8), "the model has no rate for b1"),
    ],
)
def test_an_mma_without_a_rate_is_a_blind_spot(shape, said):
    table = H200 if not shape.opcode.startswith("UTC") else B200
    budget = budget_of(Kernel("gemm", (mma_loop(shape, BRA=1),)), table, Given())
    assert any(said in spot for spot in budget.blind_spots)
    assert not [row for row in budget.rows if row.resource is Resource.TENSOR]


def test_mma_sync_of_an_older_machine_has_the_tensor_core_rate():
    shape = MmaShape("HMMA.16816.F32.BF16", 16, 8, 16, "bf16", "registers", 8)
    a100 = load_machine("a100")
    (row,) = [
        row for row in budget_of(Kernel("g", (mma_loop(shape, HMMA=8),)), a100, Given()).rows
        if row.resource is Resource.TENSOR
    ]  # fmt: skip
    assert row.work == 8 * 8 * 2 * 16 * 8 * 16
    assert row.constant == "tensor_bf16"


RING = KnownRing("ab", "load", "mma", 4)


def test_the_only_ring_is_held_while_its_stage_is_multiplied():
    table = with_constants(H200, tma_box_latency_l2=(700, "cycles"))
    budget = budget_of(replace(GEMM, rings=(RING,)), table, Given(active_sms=1, smem_write_share=0))
    (ring,) = budget.rings
    # TMA load 700, MMA 512, an mbarrier round trip of 87; four stages.
    assert sum(step.cycles for step in (*ring.fill, *ring.consume, *ring.hand_off)) == 700 + 512 + 87
    credit = next(bound for bound in predict(budget).bounds if bound.kind is BoundKind.CREDIT)
    assert credit.cycles == pytest.approx((700 + 512 + 87) / 4)


def test_a_ring_that_lacks_something_is_a_blind_spot():
    table = without(without(H200, "tma_latency_l2"), "tma_box_latency_l2")
    budget = budget_of(replace(GEMM, rings=(RING,)), table, Given())
    assert budget.rings == ()
    (said,) = [spot for spot in budget.blind_spots if spot.startswith("ring ab")]
    assert "fill (h200 has no constant tma_latency_l2)" in said
    assert "[rings.ab]" in said
    given = Given(rings={"ab": GivenRing(stages=2, fill=(Step("fill", 600),))})
    (ring,) = budget_of(replace(GEMM, rings=(RING,)), table, given).rings
    assert (ring.stages, ring.producer, ring.consumer, ring.fill[0].cycles) == (2, "load", "mma", 600)
    assert budget_of(replace(GEMM, rings=(RING,)), H200, Given(rings={"ab": GivenRing(is_left_out=True)})).rings == ()


def test_of_two_rings_nobody_knows_how_long_a_stage_is_held():
    table = with_constants(H200, tma_box_latency_l2=(700, "cycles"))
    budget = budget_of(replace(GEMM, rings=(RING, replace(RING, name="full/empty"))), table, Given())
    assert budget.rings == ()
    assert sum("consume, how long a stage is held" in spot for spot in budget.blind_spots) == 2
    assert any('[rings."full/empty"]' in spot for spot in budget.blind_spots)


def test_the_share_of_writes_is_given_or_measured_or_all():
    assert budget_of(GEMM, H100, Given()).smem_write_share == 1  # nobody measured it
    assert budget_of(GEMM, H200, Given()).smem_write_share == pytest.approx(0.0156, abs=5e-5)
    assert budget_of(GEMM, H200, Given(smem_write_share=0)).smem_write_share == 0
    measured = with_constants(H200, smem_write_share=(0.25, "ratio"))
    assert budget_of(GEMM, measured, Given()).smem_write_share == 0.25


@pytest.mark.parametrize(
    ("kernel", "table", "given", "code", "words"),
    [
        (GEMM, H200, Given("b.toml", roles={"sofmax": GivenRole(warps=4)}), "AS7122", ["sofmax", "mma, load"]),
        (replace(GEMM, loops=(mma_loop(HGMMA, warps=0),)), H200, Given(), "AS7123", ["mma", "[roles.mma] warps"]),
        (GEMM, B200, Given(), "AS7124", ["HGMMA is of sm_90a", "b200 is sm_100a"]),
        (Kernel("k", without="it has no loop"), H200, Given(), "AS7124", ["it has no loop", "no row was given"]),
    ],
    ids=["role", "warps", "machine", "nothing"],
)
def test_what_cannot_be_a_budget(kernel, table, given, code, words):
    with pytest.raises(AutostampError) as caught:
        budget_of(kernel, table, given)
    found = caught.value.diagnostic
    assert found.code == code
    assert all(word in f"{found.message} {found.help}" for word in words)


def test_a_missing_rate_names_the_constant_to_add():
    table = replace(H200, constants={name: each for name, each in H200.constants.items() if name != "tensor_bf16"})
    with pytest.raises(AutostampError) as caught:
        budget_of(GEMM, table, Given())
    assert caught.value.diagnostic.code == "AS7103"
    assert "[constants.tensor_bf16]" in caught.value.diagnostic.help
