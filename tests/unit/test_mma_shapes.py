# SPDX-License-Identifier: Apache-2.0
"""What a matrix instruction's text says of its shape, types and operand A."""

from __future__ import annotations

import pytest

from autostamp.model.loop import MmaShape
from autostamp.passes.definitions import Definitions
from autostamp.passes.mma_shapes import shapes
from tests.listing import listing


def shapes_of(text: str) -> tuple[MmaShape, ...]:
    instructions = listing(text)
    return shapes(instructions, Definitions(instructions))


# Names of instructions as nvdisasm prints them; the shapes are those of the PTX instructions that they are compiled from.
@pytest.mark.parametrize(
    ("text", "m", "n", "k", "dtype", "place"),
    [
        ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", 64, 128, 16, "bf16", "smem"),
        ("HGMMA.64x128x16.F32.BF16 R24, R172, gdesc[UR8].tnspB, R24", 64, 128, 16, "bf16", "registers"),
        ("HGMMA.64x176x16.F32 R24, gdesc[UR8], RZ, !UPT", 64, 176, 16, "f16", "smem"),
        ("HGMMA.64x64x16.F16 R24, gdesc[UR8], R24", 64, 64, 16, "f16", "smem"),
        ("HGMMA.64x256x8.F32.TF32 R24, gdesc[UR8], R24", 64, 256, 8, "tf32", "smem"),
        ("QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24", 64, 128, 32, "e4m3", "smem"),
        ("QGMMA.64x128x32.F32.E4M3.E5M2 R24, R8, gdesc[UR8], R24", 64, 128, 32, "e4m3,e5m2", "registers"),
        ("IGMMA.64x8x32.S8.S8 R24, gdesc[UR8], R24", 64, 8, 32, "s8", "smem"),
        ("HMMA.16816.F32.BF16 R4, R8, R12, R4", 16, 8, 16, "bf16", "registers"),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", 16, 8, 8, "tf32", "registers"),
        ("HMMA.16816.F32 R4, R8, R12, R4", 16, 8, 16, "f16", "registers"),
        ("IMMA.16832.S8.S8 R4, R8, R12, R4", 16, 8, 32, "s8", "registers"),
        ("DMMA.8x8x4 R4, R8, R12, R4", 8, 8, 4, "f64", "registers"),
    ],
)
def test_shape_of_one(text, m, n, k, dtype, place):
    assert shapes_of(text) == (MmaShape(text.split()[0], m, n, k, dtype, place, 1),)


def descriptor(a: int, b: int, n: int, m: int) -> int:
    """PTX ISA, tcgen05, instruction descriptor: D is f32 (bits 4-5), types of A and B, n / 8 and m / 16."""
    return 1 << 4 | a << 7 | b << 10 | (n // 8) << 17 | (m // 16) << 24


@pytest.mark.parametrize(
    ("opcode", "a", "b", "n", "m", "k", "dtype"),
    [
        ("UTCHMMA", 1, 1, 128, 128, 16, "bf16"),
        ("UTCHMMA.2CTA", 0, 0, 256, 256, 16, "f16"),
        ("UTCHMMA", 2, 2, 64, 64, 8, "tf32"),
        ("UTCQMMA", 0, 1, 96, 128, 32, "e4m3,e5m2"),
        ("UTCIMMA", 1, 1, 16, 128, 32, "s8"),
    ],
)
def test_shape_from_the_descriptor(opcode, a, b, n, m, k, dtype):
    text = f"""
        UMOV UR25, {descriptor(a, b, n, m):#x}
        {opcode} gdesc[UR56], gdesc[UR4], tmem[UR7], tmem[UR24], idesc[UR25], !UPT
        {opcode} gdesc[UR58], gdesc[UR6], tmem[UR7], tmem[UR24], idesc[UR25], UPT
        {opcode} tmem[UR9], gdesc[UR6], tmem[UR7], tmem[UR24], idesc[UR25], UPT
    """
    assert shapes_of(text) == (
        MmaShape(opcode, m, n, k, dtype, "smem", 2),
        MmaShape(opcode, m, n, k, dtype, "tmem", 1),
    )


def test_a_descriptor_that_is_no_constant_leaves_the_shape_open():
    text = "LDCU UR25, c[0x0][0x380]\nUTCHMMA gdesc[UR56], gdesc[UR4], tmem[UR7], tmem[UR24], idesc[UR25], UPT"
    assert shapes_of(text) == (MmaShape("UTCHMMA", 0, 0, 0, "", "smem", 1),)


def test_block_scaled_descriptors_are_not_read():
    text = f"UMOV UR25, {descriptor(0, 0, 128, 128):#x}\n"
    text += "UTCQMMA gdesc[UR56], gdesc[UR4], tmem[UR7], tmem[UR24], idesc[UR25], tmem[UR30], UPT"
    assert shapes_of(text) == (MmaShape("UTCQMMA", 0, 0, 0, "", "smem", 1),)


def test_what_is_no_mma_has_no_shape():
    assert shapes_of("FFMA R0, R1, R2, R3\nUTCBAR [UR69], URZ\nWARPGROUP.ARRIVE") == ()
