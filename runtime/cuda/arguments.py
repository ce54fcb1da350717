# SPDX-License-Identifier: Apache-2.0
"""Arguments for a kernel: what the command line gave, checked against the prototype and laid out as the kernel reads it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError, Position
from autostamp.model.prototype import (
    POINTER_BYTES,
    Array,
    CType,
    Parameter,
    Place,
    Pointer,
    Prototype,
    Scalar,
    Struct,
    TensorMap,
    Vector,
    spell,
)
from autostamp.runtime.cuda import contents
from autostamp.runtime.cuda.elements import REAL, SMALL, STORAGE, encode, limits
from autostamp.runtime.cuda.map_arguments import MapArgument, check, tiled_of
from autostamp.runtime.cuda.specs import (
    ArraySpec,
    File,
    MapSpec,
    Number,
    Spec,
    Values,
    read_arguments,
    read_spec,
)

_BYTES: Final = ("char", "unsigned char")
"""Pointees that take an array of any type: programs use them for untyped memory."""

_AXES: Final = "xyzw"

_MAP: Final = "CUtensorMap"

_UNTYPED: Final = Pointer(None, is_const=False)
"""What stands for the pointer of an array that only maps reach."""


_WHAT: Final = {ArraySpec: "an array", Values: "several values", MapSpec: "a tensor map"}


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array that the kernel gets a pointer to or a tensor map of.

    `data` is its content before the launch, in memory form and C order. `is_const` is False for one that only maps reach.
    """

    name: str
    number: str
    shape: tuple[int, ...]
    data: NDArray[Any]
    is_const: bool


