# SPDX-License-Identifier: Apache-2.0
"""C types as nvcc compiles them for x86-64 and sbsa Linux (LP64): sizes, alignments, struct layout.

CUDA's host and device compilers agree on all of it (CUDA C++ Programming Guide, C++ language support, kernel parameters).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from autostamp.model.prototype import CType, Field, Scalar, Struct, Vector

_NUMBERS: Final[dict[str, str]] = {
    "bool": "bool",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "short": "i16",
    "unsigned short": "u16",
    "int": "i32",
    "unsigned int": "u32",
    "long": "i64",
    "unsigned long": "u64",
    "long long": "i64",
    "unsigned long long": "u64",
    "float": "f32",
    "double": "f64",
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2",
    # Names of CUTLASS's headers (include/cutlass/numeric_types.h), which are not read for them.
    "cutlass::half_t": "f16",
    "cutlass::bfloat16_t": "bf16",
    "cutlass::float_e4m3_t": "e4m3",
    "cutlass::float_e5m2_t": "e5m2",
}
"""C++ name of each arithmetic type, and what it holds. char is signed, as on x86-64."""

_SIZES: Final[dict[str, int]] = {"bool": 1, "e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8} | {
    f"{sign}{8 * size}": size for sign in "iu" for size in (1, 2, 4, 8)
}

_ALIASES: Final[dict[str, str]] = {
    "half": "__half",
    "nv_bfloat16": "__nv_bfloat16",
    "__nv_fp8_storage_t": "unsigned char",
    "size_t": "unsigned long",
    "ptrdiff_t": "long",
    "ssize_t": "long",
    "clock_t": "long",
    "uint": "unsigned int",
    "ushort": "unsigned short",
    "ulong": "unsigned long",
    "cute::half_t": "cutlass::half_t",
    "cute::bfloat16_t": "cutlass::bfloat16_t",
    "cute::float_e4m3_t": "cutlass::float_e4m3_t",
    "cute::float_e5m2_t": "cutlass::float_e5m2_t",
} | {
    f"{sign}int{word}_t": name.format("unsigned " if sign else "").strip()
    for sign in ("", "u")
    for word, name in (
        ("8", "{}char" if sign else "signed char"),
        ("16", "{}short"),
        ("32", "{}int"),
        ("64", "{}long"),
        ("ptr", "{}long"),
        ("max", "{}long"),
    )
}
"""Names of <cstdint>, <cstddef> and the CUDA headers for them (LP64: 64 bits are a long)."""

_VECTOR_BASES: Final[dict[str, str]] = {
    "char": "signed char",
    "uchar": "unsigned char",
    "short": "short",
    "ushort": "unsigned short",
    "int": "int",
    "uint": "unsigned int",
    "long": "long",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "float": "float",
    "double": "double",
}

HANDLES: Final[dict[str, str]] = {
    "cudaTextureObject_t": "a texture object is made by host code",
    "cudaSurfaceObject_t": "a surface object is made by host code",
    "cudaStream_t": "a stream is made by host code",
    "va_list": "arguments of a variable number cannot be given",
}
"""Types whose values only host code can make, and why."""

TENSOR_MAPS: Final = ("CUtensorMap", "CUtensorMap_st", "cute::TmaDescriptor")
"""Names of a tensor map: those of cuda.h, and CuTe's alias (include/cute/arch/copy_sm90_desc.hpp)."""

_MAX_VECTOR_ALIGNMENT: Final = 16


def scalar(spelling: str) -> Scalar:
    """The arithmetic type with a canonical name. Raises KeyError for any other."""
    number = _NUMBERS[spelling]
    return Scalar(spelling, number, _SIZES[number])


def _vectors() -> dict[str, Vector]:
    """Built-in vector types. One of 2 or 4 elements is aligned to its whole size, at most to 16 bytes; one of 1 or 3 like its
    element (CUDA C++ Programming Guide, built-in vector types, alignment requirements).
    """
    found = {}
    for base, name in _VECTOR_BASES.items():
        element = scalar(name)
        for count in (1, 2, 3, 4):
            whole = element.size * count if count in (2, 4) else element.size
            found[f"{base}{count}"] = Vector(f"{base}{count}", element, count, min(whole, _MAX_VECTOR_ALIGNMENT))
    found["__half2"] = Vector("__half2", scalar("__half"), 2, 4)
    found["__nv_bfloat162"] = Vector("__nv_bfloat162", scalar("__nv_bfloat16"), 2, 4)
    found["dim3"] = Vector("dim3", scalar("unsigned int"), 3, 4)
    return found


BUILTIN: Final[dict[str, Scalar | Vector]] = {
    **{name: scalar(name) for name in _NUMBERS},
    **{alias: scalar(name) for alias, name in _ALIASES.items()},
    **(_BUILTIN_VECTORS := _vectors()),
    "half2": _BUILTIN_VECTORS["__half2"],
    "nv_bfloat162": _BUILTIN_VECTORS["__nv_bfloat162"],
}
"""Every type that is known without a declaration."""


def of_words(words: Iterable[str]) -> Scalar | None:
    """The type that specifiers such as `unsigned long int` name in whatever order; None for no arithmetic type."""
    found = list(words)
    is_long = found.count("long")
    rest = [word for word in found if word not in ("long", "int", "signed")]
    if rest in (["unsigned"], []):
        base = {0: "int", 1: "long", 2: "long long"}.get(is_long)
        if "short" in found or base is None:
            return None
        return scalar(f"unsigned {base}" if rest else base)
    if is_long == 0 and sorted(rest) in (["short"], ["short", "unsigned"]):
        return scalar("unsigned short" if "unsigned" in rest else "short")
    if is_long == 0 and sorted(rest) in (["char"], ["char", "unsigned"]) and "int" not in found:
        sign = "unsigned " if "unsigned" in rest else "signed " if "signed" in found else ""
        return scalar(f"{sign}char")
    name = rest[0] if len(found) == 1 else ""
    return scalar("bool" if name == "_Bool" else name) if name in ("float", "double", "bool", "_Bool") else None


def lay_out(spelling: str, members: Iterable[tuple[str, CType, int]], alignment: int = 1) -> Struct:
    """The struct of (name, type, alignment asked for or 0) in order.

    Each member stands at the next multiple of its alignment, and the size is a multiple of the largest one (System V ABI,
    AMD64 supplement, aggregates and unions; the Itanium C++ ABI lays out plain structs in the same way).
    """
    fields: list[Field] = []
    end = 0
    for name, kind, asked in members:
        own = max(kind.alignment, asked)
        offset = -(-end // own) * own
        fields.append(Field(name, kind, offset))
        end = offset + kind.size
        alignment = max(alignment, own)
    # An empty struct takes one byte (C++ standard, [class.pre]: complete objects of class type have nonzero size).
    return Struct(spelling, max(-(-end // alignment) * alignment, 1), alignment, tuple(fields))
