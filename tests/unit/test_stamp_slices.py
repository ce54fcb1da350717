# SPDX-License-Identifier: Apache-2.0
"""Which instructions are stamps: the clock, its store, and what serves these alone."""

from __future__ import annotations

from autostamp.passes.stamp_slices import stamp_instructions
from tests.listing import listing
from tests.unit.test_schedule import STAMP
from tests.unit.test_stamp_places import SPLIT

LOOP = "IMAD.MOV.U32 R0, RZ, RZ, RZ\nFADD R20, R21, R22\n" + STAMP.lstrip()
"""Into the loop from 0x10 on: the cursor R0 is stepped at the end of a trip and read in the next."""


def left(text: str) -> list[str]:
    instructions = listing(text)
    stamps = stamp_instructions(instructions)
    return [each.opcode for index, each in enumerate(instructions) if index not in stamps]


def test_a_stamp_goes_as_a_whole_with_its_cursor():
    assert left(f"{LOOP}@P2 BRA 0x10\nEXIT") == ["FADD", "BRA", "EXIT"]


def test_a_stamp_with_two_stores_goes_as_a_whole():
    text = f"IMAD.MOV.U32 R14, RZ, RZ, RZ\nFADD R20, R21, R22\n{SPLIT.strip()}\n@P2 BRA 0x10\nEXIT"
    assert left(text) == ["FADD", "BRA", "EXIT"]


def test_what_the_kernel_reads_too_stays():
    # R9 holds the event word and is stored by the kernel itself as well.
    text = f"{LOOP}STS [R30], R9\n@P2 BRA 0x10\nEXIT"
    assert left(text) == ["FADD", "IMAD.MOV.U32", "STS", "BRA", "EXIT"]


def test_what_the_kernel_reads_in_the_next_trip_stays():
    # R20 is read at the top of the loop; the kernel's own cursor there is R0.
    text = f"IMAD.MOV.U32 R0, RZ, RZ, RZ\nSTS [R0], R20\n{STAMP.lstrip()}@P2 BRA 0x10\nEXIT"
    assert left(text) == ["IMAD.MOV.U32", "STS", "VIADD", "BRA", "EXIT"]


def test_a_register_written_anew_is_another_value():
    text = f"{LOOP}MOV R9, R31\nSTS [R30], R9\n@P2 BRA 0x10\nEXIT"
    assert left(text) == ["FADD", "MOV", "STS", "BRA", "EXIT"]


def test_a_guarded_write_does_not_end_a_value():
    text = f"{LOOP}@P5 MOV R9, R31\nSTS [R30], R9\n@P2 BRA 0x10\nEXIT"
    assert left(text) == ["FADD", "IMAD.MOV.U32", "MOV", "STS", "BRA", "EXIT"]


def test_work_is_no_stamp_even_when_a_stamp_reads_it():
    text = "SHFL.IDX PT, R9, R2, RZ, 0x1f\nCS2R.32 R8, SR_CLOCKLO\n@P0 STG.E.64 desc[UR4][R6.64], R8\nEXIT"
    assert left(text) == ["SHFL.IDX", "EXIT"]


def test_a_clock_that_is_not_stored_stays():
    assert left("CS2R.32 R8, SR_CLOCKLO\nIADD3 R9, R8, R9, RZ\nEXIT") == ["CS2R.32", "IADD3", "EXIT"]


def test_a_kernel_without_stamps_keeps_everything():
    assert stamp_instructions(listing("FADD R0, R1, R2\nSTG.E.64 desc[UR4][R6.64], R8\nEXIT")) == frozenset()


def test_a_wide_read_of_tensor_memory_ends_the_values_of_its_registers():
    # The stamp's event word is in R9; LDTM writes R8 to R39 before the kernel reads R9.
    text = f"{LOOP}LDTM.x32 R8, tmem[UR4]\nSTS [R30], R9\n@P2 BRA 0x10\nEXIT"
    assert left(text) == ["FADD", "LDTM.x32", "STS", "BRA", "EXIT"]
