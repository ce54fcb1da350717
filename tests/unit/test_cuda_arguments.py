# SPDX-License-Identifier: Apache-2.0
"""Arguments from text: what each form means, the bytes that the kernel gets, and what is refused, with its place."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.passes.cuda.declarations import SourceText
from autostamp.passes.cuda.prototype import parse_prototype
from autostamp.runtime.cuda.arguments import Arguments, bind
from autostamp.runtime.cuda.comparison import difference
from autostamp.runtime.cuda.elements import DECODE, encode, limits
from autostamp.runtime.cuda.specs import (
    ArraySpec,
    File,
    Fill,
    Number,
    Values,
    read_arguments,
    read_number,
    read_spec,
)

STRUCT = "struct P { const float* in; float* out; int n; struct D { char c; double d[2]; } deep; };\n"


def bound(signature: str, *texts: str, seed: int = 0, before: str = "") -> Arguments:
    text = f"{before}__global__ void k({signature}) {{}}"
    return bind(parse_prototype([SourceText("k.cu", text)], "k", {}), texts, seed)


def refused(signature: str, *texts: str, before: str = ""):
    with pytest.raises(AutostampError) as caught:
        bound(signature, *texts, before=before)
    return caught.value.diagnostic


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("1024", Number(1024)),
        ("-3", Number(-3)),
        ("0x1F", Number(31)),
        ("010", Number(8)),  # octal, as in C
        ("4u", Number(4)),
        ("1.5", Number(1.5)),
        ("1e-3", Number(1e-3)),
        ("2.5f", Number(2.5)),
        ("true", Number(True)),
        ("null", Number(None)),
        ("nullptr", Number(None)),
        ("FAST", Number("FAST")),
        ("{1, 2}", Values((Number(1), Number(2)))),
        ("{1,{2,3}}", Values((Number(1), Values((Number(2), Number(3)))))),
        ("f32[8]", ArraySpec("f32", (8,), Fill("zeros"))),
        ("[N,4]", ArraySpec("", ("N", 4), Fill("zeros"))),
        ("bf16[2, 3]:random", ArraySpec("bf16", (2, 3), Fill("random"))),
        ("i8[4]:random(-2,3)", ArraySpec("i8", (4,), Fill("random", (-2, 3)))),
        ("f32[4]:const(3)", ArraySpec("f32", (4,), Fill("const", (3,)))),
        ("f32[p.n]:a.npy", ArraySpec("f32", ("p.n",), File("a.npy"))),
        ("f32[4]:some dir/a.npz:x", ArraySpec("f32", (4,), File("some dir/a.npz", "x"))),
        ("a.npy", ArraySpec("", None, File("a.npy"))),
    ],
)
def test_forms(text, spec):
    found = read_spec(text, text)
    assert found == spec
    assert isinstance(getattr(found, "value", None), type(getattr(spec, "value", None)))


@pytest.mark.parametrize(
    "text",
    ["A", "=1", "3=1", "A=", "A=f33[4]", "A=f32[]", "A=f32[4]:what", "A=f32[4]:const", "A=f32[4]:const(a)",
     "A=f32[4]:zeros(1)", "A=f32[4]:random(1)", "A=f32[1.5]", "A={1,2", "A=1 2", "A.=1", "A[x]=1"],
)  # fmt: skip
def test_text_that_cannot_be_read(text):
    with pytest.raises(AutostampError, match="AS8001") as caught:
        read_arguments([text])
    assert text in caught.value.diagnostic.message


def test_a_name_given_twice():
    with pytest.raises(AutostampError, match="AS8001 cannot read the argument n=2: n is given twice"):
        read_arguments(["n=1", "n=2"])


@pytest.mark.parametrize("text", ["", "abc", "1x", "--1", "0x", "1.2.3"])
def test_what_is_no_number(text):
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "-2", struct.pack("<i", -2)),
        ("unsigned", "4294967295", struct.pack("<I", 2**32 - 1)),
        ("long long", "-9223372036854775808", struct.pack("<q", -(2**63))),
        ("size_t", "18446744073709551615", struct.pack("<Q", 2**64 - 1)),
        ("unsigned char", "255", b"\xff"),
        ("char", "-1", b"\xff"),
        ("bool", "true", b"\x01"),
        ("bool", "0", b"\x00"),
        ("float", "1.5", struct.pack("<f", 1.5)),
        ("float", "3", struct.pack("<f", 3)),
        ("float", "inf", struct.pack("<f", float("inf"))),
        ("double", "0.1", struct.pack("<d", 0.1)),
        ("__half", "1.5", struct.pack("<e", 1.5)),
        ("__nv_bfloat16", "1.5", b"\xc0\x3f"),  # the upper half of 0x3fc00000
        ("__nv_fp8_e4m3", "448", b"\x7e"),  # the largest E4M3
        ("__nv_fp8_e5m2", "-57344", b"\xfb"),  # the largest E5M2, negative
        ("float2", "{1,2}", struct.pack("<2f", 1, 2)),
        ("dim3", "{1,2,3}", struct.pack("<3I", 1, 2, 3)),
        ("float*", "null", bytes(8)),
        ("float**", "null", bytes(8)),
    ],
)
def test_scalars(kind, text, expected):
    (value,) = bound(f"{kind} x", f"x={text}").values
    assert value.data == expected


def test_enumerators_by_name_and_number():
    before = "namespace ns { enum class Mode : short { A = 3, B }; }\n"
    for text in ("B", "Mode::B", "ns::Mode::B", "4"):
        assert bound("ns::Mode m", f"m={text}", before=before).values[0].data == struct.pack("<h", 4)
    finding = refused("ns::Mode m", "m=C", before=before)
    assert (finding.code, finding.help.partition("  ")[0]) == ("AS8004", "It has: A, B.")


def test_defaults():
    arguments = bound("int n = 4, float x = 1.5f, float* p = nullptr, bool b = true, long m = 0x10, int* q = 0")
    expected = [struct.pack("<i", 4), struct.pack("<f", 1.5), bytes(8), b"\x01", struct.pack("<q", 16), bytes(8)]
    assert [value.data for value in arguments.values] == expected
    assert bound("int n = 4", "n=5").values[0].data == struct.pack("<i", 5)
    assert refused("int n = what()").code == "AS8003"


def test_vectors_and_arrays_by_parts():
    (value,) = bound("float4 v", "v.x=1", "v.y=2", "v.z=3", "v.w=4").values
    assert value.data == struct.pack("<4f", 1, 2, 3, 4)
    before = "struct P { int a[3]; };\n"
    assert bound("P p", "p.a={1,2,3}", before=before).values[0].data == struct.pack("<3i", 1, 2, 3)
    assert bound("P p", "p.a[0]=1", "p.a[1]=2", "p.a[2]=3", before=before).values[0].data == struct.pack("<3i", 1, 2, 3)
    assert bound("P p", "p={{1,2,3}}", before=before).values[0].data == struct.pack("<3i", 1, 2, 3)
    assert "2 values for int[3], which has 3" in refused("P p", "p.a={1,2}", before=before).message
    assert refused("P p", "p.a[3]=1", before=before).code == "AS8002"


def test_a_struct_with_pointers():
    arguments = bound(
        "P p", "p.n=4", "p.in=[p.n]:arange", "p.out=f32[p.n,2]", "p.deep.c=7", "p.deep.d={0.5,-1}", before=STRUCT
    )
    (value,) = arguments.values
    # in 0, out 8, n 16, deep at 24: c, then d at 32 and 40.
    assert value.pointers == ((0, 0), (8, 1))
    (packed,) = arguments.packed([0x7F0000001000, 0x7F0000002000])
    assert packed == struct.pack("<QQi4xb7x2d", 0x7F0000001000, 0x7F0000002000, 4, 7, 0.5, -1)
    assert [(buffer.name, buffer.shape, buffer.is_const) for buffer in arguments.buffers] == [
        ("p.in", (4,), True),
        ("p.out", (4, 2), False),
    ]
    assert arguments.buffers[0].data.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("pointer", "text", "number", "values"),
    [
        ("float*", "[2]", "f32", [0, 0]),
        ("float*", "f32[2]:ones", "f32", [1, 1]),
        ("int*", "[3]:arange", "i32", [0, 1, 2]),
        ("unsigned long*", "[2]:const(18446744073709551615)", "u64", [2**64 - 1] * 2),
        ("double*", "[1]:const(0.1)", "f64", [0.1]),
        ("bool*", "[2]:ones", "bool", [1, 1]),
        ("__half*", "[2]:const(1.5)", "f16", [1.5, 1.5]),
        ("__nv_bfloat16*", "[2]:const(-1)", "bf16", [0xBF80] * 2),
        ("__nv_fp8_e4m3*", "[1]:const(1)", "e4m3", [0x38]),
        ("__nv_fp8_e5m2*", "[1]:const(1)", "e5m2", [0x3C]),
        ("void*", "i16[2]:const(-2)", "i16", [-2, -2]),
        ("char*", "f32[1]:ones", "f32", [1]),
        ("uint8_t*", "bf16[1]:ones", "bf16", [0x3F80]),
        ("float4*", "f32[4]:ones", "f32", [1] * 4),
        ("P*", "u8[48]", "u8", [0] * 48),
    ],
)
def test_arrays(pointer, text, number, values):
    (buffer,) = bound(f"{pointer} a", f"a={text}", before=STRUCT).buffers
    assert buffer.number == number
    assert buffer.data.tolist() == values


@pytest.mark.parametrize(
    ("signature", "texts", "words"),
    [
        ("const float* a", ["a=f64[4]"], "f64 elements for float const*, which has f32"),
        ("int* a", ["a=u32[4]"], "u32 elements for int*, which has i32"),  # as many bytes, another kind
        ("int* a", ["a=3"], "a number for int*"),
        ("float** a", ["a=f32[4]"], "addresses"),
        ("void* a", ["a=[4]"], "no type of elements"),
        ("float4* a", ["a=[4]"], "no type of elements for float4*, which has f32"),
        ("float4* a", ["a=f32[6]"], "24 bytes are no whole number of float4, 16 bytes each"),
        ("P* a", ["a=f32[4]"], "f32 elements for ::P*"),
        ("float* a", ["a=[n]"], "its length n is no integer argument"),
        ("float* a, int n", ["a=[n]", "n=0"], "its length n is 0"),
        ("float* a", ["a=[4611686018427387904]"], "cannot be had on this machine"),
        ("int n", ["n=1.5"], "1.5 for int, which holds integers"),
        ("int n", ["n=2147483648"], "2147483648 is not in -2147483648 to 2147483647"),
        ("unsigned n", ["n=-1"], "-1 is not in 0 to 4294967295"),
        ("int n", ["n=true"], "true or false for int"),
        ("int n", ["n=null"], "null for int"),
        ("int n", ["n=i32[4]"], "an array for int"),
        ("int n", ["n=x"], "x is no value of int"),
        ("bool b", ["b=2"], "2 is not in 0 to 1"),
        ("__half h", ["h=70000"], "70000 is not in -65504.0 to 65504.0"),
        ("__nv_fp8_e4m3 h", ["h=inf"], "e4m3 has no inf"),
        ("float4 v", ["v=1"], "it is a float4"),
        ("signed char* a", ["a=[200]:arange"], "arange gives values from 0 to 199, i8 holds -128 to 127"),
        ("__half* a", ["a=[70000]:arange"], "f16 holds -65504.0 to 65504.0"),
        ("unsigned* a", ["a=[4]:random(-2,2)"], "there is nothing from -2 to below 2 that u32 holds"),
        ("int* a", ["a=[4]:normal"], "normal with real numbers for i32"),
        ("int* a", ["a=[4]:const(1.5)"], "const with real numbers for i32"),
        ("__nv_bfloat16* a", ["a=[4]:const(inf)"], "bf16 holds"),
        ("float* a", ["a=nowhere.npy"], "nowhere.npy cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_at_the_parameter(signature, texts, words):
    finding = refused(signature, *texts, before=STRUCT)
    assert finding.code == "AS8004"
    assert words in finding.message
    assert (finding.position.path, finding.position.line) == ("k.cu", 2)
    name = signature.replace("*", " ").split(",")[0].split()[-1]
    assert finding.position.source[finding.position.column - 1 :].startswith(name)
    assert finding.help.endswith(".")


def test_all_that_is_missing_is_said_at_once():
    finding = refused("const float* in, P p, int n, float2 v, bool last = false", "p.n=1", before=STRUCT)
    assert finding.code == "AS8003"
    assert finding.message == (
        "k needs arguments that were not given: in (float const*), p.in (float const*), p.out (float*), "
        "p.deep.c (char), p.deep.d (double[2]), n (int), v (float2)"
    )


def test_a_name_that_is_no_parameter():
    finding = refused("float* output, int n", "ouptut=[4]", "n=1")
    assert finding.code == "AS8002"
    assert finding.message == "k has no parameter ouptut, did you mean output?"
    assert finding.help == "It has output, n."


def test_random_contents_depend_on_the_seed_and_the_name_alone():
    one = bound("float* a, float* b", "a=[64]:random", "b=[64]:random").buffers
    other = bound("float* b, int n, float* a", "n=3", "b=[64]:random", "a=[64]:random").buffers
    assert one[0].data.tobytes() == other[1].data.tobytes()
    assert one[0].data.tobytes() != one[1].data.tobytes()
    assert one[0].data.tobytes() != bound("float* a", "a=[64]:random", seed=1).buffers[0].data.tobytes()


@pytest.mark.parametrize(
    ("pointer", "fill", "low", "high"),
    [
        ("float*", "random", -1, 1),
        ("double*", "random(2,3)", 2, 3),
        ("__half*", "random", -1, 1),
        ("int*", "random", -8, 7),
        ("unsigned char*", "random", 0, 15),
        ("bool*", "random", 0, 1),
        ("int*", "random(5,7)", 5, 6),
        ("unsigned long*", "random(0,18446744073709551615)", 0, 2**64 - 1),
    ],
)
def test_random_contents_stay_in_bounds_and_vary(pointer, fill, low, high):
    (buffer,) = bound(f"{pointer} a", f"a=[4096]:{fill}").buffers
    assert low <= buffer.data.min() < buffer.data.max() <= high


def test_normal_contents():
    (buffer,) = bound("float* a", "a=[65536]:normal(3,2)").buffers
    # The mean of 65536 draws lies within 2/256 of 3 for one deviation; ten of them never happen by chance.
    assert abs(buffer.data.mean() - 3) < 0.08
    assert abs(buffer.data.std() - 2) < 0.08


def test_files(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "b.npz", x=values, bits=np.array([1, 2], np.uint16), flags=np.array([True, False]))
    (buffer,) = bound("const float* a", f"a={tmp_path}/a.npy").buffers
    assert (buffer.number, buffer.shape, buffer.data.tolist()) == ("f32", (2, 3), values.tolist())
    assert bound("const float* a", f"a=f32[2,3]:{tmp_path}/b.npz:x").buffers[0].data.tolist() == values.tolist()
    assert bound("void* a", f"a={tmp_path}/a.npy").buffers[0].number == "f32"
    assert bound("__nv_bfloat16* a", f"a={tmp_path}/b.npz:bits").buffers[0].data.tolist() == [1, 2]
    assert bound("bool* a", f"a={tmp_path}/b.npz:flags").buffers[0].data.tolist() == [1, 0]
    for pointer, text, words in (
        ("float*", f"f32[3,2]:{tmp_path}/a.npy", "has the shape [2,3]"),
        ("double*", f"{tmp_path}/a.npy", "holds float32, not f64"),
        ("float*", f"{tmp_path}/b.npz:y", "has no array y"),
    ):
        assert words in refused(f"{pointer} a", f"a={text}").message


def test_a_file_in_fortran_order_keeps_its_values(tmp_path):
    values = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    np.save(tmp_path / "a.npy", values)
    (buffer,) = bound("int* a", f"a={tmp_path}/a.npy").buffers
    assert buffer.data.tobytes() == np.arange(6, dtype=np.int32).tobytes()


@pytest.mark.parametrize(
    ("number", "value", "bits"),
    [
        # Halfway between two neighbours, the even one is taken: 1 + 2^-8 lies between 1 and 1 + 2^-7.
        ("bf16", 1 + 2.0**-8, 0x3F80),
        ("bf16", 1 + 3 * 2.0**-8, 0x3F82),
        ("bf16", 1 + 2.0**-8 + 2.0**-20, 0x3F81),
        ("bf16", -0.0, 0x8000),
        ("e4m3", 1 + 2.0**-4, 0x38),  # between 1 (0x38) and 1.125 (0x39)
        ("e4m3", 1 + 3 * 2.0**-4, 0x3A),
        ("e4m3", 2.0**-9, 0x01),  # the smallest subnormal
        ("e4m3", 2.0**-10, 0x00),  # half of it, to even
        ("e5m2", 1.375, 0x3E),  # between 1.25 (0x3d) and 1.5 (0x3e)
        ("e5m2", 1.125, 0x3C),  # between 1 (0x3c) and 1.25 (0x3d)
        ("e5m2", 2.0**-16, 0x01),
    ],
)
def test_rounding(number, value, bits):
    assert int(encode(np.asarray(value, np.float64), number)) == bits
    assert int(encode(np.asarray(value, np.float64).astype(np.float32), number)) == bits


@pytest.mark.parametrize(
    ("number", "largest", "codes", "not_finite"),
    # arXiv 2209.05433, table 1: E4M3 has one NaN of each sign and no infinity, E5M2 three NaNs and an infinity of each sign.
    [("e4m3", 448.0, 256, 2), ("e5m2", 57344.0, 256, 8), ("bf16", 3.3895313892515355e38, 65536, 256)],
)
def test_formats(number, largest, codes, not_finite):
    values = DECODE[number](np.arange(codes, dtype=np.uint16))
    assert limits(number) == (-largest, largest)
    assert values[np.isfinite(values)].max() == largest
    assert np.count_nonzero(~np.isfinite(values)) == not_finite


def test_differences_are_of_bits():
    one = np.array([[0.0, 1.0], [np.nan, 2.0]], np.float32)
    assert difference(one, one.copy()) is None
    other = one.copy()
    other[0, 0] = -0.0
    other[1, 1] = 3.0
    found = difference(one, other)
    assert found is not None
    assert (found.count, found.size, found.first, found.bits) == (2, 4, (0, 0), ("0x00000000", "0x80000000"))
    assert str(found) == "2 of 4 elements, the first at [0,0]: 0x00000000, 0x80000000"
