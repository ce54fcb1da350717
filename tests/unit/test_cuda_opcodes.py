# SPDX-License-Identifier: Apache-2.0
"""The synchronising instructions of PTX. Texts follow the syntax and the examples of the PTX ISA, by section."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.model.sync import Kind, Side
from autostamp.passes.cuda.opcodes import ROWS, PtxOp, instructions, ops_of

W, S, P, F = Kind.WAIT, Kind.SIGNAL, Kind.POLL, Kind.FENCE
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
TENSOR = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster"
REDUCE = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64"
STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
ADD = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
ONE = [
    # mbarrier
    ("mbarrier.try_wait.b64 p, [%0], %1;", "mbarrier.try_wait", P, Side.MBARRIER, "%0", "%1"),
    (
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, %3;",
        "mbarrier.try_wait",
        P,
        Side.MBARRIER,
        "%1",
        "%2",
    ),
    (
        "mbarrier.test_wait.parity.shared.b64 p, [%[bar]], %[ph];",
        "mbarrier.test_wait",
        P,
        Side.MBARRIER,
        "%[bar]",
        "%[ph]",
    ),
    ("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;", "mbarrier.arrive", S, Side.MBARRIER, "%1", ""),
    ("mbarrier.arrive.noComplete.b64 %0, [%1], 3;", "mbarrier.arrive", S, Side.MBARRIER, "%1", ""),
    (
        "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;",
        "mbarrier.arrive",
        S,
        Side.MBARRIER,
        "%0",
        "",
    ),
    ("mbarrier.arrive_drop.shared.b64 _, [%0];", "mbarrier.arrive_drop", S, Side.MBARRIER, "%0", ""),
    ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;", "mbarrier.expect_tx", S, Side.MBARRIER, "%0", ""),
    ("mbarrier.complete_tx.shared::cta.b64 [%0], 16;", "mbarrier.complete_tx", S, Side.MBARRIER, "%0", ""),
    ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];", "cp.async.mbarrier.arrive", S, Side.MBARRIER, "%0", ""),
    # Bulk copies that complete on an mbarrier; the barrier is the last address
    (f"{BULK} [%0], [%1], %2, [%3];", "cp.async.bulk", S, Side.MBARRIER, "%3", ""),
    (f"{TENSOR} [%0], [%1, {{%3, %4, %5, %6}}], [%2], {{%7, %8}}, %9;", "cp.async.bulk", S, Side.MBARRIER, "%2", ""),
    (f"{REDUCE} [%0], [%1], %2, [%3];", "cp.reduce.async.bulk", S, Side.MBARRIER, "%3", ""),
    (f"{STORE} [%0], {{%1, %2, %3, %4}}, [%5];", "st.async", S, Side.MBARRIER, "%5", ""),
    (f"{ADD} [%0], %1, [%2];", "red.async", S, Side.MBARRIER, "%2", ""),
    (f"{CANCEL} [%0], [%1];", "clusterlaunchcontrol.try_cancel", S, Side.MBARRIER, "%1", ""),
    (f"{COMMIT} [%0], %1;", "tcgen05.commit", S, Side.MBARRIER, "%0", ""),
    # bar, barrier
    ("bar.sync 0;", "bar.sync", W, Side.CTA, "", ""),
    ("bar.sync 0, 128;", "bar.sync", W, Side.NAMED, "0", ""),
    ("barrier.cta.sync.aligned %0, %1;", "bar.sync", W, Side.NAMED, "%0", ""),
    ("barrier.sync %0;", "bar.sync", W, Side.NAMED, "%0", ""),
    ("barrier.cta.red.popc.aligned.u32 %0, %1, p;", "bar.red", W, Side.NAMED, "%1", ""),
    ("bar.arrive 3, %0;", "bar.arrive", S, Side.NAMED, "3", ""),
    ("bar.warp.sync 0xffffffff;", "bar.warp.sync", W, Side.WARP, "", ""),
    ("barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.arrive", S, Side.CLUSTER, "", ""),
    ("barrier.cluster.wait.acquire;", "barrier.cluster.wait", W, Side.CLUSTER, "", ""),
    # Groups of asynchronous copies
    ("cp.async.commit_group;", "cp.async.commit_group", S, Side.ASYNC_GROUP, "", ""),
    ("cp.async.wait_group %0;", "cp.async.wait_group", W, Side.ASYNC_GROUP, "", ""),
    ("cp.async.wait_all;", "cp.async.wait_all", W, Side.ASYNC_GROUP, "", ""),
    ("cp.async.bulk.commit_group;", "cp.async.bulk.commit_group", S, Side.ASYNC_GROUP, "", ""),
    ("cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group", W, Side.ASYNC_GROUP, "", ""),
    # wgmma, tcgen05
    ("wgmma.fence.sync.aligned;", "wgmma.fence", F, Side.ASYNC_GROUP, "", ""),
    ("wgmma.commit_group.sync.aligned;", "wgmma.commit_group", S, Side.ASYNC_GROUP, "", ""),
    ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group", W, Side.ASYNC_GROUP, "", ""),
    ("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait", W, Side.ASYNC_GROUP, "", ""),
    ("tcgen05.fence::before_thread_sync;", "tcgen05.fence", F, Side.ASYNC_GROUP, "", ""),
    # griddepcontrol
    ("griddepcontrol.wait;", "griddepcontrol.wait", W, Side.GRID, "", ""),
    ("griddepcontrol.launch_dependents;", "griddepcontrol.launch_dependents", S, Side.GRID, "", ""),
    # Words of memory as flags, and fences
    ("ld.acquire.gpu.global.u32 %0, [%1];", "ld.acquire", P, Side.FLAG, "%1", ""),
    ("ld.global.acquire.sys.b32 %0, [%1];", "ld.acquire", P, Side.FLAG, "%1", ""),
    ("ld.relaxed.gpu.u32 %0, [%1];", "ld.relaxed", P, Side.FLAG, "%1", ""),
    ("ld.volatile.global.u32 %0, [%1];", "ld.volatile", P, Side.FLAG, "%1", ""),
    ("st.release.sys.global.u32 [%0], %1;", "st.release", S, Side.FLAG, "%0", ""),
    ("red.release.gpu.global.add.s32 [%0], %1;", "red.release", S, Side.FLAG, "%0", ""),
    ("atom.add.acq_rel.gpu.global.s32 %0, [%1], %2;", "atom.release", S, Side.FLAG, "%1", ""),
    ("fence.proxy.async.shared::cta;", "fence", F, Side.FLAG, "", ""),
    ("membar.gl;", "membar", F, Side.FLAG, "", ""),
]


@pytest.mark.parametrize(("text", "stem", "kind", "side", "barrier", "phase"), ONE, ids=[row[0][:48] for row in ONE])
def test_instruction(text, stem, kind, side, barrier, phase):
    (found,) = ops_of(text)
    assert found.op is not None
    assert (found.stem, found.op.kind, found.op.side, found.barrier, found.phase) == (stem, kind, side, barrier, phase)


def test_every_row_is_an_instruction_of_the_table_above():
    assert {row.method for row in ROWS} == {row[1] for row in ONE}


def test_signals_that_land_later_say_so():
    later = {row.method for row in ROWS if row.is_async}
    assert later == {
        *("cp.async.mbarrier.arrive", "cp.async.bulk", "cp.reduce.async.bulk", "st.async", "red.async"),
        *("clusterlaunchcontrol.try_cancel", "tcgen05.commit"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "mov.u32 %0, %%tid.x;",
        "cp.async.cg.shared.global [%0], [%1], 16;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];",
        "cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];",
        "elect.sync _|p, 0xffffffff;",
        "shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;",
        "mbarrier.pending_count.b64 %0, %1;",
        "st.volatile.global.u32 [%0], %1;",
        "atom.relaxed.gpu.add.u32 %0, [%1], %2;",
        "// bar.sync 0;",
        "/* mbarrier.arrive.b64 _, [%0]; */",
        "",
        "}",
    ],
)
def test_no_sync(text):
    assert ops_of(text) == ()


def test_set_up_gives_barrier_and_count():
    assert ops_of("mbarrier.init.shared::cta.b64 [%0], %1;") == (PtxOp("mbarrier", None, "%0", count="%1"),)
    assert ops_of("mbarrier.inval.shared::cta.b64 [%0];") == (PtxOp("mbarrier", None, "%0"),)


LOOP = "{{ .reg .pred P1; {label}: mbarrier.try_wait.parity.b64 P1, [%0], %1; {branch} }}"


@pytest.mark.parametrize(
    ("label", "branch", "kind"),
    [
        ("LAB_WAIT", "@P1 bra DONE; bra LAB_WAIT; DONE:", W),
        ("LAB_WAIT", "@!P1 bra.uni LAB_WAIT;", W),
        ("$L_%=", "@!P1 bra $L_%=;", W),
        ("LAB", "@P1 bra DONE; DONE:", P),
        ("LAB", "selp.b32 %2, 1, 0, P1;", P),
    ],
)
def test_a_branch_back_makes_a_poll_a_wait(label, branch, kind):
    (found,) = ops_of(LOOP.format(label=label, branch=branch))
    assert found.op is not None
    assert found.op.kind is kind
    assert found.is_looped is (kind is W)


def test_a_loop_elsewhere_repeats_nothing():
    text = "mbarrier.try_wait.b64 p, [%0], %1; L: add.u32 r, r, 1; @q bra L;"
    (found,) = ops_of(text)
    assert found.op is not None
    assert found.op.kind is P


def test_an_address_is_followed_to_its_operand():
    mapped = ".reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there];"
    (found,) = ops_of(mapped)
    assert (found.barrier, found.is_remote) == ("%0", True)
    assert found.op is not None
    assert found.op.group == "cluster"
    (local,) = ops_of("mov.u32 a, %1; mbarrier.arrive.shared.b64 _, [a];")
    assert (local.barrier, local.is_remote) == ("%1", False)


def test_all_instructions_of_a_text_are_found_in_order():
    text = "{\n fence.proxy.async;\n @p mbarrier.arrive.b64 _, [%0];\n bar.sync 1, 64;\n}"
    assert [found.stem for found in ops_of(text)] == ["fence", "mbarrier.arrive", "bar.sync"]
    assert max(ops_of(text), key=lambda found: found.rank).stem == "bar.sync"
    assert instructions(text) == ("fence.proxy.async", "mbarrier.arrive.b64", "bar.sync")


def test_what_macros_splice_in_leaves_the_opcode_known():
    (found,) = ops_of("mbarrier.arrive\N{OBJECT REPLACEMENT CHARACTER}.b64 _, [%0];")
    assert (found.stem, found.barrier) == ("mbarrier.arrive", "%0")


MODIFIERS = st.lists(st.sampled_from(["aligned", "shared::cta", "b64", "sync", "relaxed", "cta"]), max_size=4)


@given(
    row=st.sampled_from([row for row in ONE if "bar.red" not in row[1] and "flag" not in str(row[3])]),
    modifiers=MODIFIERS,
    lead=st.sampled_from(["", "@p ", "@!%p ", "\n\t", "{ ", "{ .reg .pred q; ", "L1: ", "mov.u32 r, 1; "]),
    tail=st.sampled_from(["", "\n", " }", " // done", " mov.u32 r, 2;"]),
)
def test_modifiers_predicates_and_neighbours_change_nothing(row, modifiers, lead, tail):
    text, stem, kind, *_ = row
    opcode, _, rest = text.partition(" ") if " " in text else (text[:-1], "", ";")
    changed = f"{lead}{'.'.join((opcode.removesuffix(';'), *modifiers))} {rest or ';'}{tail}"
    (found,) = ops_of(changed)
    assert found.op is not None
    assert (found.stem, found.op.kind) == (stem, kind)