@dataclass(frozen=True, slots=True)
class Value:
    """One parameter's bytes. `pointers` are (offset, number of a buffer) of the addresses to fill in, `maps` the tensor maps."""

    name: str
    data: bytes
    pointers: tuple[tuple[int, int], ...] = ()
    maps: tuple[MapArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """All parameters in order, and the arrays that they point to."""

    values: tuple[Value, ...]
    buffers: tuple[Buffer, ...]

    def packed(self, addresses: Sequence[int]) -> list[bytes]:
        """Each parameter's bytes, with the addresses of the buffers and the maps of them in place.

        Raises AS8010 and AS8011 for a map that cannot be made.
        """
        found = []
        for value in self.values:
            data = bytearray(value.data)
            for offset, buffer in value.pointers:
                data[offset : offset + POINTER_BYTES] = addresses[buffer].to_bytes(POINTER_BYTES, "little")
            for each in value.maps:
                encoded = each.encoded(addresses[each.buffer])
                data[each.offset : each.offset + len(encoded)] = encoded
            found.append(bytes(data))
        return found


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An array that is still to be made, once every integer is known."""

    name: str
    type: Pointer
    spec: ArraySpec
    value: int
    offset: int
    where: Position


@dataclass(frozen=True, slots=True)
class _WantedMap:
    """A map that is still to be made, once every array is known."""

    name: str
    spec: MapSpec
    value: int
    offset: int
    where: Position


def bind(prototype: Prototype, texts: Sequence[str], seed: int = 0) -> Arguments:
    """Arguments from texts such as `N=1024` and `A=f32[N,N]:random`.

    Raises AS8001 for a text that cannot be read, AS8002 for a name that the kernel does not have, AS8003 naming all that is
    missing, AS8004, at the parameter, for what does not fit, and AS8010 for a tensor map that cannot be made.
    """
    return _Binder(prototype, read_arguments(texts), seed).bind()


class _Binder:
    def __init__(self, prototype: Prototype, given: Mapping[str, Spec], seed: int) -> None:
        self._prototype = prototype
        self._given = dict(given)
        self._unused = set(given)
        self._seed = seed
        self._integers: dict[str, int] = {}
        self._missing: list[str] = []
        self._wanted: list[_Wanted] = []
        self._wanted_maps: list[_WantedMap] = []
        self._data: list[bytearray] = []
        self._where = Position("", 0, 0)

    def bind(self) -> Arguments:
        for parameter in self._prototype.parameters:
            self._data.append(bytearray(parameter.type.size))
            self._where = position_of(parameter.place)
            self._fill(parameter.name, parameter.type, 0, _default(parameter))
        arrays = [self._array_of(wanted) for wanted in self._wanted_maps]
        if unknown := self._unknown():
            self._refuse_unknown(min(unknown))
        if self._missing:
            missing = ", ".join(self._missing)
            where = position_of(self._prototype.place)
            raise AutostampError.of("AS8003", where, kernel=self._prototype.name, missing=missing)
        buffers = tuple(self._buffer(wanted) for wanted in self._wanted)
        maps = [
            self._map(wanted, number, buffers[number]) for wanted, number in zip(self._wanted_maps, arrays, strict=True)
        ]
        values = tuple(
            Value(
                parameter.name,
                bytes(data),
                tuple((each.offset, number) for number, each in enumerate(self._wanted) if each.value == at),
                tuple(made for made, each in zip(maps, self._wanted_maps, strict=True) if each.value == at),
            )
            for at, (parameter, data) in enumerate(zip(self._prototype.parameters, self._data, strict=True))
        )
        return Arguments(values, buffers)

    def _unknown(self) -> set[str]:
        """Names that were given and that the kernel does not have. An array may be meant for a map that is missing."""
        if not any(missing.endswith(f"({_MAP})") for missing in self._missing):
            return self._unused
        return {name for name in self._unused if not isinstance(self._given[name], ArraySpec)}

    def _refuse_unknown(self, name: str) -> NoReturn:
        names = [each for parameter in self._prototype.parameters for each in _names(parameter.name, parameter.type)]
        near = difflib.get_close_matches(name, names, 1)
        raise AutostampError.of(
            "AS8002",
            position_of(self._prototype.place),
            kernel=self._prototype.name,
            name=name,
            hint=f", did you mean {near[0]}?" if near else "",
            parameters=", ".join(names) or "none",
        )

    def _fill(self, name: str, kind: CType, offset: int, spec: Spec | None = None) -> None:
        """Put what was given for `name` at an offset of the current parameter; `spec` is what comes from outside it."""
        if name in self._given:
            self._unused.discard(name)
            spec = self._given[name]
        match kind:
            case Scalar():
                self._scalar(name, kind, offset, spec)
            case Pointer():
                self._pointer(name, kind, offset, spec)
            case TensorMap():
                if isinstance(spec, MapSpec):
                    self._wanted_maps.append(_WantedMap(name, spec, len(self._data) - 1, offset, self._where))
                elif spec is None:
                    self._missing.append(f"{name} ({_MAP})")
                else:
                    self._misfit(name, "it is a tensor map", f"Give '{name}=map(f32[1024,1024],box=[64,32])'.")
            case Vector():
                axes = [f".{axis}" for axis in _AXES[: kind.count]]
                self._parts(
                    name,
                    kind,
                    spec,
                    [(axis, kind.element, offset + at * kind.element.size) for at, axis in enumerate(axes)],
                )
            case Array():
                steps = [(f"[{at}]", kind.element, offset + at * kind.element.size) for at in range(kind.count)]
                self._parts(name, kind, spec, steps)
            case Struct():
                fields = [(f".{field.name}", field.type, offset + field.offset) for field in kind.fields]
                self._parts(name, kind, spec, fields)

    def _parts(self, name: str, kind: CType, spec: Spec | None, parts: Sequence[tuple[str, CType, int]]) -> None:
        """The parts of a struct, an array or a vector: by their names, or all of them from values in braces."""
        if isinstance(spec, Values) and len(spec.items) != len(parts):
            self._misfit(
                name, f"{len(spec.items)} values for {spell(kind)}, which has {len(parts)}", "Give all of them."
            )
        if spec is not None and not isinstance(spec, Values):
            first = parts[0][0] if parts else ""
            self._misfit(name, f"it is a {spell(kind)}", f"Give {name}{first}=… for each part, or {name}={{…}}.")
        before = len(self._missing)
        for at, (suffix, part, offset) in enumerate(parts):
            self._fill(f"{name}{suffix}", part, offset, spec.items[at] if isinstance(spec, Values) else None)
        if isinstance(kind, Array | Vector) and len(self._missing) - before == len(parts) > 1:
            self._missing[before:] = [f"{name} ({spell(kind)})"]

    def _scalar(self, name: str, kind: Scalar, offset: int, spec: Spec | None) -> None:
        if spec is None:
            self._missing.append(f"{name} ({spell(kind)})")
            return
        if not isinstance(spec, Number) or spec.value is None:
            what = "null" if isinstance(spec, Number) else _WHAT[type(spec)]
            self._misfit(name, f"{what} for {spell(kind)}", f"Give one number: {name}=1.")
        value = self._value(name, kind, spec.value)
        data = encode(np.asarray(value), kind.number).tobytes()
        self._data[-1][offset : offset + kind.size] = data
        if isinstance(value, int) and kind.number not in (*REAL, "bool"):
            self._integers[name] = value

    def _value(self, name: str, kind: Scalar, value: float | str) -> int | float:
        """The value of a number, checked against the type."""
        if isinstance(value, str):
            values = dict(kind.enumerators)
            short = value.rpartition("::")[2]
            if short not in values:
                known = f"It has: {', '.join(values)}." if values else f"Give a number: {name}=1."
                self._misfit(name, f"{value} is no value of {spell(kind)}", known)
            return values[short]
        if isinstance(value, bool) and kind.number != "bool":
            self._misfit(name, f"true or false for {spell(kind)}", f"Give a number: {name}={int(value)}.")
        if kind.number in REAL:
            if kind.number in SMALL and not math.isfinite(value):
                self._misfit(name, f"{kind.number} has no {value} here", "Give a finite number.")
        elif isinstance(value, float):
            self._misfit(
                name, f"{value} for {spell(kind)}, which holds integers", f"Give an integer: {name}={value:.0f}."
            )
        low, high = limits(kind.number)
        if not low <= value <= high and math.isfinite(value):
            self._misfit(
                name, f"{value} is not in {low} to {high}, what {spell(kind)} holds", "Give a value of the type."
            )
        return int(value) if kind.number == "bool" else value

    def _pointer(self, name: str, kind: Pointer, offset: int, spec: Spec | None) -> None:
        if spec is None:
            self._missing.append(f"{name} ({spell(kind)})")
        elif isinstance(spec, ArraySpec):
            if isinstance(kind.pointee, Pointer):
                self._misfit(name, f"an array of addresses for {spell(kind)}", "Only null can be given for it.")
            self._wanted.append(_Wanted(name, kind, spec, len(self._data) - 1, offset, self._where))
        elif not isinstance(spec, Number) or spec.value is not None:
            example = _example(kind)
            what = "a number" if isinstance(spec, Number) else _WHAT[type(spec)]
            self._misfit(name, f"{what} for {spell(kind)}", f"Give an array, '{name}={example}', or {name}=null.")

    def _array_of(self, wanted: _WantedMap) -> int:
        """The number of the buffer that a map is of, which is made for maps alone where no pointer takes it."""
        name = wanted.spec.array if isinstance(wanted.spec.array, str) else wanted.name
        spec = wanted.spec.array if isinstance(wanted.spec.array, ArraySpec) else self._given.get(name)
        for number, each in enumerate(self._wanted):
            if each.name == name:
                return number
        if not isinstance(spec, ArraySpec):
            arrays = ", ".join(name for name, each in self._given.items() if isinstance(each, ArraySpec)) or "none"
            detail = f"there is no array {name}"
            raise AutostampError.of(
                "AS8004", wanted.spec.options.where(), name=wanted.name, detail=detail, hint=f"There are: {arrays}."
            )
        self._unused.discard(name)
        self._wanted.append(_Wanted(name, _UNTYPED, spec, -1, 0, wanted.spec.options.where()))
        return len(self._wanted) - 1

    def _map(self, wanted: _WantedMap, number: int, buffer: Buffer) -> MapArgument:
        self._where, options = wanted.where, wanted.spec.options
        box, steps = (self._lengths(wanted.name, each) for each in (options.box, options.steps))
        tiled = tiled_of(buffer.number, buffer.shape, box, steps, options)
        argument = MapArgument(wanted.name, wanted.offset, number, tiled, options)
        check(argument, buffer.number)
        return argument

    def _buffer(self, wanted: _Wanted) -> Buffer:
        self._where = wanted.where
        spec, name = wanted.spec, wanted.name
        shape = None if spec.shape is None else self._shape(name, spec.shape)
        found = contents.load(spec.content, name, self._where) if isinstance(spec.content, File) else None
        number = self._number(wanted, contents.number_of(found) if found is not None else "")
        if isinstance(spec.content, File):
            if found is None or (shape is not None and found.shape != shape):
                has = "" if found is None else ",".join(map(str, found.shape))
                self._misfit(name, f"{spec.content.path} has the shape [{has}]", "Give that shape, or none.")
            data = contents.as_number(found, number)
            if data is None:
                self._misfit(
                    name, f"{spec.content.path} holds {found.dtype}, not {number}", "Convert the file's array."
                )
            shape = found.shape
        else:
            if shape is None:
                self._misfit(name, "it has no shape", "Give one in brackets.")
            data = contents.make(spec.content, number, shape, self._seed, name, self._where)
        self._check_size(wanted, number, prod(shape))
        return Buffer(name, number, shape, np.ascontiguousarray(data), wanted.type.is_const)

    def _shape(self, name: str, shape: Sequence[int | str]) -> tuple[int, ...]:
        """The shape of an array, with the names of integer arguments replaced."""
        lengths = self._lengths(name, shape)
        for given, length in zip(shape, lengths, strict=True):
            if length < 1:
                detail = f"its length {given} is {length}"
                self._misfit(name, detail, "Give lengths of 1 and more, or null for no array.")
        return lengths

    def _lengths(self, name: str, given: Sequence[int | str]) -> tuple[int, ...]:
        """Numbers, with the names of integer arguments replaced."""
        lengths = []
        for length in given:
            value = self._integers.get(length) if isinstance(length, str) else length
            if value is None:
                known = ", ".join(self._integers) or "none"
                self._misfit(name, f"its length {length} is no integer argument", f"There are: {known}.")
            lengths.append(value)
        return tuple(lengths)

    def _number(self, wanted: _Wanted, of_file: str) -> str:
        """What the array holds, which must be what the pointer's type says."""
        pointee, asked = wanted.type.pointee, wanted.spec.number or of_file
        kind = spell(wanted.type)
        match pointee:
            case Scalar():
                if pointee.spelling in _BYTES and wanted.spec.number:
                    return wanted.spec.number
                if pointee.spelling in _BYTES and of_file:
                    return of_file
                if wanted.spec.number not in ("", pointee.number):
                    hint = f"Write {pointee.number}[…], or nothing before the brackets."
                    self._misfit(wanted.name, f"{asked} elements for {kind}, which has {pointee.number}", hint)
                return pointee.number
            case Vector():
                number = pointee.element.number
                if asked != number:
                    has = f"{asked} elements" if asked else "no type of elements"
                    hint = f"Count single numbers: write {number}[{pointee.count} times the length]."
                    self._misfit(wanted.name, f"{has} for {kind}, which has {number}", hint)
                return number
            case Struct():
                if asked != "u8":
                    hint = f"Give its bytes: u8[{pointee.size} times the length]."
                    self._misfit(wanted.name, f"{asked or 'no type of'} elements for {kind}", hint)
            case _:
                if not asked:
                    for_what = f" for {kind}" if wanted.type is not _UNTYPED else ""
                    self._misfit(
                        wanted.name, f"no type of elements{for_what}", "Write one before the brackets: f32[…]."
                    )
        return asked

    def _check_size(self, wanted: _Wanted, number: str, count: int) -> None:
        """An array of vectors or structs must hold a whole number of them."""
        pointee = wanted.type.pointee
        size = count * np.dtype(STORAGE[number]).itemsize
        if isinstance(pointee, Vector | Struct) and size % pointee.size:
            detail = f"{size} bytes are no whole number of {spell(pointee)}, {pointee.size} bytes each"
            self._misfit(wanted.name, detail, "Choose another length.")

    def _misfit(self, name: str, detail: str, hint: str) -> NoReturn:
        raise AutostampError.of("AS8004", self._where, name=name, detail=detail, hint=hint)


def position_of(place: Place) -> Position:
    """A place as findings show it."""
    return Position(place.path, place.line, place.column, place.source, place.width)


def _default(parameter: Parameter) -> Spec | None:
    """The default argument, where it is a number, true, false or a null pointer."""
    if not parameter.default or not isinstance(parameter.type, Scalar | Pointer):
        return None
    try:
        found = read_spec(parameter.default, parameter.default)
    except AutostampError:
        return None
    is_null = isinstance(parameter.type, Pointer) and found == Number(0)
    return Number(None) if is_null else found if isinstance(found, Number) else None


def _names(name: str, kind: CType) -> Iterator[str]:
    """Names that can be given for a parameter."""
    if isinstance(kind, Struct):
        for field in kind.fields:
            yield from _names(f"{name}.{field.name}", field.type)
    else:
        yield name


def _example(kind: Pointer) -> str:
    number = kind.pointee.number if isinstance(kind.pointee, Scalar) else "f32"
    return f"{number}[1024]:random"
