# SPDX-License-Identifier: Apache-2.0
"""Constant folding on SASS: never wrong about a bit, and good enough for every way to write an event word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.passes import known_bits
from autostamp.passes.definitions import Definitions
from autostamp.passes.known_bits import Bits, value_of
from tests.listing import listing

words = st.integers(0, 0xFFFF_FFFF)


@st.composite
def partly_known(draw: st.DrawFn) -> tuple[int, Bits]:
    """A value and what is known of it."""
    value, mask = draw(words), draw(st.sampled_from([0, 0xFFFF, 0xFFFF_0000, 0xFFFF_FFFF]) | words)
    return value, Bits(mask, value & mask)


def assert_sound(found: Bits, actual: int) -> None:
    assert found.value == actual & found.mask


@given(st.lists(partly_known(), min_size=1, max_size=3))
def test_sums_are_sound(terms: list[tuple[int, Bits]]) -> None:
    actual = sum(value for value, _ in terms) & 0xFFFF_FFFF
    assert_sound(known_bits.add(*(bits for _, bits in terms)), actual)


@given(partly_known(), partly_known())
def test_products_are_sound(first: tuple[int, Bits], second: tuple[int, Bits]) -> None:
    assert_sound(known_bits.multiply(first[1], second[1]), first[0] * second[0] & 0xFFFF_FFFF)


@given(st.integers(0, 255), partly_known(), partly_known(), partly_known())
def test_logic_is_sound(table: int, a: tuple[int, Bits], b: tuple[int, Bits], c: tuple[int, Bits]) -> None:
    actual = sum((table >> ((a[0] >> i & 1) * 4 + (b[0] >> i & 1) * 2 + (c[0] >> i & 1)) & 1) << i for i in range(32))
    assert_sound(known_bits.logic(table, a[1], b[1], c[1]), actual)


@given(partly_known(), st.lists(st.integers(0, 7), min_size=4, max_size=4), partly_known())
def test_permutations_are_sound(first: tuple[int, Bits], picks: list[int], second: tuple[int, Bits]) -> None:
    pool = first[0].to_bytes(4, "little") + second[0].to_bytes(4, "little")
    actual = int.from_bytes(bytes(pool[pick] for pick in picks), "little")
    selector = sum(pick << 4 * index for index, pick in enumerate(picks))
    assert_sound(known_bits.permute(first[1], selector, second[1]), actual)


@given(partly_known(), st.integers(0, 31))
def test_shifts_are_sound(operand: tuple[int, Bits], count: int) -> None:
    assert_sound(operand[1].shifted(count), operand[0] << count & 0xFFFF_FFFF)


@given(words, words)
def test_constants_fold_fully(first: int, second: int) -> None:
    one, other = Bits.constant(first), Bits.constant(second)
    assert known_bits.add(one, other) == Bits.constant(first + second)
    assert known_bits.multiply(one, other) == Bits.constant(first * second)


# Each writes R9 = 17 | (unknown << 16), the unknown being R3 or UR3, or a plain 17.
EVENT_17 = {
    "mov": "MOV R9, 0x11",
    "imad-mov": "IMAD.MOV.U32 R9, RZ, RZ, 0x11",
    "uniform mov": "UMOV UR8, 0x11\nIMAD.U32 R9, RZ, RZ, UR8",
    "half-precision constant": "HFMA2.MMA R9, -RZ, RZ, 0, 1.013278961181640625e-06",
    "zero pair and add": "CS2R R8, SRZ\nIADD3 R9, R9, 0x11, RZ",
    "shift and add": "IMAD.SHL.U32 R7, R3, 0x10000, RZ\nIADD3 R9, R7, 0x11, RZ",
    "shift and viadd": "SHF.L.U32 R7, R3, 0x10, RZ\nVIADD R9, R7, 0x11",
    "uniform shift and add": "USHF.L.U32 UR7, UR3, 0x10, URZ\nUIADD3 UR8, UR7, 0x11, URZ\nMOV R9, UR8",
    "lea": "MOV R2, 0x11\nLEA R9, R3, R2, 0x10",
    "uniform lea": "ULEA UR8, UR3, 0x11, 0x10\nIMAD.U32 R9, RZ, RZ, UR8",
    "funnel shift over zero": "LEA.HI R9, RZ, 0x11, R3, 0x10",
    "uniform funnel shift": "ULEA.HI UR8, URZ, 0x11, UR3, 0x10\nIMAD.U32 R9, RZ, RZ, UR8",
    "funnel shift and add": "SHF.L.W.U32.HI R7, RZ, 0x10, R3\nVIADD R9, R7, 0x11",
    "imad": "MOV R2, 0x11\nIMAD R9, R3, 0x10000, R2",
    "imad by a register": "MOV R1, 0x10000\nMOV R2, 0x11\nIMAD R9, R3, R1, R2",
    "or": "IMAD.SHL.U32 R7, R3, 0x10000, RZ\nLOP3.LUT R9, R7, 0x11, RZ, 0xfc, !PT",
    "mask and or": "SHF.L.U32 R7, R3, 0xd, RZ\nMOV R2, 0x11\nLOP3.LUT R9, R2, 0xffff0000, R7, 0xf8, !PT",
    "uniform or": "USHF.L.U32 UR7, UR3, 0x10, URZ\nULOP3.LUT UR8, UR7, 0x11, URZ, 0xfc, !UPT\nMOV R9, UR8",
    "permute": "MOV R2, 0x11\nPRMT R9, R2, 0x5410, R3",
    "permute from the second": "MOV R2, 0x11\nPRMT R9, R3, 0x1054, R2",
    "select of two with one event": "MOV R1, 0x20011\nMOV R2, 0x11\nSEL R9, R1, R2, P3",
    "negative step": "MOV R2, 0x12\nIADD3 R9, R2, -0x1, RZ",
    "negated register": "MOV R2, -0x11\nIADD3 R9, RZ, -R2, RZ",
    "predicated": "@P0 IMAD.MOV.U32 R9, RZ, RZ, 0x11",
    "overwritten": "MOV R9, 0x5\nMOV R9, 0x11",
    "in two steps": "USHF.L.U32 UR5, UR3, 0x10, URZ\nUIADD3 UR5, UR5, 0x8, URZ\nUIADD3 UR5, UR5, 0x9, URZ\nMOV R9, UR5",
    "with a carry out": "IMAD.SHL.U32 R7, R3, 0x10000, RZ\nIADD3 R9, P1, R7, 0x11, RZ",
    "to a uniform register and back": "MOV R2, 0x11\nR2UR UR4, R2\nMOV R9, UR4",
}


@pytest.mark.parametrize("text", EVENT_17.values(), ids=EVENT_17)
def test_forms_of_an_event_word(text: str) -> None:
    code = listing(text)
    assert value_of(Definitions(code), "R9", len(code)).low(16) == 17


NOT_KNOWN = {
    "no definition": "MOV R8, 0x11",
    "loaded": "LDG.E R9, desc[UR4][R2.64]",
    "constant bank": "MOV R9, c[0x0][0x210]",
    "overwritten by a shuffle": "MOV R9, 0x11\nSHFL.BFLY PT, R9, R3, 0x1, 0x1f",
    "upper half of a wide product": "MOV R9, 0x11\nIMAD.WIDE R8, R2, 0x8, R4",
    "second of a 64-bit load": "MOV R9, 0x11\nLDS.64 R8, [R2]",
    "fourth of a 128-bit load": "MOV R9, 0x11\nLDS.128 R6, [R2]",
    "carry in": "IADD3.X R9, R2, 0x11, RZ, P1, !PT",
    "shift by too little": "SHF.L.U32 R7, R3, 0xf, RZ\nIADD3 R9, R7, 0x11, RZ",
    "funnel shift of two words": "LEA.HI R9, R2, 0x11, R3, 0x10",
    "funnel shift by too little": "LEA.HI R9, RZ, 0x11, R3, 0xf",
    "right shift": "MOV R2, 0x110000\nSHF.R.U32.HI R9, RZ, 0x10, R2",
    "select of two": "MOV R1, 0x11\nMOV R2, 0x12\nSEL R9, R1, R2, P3",
    "a half of a register": "MOV R2, 0x11\nIMAD.U32 R9, RZ, RZ, R2.H0",
    "itself for ever": "IADD3 R9, R9, 0x1, RZ",
    "permutation with a mode": "MOV R2, 0x11\nPRMT.F4E R9, R2, 0x0, R3",
}


@pytest.mark.parametrize("text", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    code = listing(text)
    assert value_of(Definitions(code), "R9", len(code)).low(16) is None


def test_only_definitions_above_count() -> None:
    code = Definitions(listing("MOV R9, 0x11\nEXIT\nMOV R9, 0x12"))
    assert value_of(code, "R9", 1).low(16) == 17
    assert code.last("R9", 0) is None
    assert code.last("R9", 3) == 2


@pytest.mark.parametrize(
    "text", ["BAR.SYNC R9, 0x100", "R2P PR, R9, 0x7f", "STG.E desc[UR4][R9.64], R9", "STS [R9], R9"]
)
def test_reading_is_not_writing(text: str) -> None:
    assert Definitions(listing(text)).last("R9", 1) is None
