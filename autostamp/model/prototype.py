# SPDX-License-Identifier: Apache-2.0
"""The signature of a CUDA C++ kernel, with every type laid out in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

POINTER_BYTES: Final = 8
TENSOR_MAP_BYTES: Final = 128
"""sizeof(CUtensorMap): 16 words of 64 bits (cuda.h, CU_TENSOR_MAP_NUM_QWORDS)."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number. `spelling` is its C++ name, `number` what it holds: bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3, e5m2.

    `size` is in bytes and is the alignment, too. `enumerators` are the names and values of an enumeration.
    """

    spelling: str
    number: str
    size: int
    enumerators: tuple[tuple[str, int], ...] = ()

    @property
    def alignment(self) -> int:
        """Alignment in bytes."""
        return self.size


@dataclass(frozen=True, slots=True)
class Vector:
    """A built-in vector type such as float4: `count` elements, aligned to `alignment` bytes."""

    spelling: str
    element: Scalar
    count: int
    alignment: int

    @property
    def size(self) -> int:
        """Size in bytes."""
        return -(-self.element.size * self.count // self.alignment) * self.alignment


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer; `pointee` is None for void."""

    pointee: CType | None
    is_const: bool
    is_volatile: bool = False

    @property
    def size(self) -> int:
        """Size in bytes."""
        return POINTER_BYTES

    @property
    def alignment(self) -> int:
        """Alignment in bytes."""
        return POINTER_BYTES


@dataclass(frozen=True, slots=True)
class Array:
    """`count` elements of one type, one after the other."""

    element: CType
    count: int

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.element.size * self.count

    @property
    def alignment(self) -> int:
        """Alignment in bytes."""
        return self.element.alignment


@dataclass(frozen=True, slots=True)
class Field:
    """A data member at `offset` bytes from the start of its struct."""

    name: str
    type: CType
    offset: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct. `spelling` is its qualified C++ name, empty for one without a name."""

    spelling: str
    size: int
    alignment: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """CUtensorMap of cuda.h, which the driver fills in. `alignment` is 64 bytes, from CUDA 13.0 on 128."""

    alignment: int

    @property
    def size(self) -> int:
        """Size in bytes."""
        return TENSOR_MAP_BYTES


CType: TypeAlias = Scalar | Vector | Pointer | Array | Struct | TensorMap


def spell(kind: CType | None) -> str:
    """The type as C++ writes it without a name: `float const*`, `::ns::Params`. None is void."""
    match kind:
        case None:
            return "void"
        case Pointer():
            qualifiers = " const" * kind.is_const + " volatile" * kind.is_volatile
            return f"{spell(kind.pointee)}{qualifiers}*"
        case Array():
            return f"{spell(kind.element)}[{kind.count}]"
        case Struct():
            return f"::{kind.spelling}" if kind.spelling else "struct without a name"
        case TensorMap():
            return "::CUtensorMap"
        case Scalar() | Vector():
            return kind.spelling


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name stands: line and column count from 1, `source` is the line's text."""

    path: str
    line: int
    column: int
    source: str
    width: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `default` is the text of its default argument, empty without one."""

    name: str
    type: CType
    place: Place
    default: str = ""


@dataclass(frozen=True, slots=True)
class Prototype:
    """A kernel: its name as C++ code outside every namespace writes it (with template arguments, if any), and its parameters.

    `scope` are the namespaces around it that have a name. `is_c` is true for `extern "C"`, whose symbol is the bare name.
    """

    name: str
    scope: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    place: Place
    is_c: bool = False

    @property
    def bare_name(self) -> str:
        """The name without namespaces and template arguments."""
        return self.name.partition("<")[0].rpartition("::")[2]

    @property
    def is_template(self) -> bool:
        """True for an instance of a template."""
        return "<" in self.name
