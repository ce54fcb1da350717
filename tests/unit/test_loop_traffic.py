# SPDX-License-Identifier: Apache-2.0
"""Bytes that a trip moves, from SASS written by hand; and launch bounds from what cuobjdump prints."""

from __future__ import annotations

import pytest

from autostamp.model.cubin import Instruction
from autostamp.passes.definitions import Definitions
from autostamp.passes.loop_traffic import is_announcement, traffic
from autostamp.runtime.launch_bounds import parse


def listing(*lines: str) -> list[Instruction]:
    found = []
    for index, line in enumerate(lines):
        opcode, _, operands = line.partition(" ")
        found.append(Instruction(16 * index, opcode, tuple(operands.split(", ")) if operands else ()))
    return found


@pytest.mark.parametrize(
    ("line", "field", "size"),
    [
        ("LDS R0, [R1]", "shared_read", 32 * 4),
        ("LDS.64 R0, [R1]", "shared_read", 32 * 8),
        ("LDS.128 R0, [R1]", "shared_read", 32 * 16),
        ("LDS.U16 R0, [R1]", "shared_read", 32 * 2),
        ("STS.128 [R1], R4", "shared_written", 32 * 16),
        # One 8 x 8 matrix of 16 bits is 128 bytes.
        ("LDSM.16.M88 R0, [R1]", "shared_read", 128),
        ("LDSM.16.MT88.2 R0, [R1]", "shared_read", 256),
        ("STSM.16.M88.4 [R1], R4", "shared_written", 512),
        ("LDTM.x32 R0, tmem[UR4]", "tensor_loaded", 32 * 32 * 4),
        ("STTM.x16 tmem[UR4], R0", "tensor_stored", 32 * 16 * 4),
        ("LDG.E.128 R0, desc[UR4][R2.64]", "shared_read", 0),
    ],
)
def test_bytes_of_one_instruction(line, field, size):
    code = listing(line)
    assert getattr(traffic(code, Definitions(code)), field) == size


def test_announcements_are_looked_up_above_the_loop():
    code = listing(
        "MOV R2, 0x8000",
        "SYNCS.ARRIVE.TRANS64 RZ, [UR9], R2",
        "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR9], RZ",
        "SYNCS.ARRIVE.TRANS64 RZ, [UR9], 0x400",
    )
    found = traffic(code[1:], Definitions(code))
    assert (found.announced, found.announcements, found.releases) == (0x8000 + 0x400, 2, 1)


def test_an_amount_that_is_not_constant_is_unknown():
    code = listing("LDC R2, c[0x0][0x210]", "SYNCS.ARRIVE.TRANS64 RZ, [UR9], R2")
    assert (traffic(code, Definitions(code)).announced, traffic(code, Definitions(code)).announcements) == (-1, 1)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("SYNCS.ARRIVE.TRANS64", True),
        ("SYNCS.ARRIVE.TRANS64.A1T0", False),
        ("SYNCS.ARRIVE.TRANS64.ART0", False),
        ("SYNCS.ARRIVE.TRANS64.RED.A1T0", False),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", False),
    ],
)
def test_which_arrivals_announce(opcode, expected):
    assert is_announcement(Instruction(0, opcode, ("RZ", "[UR9]", "R2"))) is expected


# As cuobjdump -elf prints it, shortened.
ELF = """
.nv.info._Z7gemm_ws14CUtensorMap_stS_Pfii
\t<0x1>
\tAttribute:\tEIATTR_CUDA_API_VERSION
\tFormat:\tEIFMT_SVAL
\tValue:\t0x82
\t<0x2>
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t0x180 0x1 0x1
.nv.info._Z4freev
\t<0x1>
\tAttribute:\tEIATTR_CUDA_API_VERSION
\tFormat:\tEIFMT_SVAL
\tValue:\t0x82
.nv.info.cutlass_kernel
\t<0x1>
\tAttribute:\tEIATTR_REQNTID
\tFormat:\tEIFMT_SVAL
\tValue:\t0x20 0x4 0x2
"""


def test_launch_bounds():
    assert parse(ELF) == {"_Z7gemm_ws14CUtensorMap_stS_Pfii": 384, "cutlass_kernel": 32 * 4 * 2}
    assert parse("") == {}
