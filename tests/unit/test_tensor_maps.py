# SPDX-License-Identifier: Apache-2.0
"""Tensor maps as arguments: what `map(…)` means, the bytes that kernel and driver get, and what is refused, with its place."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError, render
from autostamp.model.prototype import Struct
from autostamp.passes.cuda.declarations import SourceText
from autostamp.passes.cuda.prototype import parse_prototype
from autostamp.runtime.cuda import tensor_map
from autostamp.runtime.cuda.arguments import Arguments, bind
from autostamp.runtime.cuda.map_arguments import MapArgument, check
from autostamp.runtime.cuda.map_specs import MapOptions
from autostamp.runtime.cuda.specs import ArraySpec, Fill, MapSpec, read_spec
from autostamp.runtime.cuda.tensor_map import Tiled
from tests.tensor_maps import BAD, GOOD

GEMM = "const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* c, int n, int k"
GIVEN = ("n=256", "k=64", "c=[128,n]:const(nan)", "a=bf16[128,k]:arange", "b=bf16[n,k]")
MAPS = ("map_a=map(a, box=[128,64], swizzle=128B)", "map_b=map(b, box=[128,k], swizzle=128B, l2=256B)")


def bound(signature: str, *texts: str, before: str = "", alignment: int = 128) -> Arguments:
    text = f"{before}__global__ void k({signature}) {{}}"
    return bind(parse_prototype([SourceText("k.cu", text)], "k", {}, alignment), texts)


def refused(signature: str, *texts: str, before: str = ""):
    with pytest.raises(AutostampError) as caught:
        bound(signature, *texts, before=before)
    return caught.value.diagnostic


@pytest.fixture
def driver(monkeypatch) -> list[tuple[Tiled, int]]:
    """What the driver was asked for; the map of the n-th call is 128 bytes of n, from 1 on."""
    asked: list[tuple[Tiled, int]] = []

    def encode(tiled: Tiled, address: int) -> bytes:
        asked.append((tiled, address))
        return bytes([len(asked)]) * 128

    monkeypatch.setattr(tensor_map, "encode", encode)
    return asked


@pytest.mark.parametrize(
    ("text", "array", "options"),
    [
        ("map(a,box=[8,16])", "a", {"box": (8, 16)}),
        ("map( p.in , box = [n, 4] )", "p.in", {"box": ("n", 4)}),
        ("map(a,swizzle=64B,box=[1],l2=128B,fill=nan,type=tf32)", "a",
         {"box": (1,), "swizzle": "64B", "l2": "128B", "fill": "nan", "type": "tf32"}),
        ("map(a,box=[2,4],steps=[2,1])", "a", {"box": (2, 4), "steps": (2, 1)}),
        ("map(f16[4,8]:random(0,1),box=[4,8])", ArraySpec("f16", (4, 8), Fill("random", (0, 1))), {"box": (4, 8)}),
    ],
)  # fmt: skip
def test_forms(text, array, options):
    assert read_spec(text, text) == MapSpec(array, MapOptions(text, **options))


@pytest.mark.parametrize(
    ("text", "blamed", "said"),
    [
        ("m=map(a)", "map(a)", "needs its box"),
        ("m=map()", "map", "needs an array"),
        ("m=map(3,box=[4])", "3", "neither an array"),
        ("m=map(a,box=4x4)", "4x4", "written as"),
        ("m=map(a,bax=[4])", "bax=[4]", "no option"),
        ("m=map(a,box=[4],swizzle=96B)", "swizzle=96B", "none, 32B, 64B, 128B"),
        ("m=map(a,box=[4],l2=512B)", "l2=512B", "none, 64B, 128B, 256B"),
        ("m=map(a,box=[4],fill=ones)", "fill=ones", "zeros, nan"),
        ("m=map(a,box=[4],type=bool)", "type=bool", "no type"),
        ("m=map(a,box=[4],box=[8])", "box=[8]", "twice"),
    ],
)
def test_text_that_cannot_be_read(text, blamed, said):
    finding = refused("CUtensorMap m", text)
    assert finding.code == "AS8001"
    assert said in finding.message
    where = finding.position
    assert where.source == text
    assert text[where.column - 1 :][: where.width] == blamed


def test_a_caret_marks_the_option():
    text = "m=map(u8[8,144],box=[8,144],swizzle=128B)"
    lines = render(refused("CUtensorMap m", text)).splitlines()
    assert lines[0].startswith("--arg:1:29: AS8010 the tensor map m cannot be made: a row of the box has 144 bytes")
    assert lines[1].endswith(text)
    assert lines[2][lines[1].index(text) :].rstrip() == " " * 28 + "^" * len("swizzle=128B")


def test_maps_of_arrays_that_are_no_parameters(driver):
    arguments = bound(GEMM, *GIVEN, *MAPS)
    # Arrays that pointers take come first, then those of the maps.
    assert [(each.name, each.number, each.shape) for each in arguments.buffers] == [
        ("c", "f32", (128, 256)), ("a", "bf16", (128, 64)), ("b", "bf16", (256, 64)),
    ]  # fmt: skip
    assert not any(each.is_const for each in arguments.buffers)
    packed = arguments.packed([0x1000, 0x2000, 0x3000])
    assert packed == [
        b"\1" * 128,
        b"\2" * 128,
        struct.pack("<Q", 0x1000),
        struct.pack("<i", 256),
        struct.pack("<i", 64),
    ]
    assert driver == [
        (Tiled("bf16", (128, 64), (128, 64), (1, 1), "128B"), 0x2000),
        (Tiled("bf16", (256, 64), (128, 64), (1, 1), "128B", "256B"), 0x3000),
    ]


def test_one_array_by_pointer_and_by_map(driver):
    arguments = bound("CUtensorMap m, const float* a", "a=[4,8]", "m=map(a,box=[4,8])")
    assert [(each.name, each.is_const) for each in arguments.buffers] == [("a", True)]
    assert arguments.packed([0x4000]) == [b"\1" * 128, struct.pack("<Q", 0x4000)]
    assert driver == [(Tiled("f32", (4, 8), (4, 8), (1, 1)), 0x4000)]


def test_two_maps_of_one_array(driver):
    arguments = bound(
        "CUtensorMap load, CUtensorMap store", "x=f32[4,8]", "load=map(x,box=[4,8])", "store=map(x,box=[1,4])"
    )
    assert [each.name for each in arguments.buffers] == ["x"]
    arguments.packed([0x4000])
    assert [(tiled.box, address) for tiled, address in driver] == [((4, 8), 0x4000), ((1, 4), 0x4000)]


def test_an_array_in_the_map(driver):
    arguments = bound("CUtensorMap m, int n", "n=8", "m=map(i32[n,4]:arange,box=[n,4])")
    (buffer,) = arguments.buffers
    assert (buffer.name, buffer.data.tolist()) == ("m", np.arange(32).reshape(8, 4).tolist())


@pytest.mark.parametrize(("alignment", "fields", "size"), [(128, (128, 256), 512), (64, (64, 192), 384)])
def test_maps_in_a_struct(driver, alignment, fields, size):
    """An int, a map in an array of one, a map, a pointer: each map, and the end, at a multiple of the alignment."""
    before = "struct P { int n; CUtensorMap maps[1]; CUtensorMap one; float* out; };\n"
    texts = ("p.n=7", "p.maps[0]=map(f32[4],box=[4])", "p.one=map(p.out,box=[4])", "p.out=[4]")
    arguments = bound("const __grid_constant__ P p", *texts, before=before, alignment=alignment)
    (packed,) = arguments.packed([0x5000, 0x6000])
    end = fields[1] + 128  # where the pointer stands
    assert len(packed) == size
    assert struct.unpack_from("<i", packed) == (7,)
    assert packed[fields[0] :][:128] == b"\1" * 128
    assert packed[fields[1] :][:128] == b"\2" * 128
    assert struct.unpack_from("<Q", packed, end) == (0x5000,)
    assert [address for _, address in driver] == [0x6000, 0x5000]


def test_names_of_the_type():
    texts = ("m=map(f32[4],box=[4])",)
    for name in ("CUtensorMap", "::CUtensorMap", "struct CUtensorMap_st", "cute::TmaDescriptor", "Alias"):
        arguments = bound(f"const {name} m", *texts, before="using Alias = CUtensorMap;\n")
        assert [len(value.data) for value in arguments.values] == [128]


def test_a_map_is_one_where_cuda_h_was_read():
    header = "typedef struct CUtensorMap_st { alignas(128) unsigned long opaque[16]; } CUtensorMap;\n"
    sources = [SourceText("cuda.h", header), SourceText("k.cu", "__global__ void k(CUtensorMap m) {}")]
    (parameter,) = parse_prototype(sources, "k", {}).parameters
    assert not isinstance(parameter.type, Struct)
    assert (parameter.type.size, parameter.type.alignment) == (128, 128)


@pytest.mark.parametrize(
    ("signature", "texts", "code", "said"),
    [
        (GEMM, (*GIVEN, MAPS[0]), "AS8003", "map_b (CUtensorMap)"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(d,box=[1,1])"), "AS8004", "there is no array d"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(n,box=[1,1])"), "AS8004", "there is no array n"),
        (GEMM, (*GIVEN, *MAPS, "d=f32[4]"), "AS8002", "no parameter d"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=bf16[4,4]"), "AS8004", "it is a tensor map"),
        ("CUtensorMap m", ("m=map([4,8],box=[4,8])",), "AS8004", "no type of elements"),
        ("CUtensorMap m", ("m=map(x,box=[4])", "x=f32[4]", "y=f32[4]"), "AS8002", "no parameter y"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(b,box=[m,k])"), "AS8004", "m is no integer argument"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(b,box=[128])"), "AS8010", "box has 1 numbers, the array 2 dimensions"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(b,box=[8,8],steps=[1,2])"), "AS8010", "it must be 1"),
        (GEMM, (*GIVEN, MAPS[0], "map_b=map(b,box=[8,8],type=f32)"), "AS8010", "4 bytes, those of the array 2"),
        ("float* c", ("c=map(f32[4],box=[4])",), "AS8004", "a tensor map for float*"),
        ("float x", ("x=map(f32[4],box=[4])",), "AS8004", "a tensor map for float"),
    ],
)  # fmt: skip
def test_what_does_not_fit(signature, texts, code, said):
    finding = refused(signature, *texts)
    assert finding.code == code
    assert said in finding.message


def argument(tiled: Tiled) -> MapArgument:
    return MapArgument("m", 0, 0, tiled, MapOptions("m=map(a,box=[1],steps=[1],swizzle=none,fill=nan)", (1,)))


@pytest.mark.parametrize("name", GOOD)
def test_what_the_driver_takes_passes(name):
    number = "f32" if GOOD[name].type == "tf32" else GOOD[name].type
    check(argument(GOOD[name]), number)


@pytest.mark.parametrize("name", BAD)
def test_what_the_driver_refuses_is_refused_before(name):
    tiled, option, said = BAD[name]
    asked = argument(tiled)
    with pytest.raises(AutostampError) as caught:
        check(asked, tiled.type)
    finding = caught.value.diagnostic
    assert finding.code == "AS8010"
    assert said in finding.message
    where, text = finding.position, asked.options.text
    assert text[where.column - 1 :].startswith(f"{option}=" if option else "map(")


@pytest.mark.parametrize("number", ["bool", "i8", "e4m3", "e5m2"])
def test_elements_that_maps_do_not_know_are_copied_as_bytes(number):
    (value,) = bound("CUtensorMap m", f"m=map({number}[16]:zeros,box=[16])").values
    assert value.maps[0].tiled.type == "u8"


def test_an_array_between_granules(driver):
    arguments = bound("CUtensorMap m", "m=map(f32[4],box=[4])")
    with pytest.raises(AutostampError, match=r"AS8010 .*0x1008, no multiple of 16"):
        arguments.packed([0x1008])
    assert driver == []


def test_what_the_driver_says(monkeypatch):
    def encode(tiled: Tiled, address: int) -> bytes:
        message = "CUDA_ERROR_NOT_SUPPORTED"
        raise RuntimeError(message)

    monkeypatch.setattr(tensor_map, "encode", encode)
    arguments = bound("CUtensorMap m", "m=map(f32[4],box=[4])")
    with pytest.raises(AutostampError) as caught:
        arguments.packed([0x1000])
    finding = caught.value.diagnostic
    assert (finding.code, finding.position.source) == ("AS8011", "m=map(f32[4],box=[4])")
    assert "CUDA_ERROR_NOT_SUPPORTED" in finding.message


class Driver:
    """Stands in for libcuda: keeps the numbers that cuTensorMapEncodeTiled gets."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def cuTensorMapEncodeTiled(self, place, kind, rank, address, *rest):
        arrays, words = rest[:4], rest[4:]
        assert place.value % 64 == 0  # the driver's first requirement
        ctypes.memset(place.value, 0x5A, 128)
        self.asked = [
            kind.value,
            rank.value,
            address.value,
            *(list(each) for each in arrays),
            *(word.value for word in words),
        ]
        return 0


def test_the_driver_gets_the_innermost_dimension_first(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    tiled = Tiled("bf16", (3, 5, 64), (1, 2, 32), (2, 1, 1), "64B", "128B", "nan")
    assert tensor_map.encode(tiled, 0x7000) == b"\x5a" * 128
    # cuda.h: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 9; strides of 64 * 2 and 5 * 64 * 2 bytes; INTERLEAVE_NONE 0, SWIZZLE_64B 2,
    # L2_PROMOTION_L2_128B 2, FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA 1.
    assert driver.asked == [9, 3, 0x7000, [64, 5, 3], [128, 640], [32, 2, 1], [1, 1, 2], 0, 2, 2, 1]
