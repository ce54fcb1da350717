# SPDX-License-Identifier: Apache-2.0
"""What holds for any struct, any arguments and any numbers: layouts agree with ctypes, roundings are nearest."""

from __future__ import annotations

import contextlib
import ctypes
import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.diagnostics import AutostampError
from autostamp.model.prototype import Struct
from autostamp.passes.cuda.declarations import SourceText, close_of, split
from autostamp.passes.cuda.directives import plain
from autostamp.passes.cuda.prototype import parse_prototype
from autostamp.runtime.cuda.arguments import bind
from autostamp.runtime.cuda.elements import DECODE, encode
from autostamp.runtime.cuda.specs import read_number

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# ctypes lays structs out by the C ABI of the platform: an independent implementation of the same rules.
C_TYPES = {
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short,
    "unsigned short": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "long": ctypes.c_long,
    "long long": ctypes.c_longlong,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "float*": ctypes.c_void_p,
}
SCALARS = st.sampled_from(sorted(C_TYPES))
LENGTHS = st.lists(st.integers(1, 3), max_size=2)


@st.composite
def members(draw, depth: int = 2):
    """Members of a struct: (what stands before the name in C++, type of ctypes)."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        if depth and draw(st.booleans()):
            inside = draw(members(depth=depth - 1))
            specifier, kind = f"struct {{ {declared(inside)} }}", structure(inside)
        else:
            specifier = draw(SCALARS)
            kind = C_TYPES[specifier]
        for length in draw(LENGTHS):
            kind = kind * length
        found.append((specifier, kind))
    return found


def declared(found) -> str:
    return " ".join(f"{specifier} m{number}{lengths(kind)};" for number, (specifier, kind) in enumerate(found))


def lengths(kind) -> str:
    """`[2][3]` of an array type of ctypes."""
    return f"[{kind._length_}]{lengths(kind._type_)}" if hasattr(kind, "_length_") else ""


def structure(found) -> type[ctypes.Structure]:
    fields = [(f"m{number}", kind) for number, (_, kind) in enumerate(found)]
    return type("Made", (ctypes.Structure,), {"_fields_": fields})


def layout_of(text: str) -> Struct:
    (parameter,) = parse_prototype([SourceText("k.cu", text)], "k", {}).parameters
    assert isinstance(parameter.type, Struct)
    return parameter.type


@given(members())
def test_layouts_are_those_of_the_platform(found):
    expected = structure(found)
    laid_out = layout_of(f"struct P {{ {declared(found)} }};\n__global__ void k(P p) {{}}")
    assert laid_out.size == ctypes.sizeof(expected)
    assert laid_out.alignment == ctypes.alignment(expected)
    assert [field.offset for field in laid_out.fields] == [
        getattr(expected, field.name).offset for field in laid_out.fields
    ]


NUMBERS = {
    "int": "i",
    "unsigned int": "I",
    "short": "h",
    "long": "q",
    "unsigned char": "B",
    "double": "d",
    "float": "f",
}


@given(st.lists(st.sampled_from(sorted(NUMBERS)), min_size=1, max_size=8), st.data())
def test_values_arrive_where_the_struct_has_them(kinds, data):
    values = []
    for kind in kinds:
        size = 8 * struct.calcsize(NUMBERS[kind])
        if kind in ("double", "float"):
            values.append(data.draw(st.floats(width=size, allow_nan=False, allow_infinity=False)))
        else:
            low = 0 if kind.startswith("unsigned") else -(1 << (size - 1))
            values.append(data.draw(st.integers(low, low + (1 << size) - 1)))
    fields = " ".join(f"{kind} m{number};" for number, kind in enumerate(kinds))
    text = f"struct P {{ {fields} }};\n__global__ void k(P p) {{}}"
    texts = [f"p.m{number}={value!r}" for number, value in enumerate(values)]
    (value,) = bind(parse_prototype([SourceText("k.cu", text)], "k", {}), texts).values
    # "@": native alignment, but without what stands behind the last member.
    expected = struct.pack(f"@{''.join(NUMBERS[kind] for kind in kinds)}", *values)
    assert value.data[: len(expected)] == expected
    assert set(value.data[len(expected) :]) <= {0}


@given(st.sampled_from(sorted(DECODE)), st.lists(st.floats(-400, 400, width=64), min_size=1, max_size=20))
def test_rounding_takes_the_nearest_value(number, values):
    exact = np.asarray(values, np.float64)
    decoded = DECODE[number](encode(exact, number).astype(np.uint16))
    every = DECODE[number](np.arange(65536 if number == "bf16" else 256, dtype=np.uint16))
    finite = np.sort(every[np.isfinite(every)])
    nearest = [np.abs(finite - value).min() for value in exact]
    assert np.abs(decoded - exact).tolist() == nearest


@given(st.sampled_from(sorted(DECODE)), st.data())
def test_every_finite_code_keeps_its_bits(number, data):
    code = data.draw(st.integers(0, 65535 if number == "bf16" else 255))
    value = DECODE[number](np.array([code], np.uint16))
    if np.isfinite(value[0]):
        assert int(encode(value, number)[0]) == code


@given(st.lists(st.floats(-(2.0**127), 2.0**127, width=32), min_size=1, max_size=50))
def test_the_two_ways_to_bfloat16_agree(values):
    narrow = np.asarray(values, np.float32)
    assert encode(narrow, "bf16").tolist() == encode(narrow.astype(np.float64), "bf16").tolist()


@given(st.integers(-(2**64), 2**64))
def test_integers_are_read_in_every_base(value):
    for text in (str(value), hex(value), f"{value}ULL"):
        assert read_number(text) == value


@given(st.floats(allow_nan=False))
def test_real_numbers_are_read_as_written(value):
    found = read_number(repr(value))
    assert isinstance(found, float)
    assert found == value


CODE = st.text(st.sampled_from("ab(){}[]<>;,:\"'/*\\\n #=R0"), max_size=60)


@given(CODE)
def test_taking_text_out_keeps_every_offset(text):
    found = plain(text, {}).text
    assert len(found) == len(text)
    assert [at for at, character in enumerate(found) if character == "\n"] == [
        at for at, character in enumerate(text) if character == "\n"
    ]


@given(CODE)
def test_parts_put_together_are_the_text(text):
    parts = list(split(text))
    assert ",".join(part for _, part in parts) == text
    assert all(text[at : at + len(part)] == part for at, part in parts)


@given(CODE)
def test_no_text_breaks_the_reader(text):
    source = f"{text}\n__global__ void k(int n) {{}}"
    with contextlib.suppress(AutostampError):  # a finding is fine, any other exception is not
        parse_prototype([SourceText("k.cu", source)], "k", {})


@given(CODE, st.integers(0, 59))
def test_brackets_close_inside_the_text(text, opened):
    assert min(opened, len(text)) <= close_of(text, min(opened, len(text))) <= len(text)
