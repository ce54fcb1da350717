# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.report.columns import packed, plain, unpacked

SMALL = st.integers(-(2**31), 2**31 - 1)


def test_a_column_is_little_endian_32_bit_integers():
    assert packed([1, -2, 300]) == {
        "n": 3,
        "i32": base64.b64encode(struct.pack("<3i", 1, -2, 300)).decode(),
        "delta": False,
    }


def test_differences_begin_with_the_first_value():
    stored = base64.b64decode(packed([1000, 1010, 1005], delta=True)["i32"])
    assert struct.unpack("<3i", stored) == (1000, 10, -5)


def test_an_empty_column_has_no_bytes():
    assert packed([], delta=True) == {"n": 0, "i32": "", "delta": True}


@given(st.lists(SMALL))
def test_values_come_back(values):
    assert unpacked(packed(values)) == values == plain(values)


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_clocks_beyond_32_bits_come_back_from_their_differences(steps):
    clocks = [sum(steps[: number + 1]) for number in range(len(steps))]
    assert unpacked(packed(clocks, delta=True)) == clocks


@pytest.mark.parametrize(("values", "delta"), [([2**31], False), ([-(2**31) - 1], False), ([0, 2**31], True)])
def test_what_32_bits_cannot_hold_is_refused(values, delta):
    with pytest.raises(OverflowError, match="32 bits"):
        packed(values, delta=delta)
