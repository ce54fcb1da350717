# SPDX-License-Identifier: Apache-2.0
"""Loops found in hand-written listings: which there are, what one trip executes, and how often its body stands in it."""

from __future__ import annotations

import pytest

from autostamp.passes import loops
from autostamp.passes.loops import LoopKind, Loops
from tests.listing import listing
from tests.unit.test_schedule import IN_LINE, OUT_OF_LINE


def trips(text: str) -> list[list[str]]:
    """The opcodes of one trip of each work loop."""
    found = Loops(listing(text))
    return [[each.opcode for each in found.trip(loop).instructions] for loop in found.work]


def test_a_listing_without_a_jump_back_has_no_loop():
    assert Loops(listing("FADD R0, R0, R1\n@P0 BRA 0x30\nFMUL R0, R0, R1\nEXIT")).all == ()


def test_a_loop_runs_from_the_target_to_the_jump_back():
    assert trips("MOV R0, RZ\nFADD R0, R0, R1\nFMUL R2, R2, R0\n@P0 BRA 0x10\nEXIT") == [["FADD", "FMUL", "BRA"]]


NESTED = """
    FADD R9, R9, R9
    FMUL R0, R0, R1
    FFMA R2, R2, R0, R1
    @P0 BRA 0x20
    MUFU.EX2 R4, R5
    @P1 BRA 0x10
    EXIT
"""


def test_a_loop_inside_is_left_out_of_the_outer_trip():
    assert trips(NESTED) == [["FMUL", "MUFU.EX2", "BRA"], ["FFMA", "BRA"]]
    found = Loops(listing(NESTED))
    outer, inner = found.work
    assert (found.around(inner), found.inside(outer)) == ((outer,), (inner,))
    assert (found.around(outer), found.inside(inner)) == ((), ())


BESIDE = """
    FADD R0, R0, R1
    @P1 BRA 0x50
    FMUL R2, R0, R0
    @P0 BRA 0x0
    EXIT
    MUFU.EX2 R0, R0
    BRA 0x20
"""


def test_a_block_behind_the_end_belongs_to_the_loop_and_stands_where_it_runs():
    assert trips(BESIDE) == [["FADD", "BRA", "MUFU.EX2", "BRA", "FMUL", "BRA"]]
    found = Loops(listing(BESIDE))
    assert found.trip(found.work[0]).is_conditional == (False, False, True, True, False, False)


WAITING = {
    "in line": f"{IN_LINE.replace('EXIT', '')}@P2 BRA 0x0\nEXIT",
    "behind the end": """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R0
    @!P0 BRA 0x50
    UTMALDG.2D [UR8], [UR18], desc[URZ]
    @P2 BRA 0x0
    EXIT
    IMAD.U32 R5, RZ, RZ, UR4
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x20], R3
    @!P0 NANOSLEEP.SYNCS 0x989680
    @!P0 SYNCS.PHASECHK.TRANS64 P0, [R5+URZ+0x20], R3
    @!P0 BRA 0x50
    BRA 0x20
    """,
    "short, behind the end": """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R0
    @!P0 BRA 0x50
    UTMALDG.2D [UR8], [UR18], desc[URZ]
    @P2 BRA 0x0
    EXIT
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R0
    @!P0 BRA 0x50
    BRA 0x20
    """,
}


@pytest.mark.parametrize("text", WAITING.values(), ids=WAITING)
def test_a_wait_is_one_try_however_its_retries_are_written(text):
    (trip,) = trips(text)
    assert trip.count("SYNCS.PHASECHK.TRANS64.TRYWAIT") == 1
    assert "SYNCS.PHASECHK.TRANS64" not in trip
    assert "NANOSLEEP.SYNCS" not in trip
    assert trip.count("UTMALDG.2D") == 1


@pytest.mark.parametrize("text", [IN_LINE, OUT_OF_LINE], ids=["in line", "behind the end"])
def test_a_wait_alone_is_no_work(text):
    assert [each.kind for each in Loops(listing(text)).all] == [LoopKind.WAIT]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("LDG.E.STRONG.GPU R0, desc[UR4][R2.64]\nISETP.NE.AND P0, PT, R0, RZ, PT", LoopKind.WAIT),
        ("ATOMG.E.CAS.STRONG.GPU PT, R0, desc[UR4][R2], R4, R5", LoopKind.WAIT),
        ("USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", LoopKind.WAIT),
        ("LDL R5, [R1]\nSYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ], R3", LoopKind.WAIT),
        ("NOP", LoopKind.WAIT),
        ("LDG.E R0, desc[UR4][R2.64]\nIADD3 R5, R5, R0, RZ", LoopKind.WORK),
        ("LDG.E.STRONG.GPU R0, desc[UR4][R2.64]\nFADD R5, R5, R0", LoopKind.WORK),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ], R3\nSYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ", LoopKind.WORK),
        ("IADD3 R0, R0, 0x1, RZ", LoopKind.WORK),
    ],
)
def test_what_a_loop_is_for(body, kind):
    assert [each.kind for each in Loops(listing(f"{body}\n@P0 BRA 0x0\nEXIT")).all] == [kind]


def test_threads_in_turn_are_one_trip_of_the_loop_around():
    text = "FADD R0, R0, R0\nELECT P1, URZ, PT\nUTMALDG.2D [UR8], [UR6]\n@P0 BRA.U.ANY 0x10\n@P2 BRA 0x0\nEXIT"
    assert trips(text) == [["FADD", "ELECT", "UTMALDG.2D", "BRA.U.ANY", "BRA"]]


def test_a_cycle_with_two_ways_in_is_named_and_no_loop():
    #        0x0             0x10            0x20            0x30          0x40
    text = "@P0 BRA 0x20\nFADD R0, R0, R0\nFMUL R1, R1, R1\n@P1 BRA 0x10\nEXIT"
    found = Loops(listing(text))
    assert (found.all, found.irregular) == ((), (0x10,))
    assert Loops(listing(NESTED)).irregular == ()


def test_left_out_instructions_are_in_no_trip():
    found = Loops(listing(NESTED), left_out=frozenset({1}))
    assert [each.opcode for each in found.trip(found.work[0]).instructions] == ["MUFU.EX2", "BRA"]


STEP = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R0\nWARPGROUP.ARRIVE\n"
MMA = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24\n"
DONE = "WARPGROUP.DEPBAR.LE gsb0, 0x1\nSYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ\n"


@pytest.mark.parametrize(
    ("body", "copies"),
    [
        (STEP + MMA * 4 + DONE, 1),
        ((STEP + MMA * 4 + DONE) * 2, 2),
        ((STEP + MMA * 4 + DONE + "IADD3 R0, R0, 0x1, RZ\n") * 3, 3),
        (STEP + MMA * 4 + DONE + STEP + MMA * 2 + DONE, 1),
        (MMA * 4, 1),  # k-steps of one tile, no copies of a body
        ("FADD R0, R0, R0\n" * 4, 1),
    ],
)
def test_copies_of_a_body(body, copies):
    found = Loops(listing(f"{body}@P2 BRA 0x0\nEXIT"))
    assert loops.copies(found.trip(found.work[0])) == copies
