# SPDX-License-Identifier: Apache-2.0
"""Lines for the end of a unit that let the compiler confirm what was read of a kernel's signature.

They make no code: `static_assert` holds the kernel's type against the one that was read, and the size and offsets of every
struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autostamp.model.prototype import Array, CType, Pointer, Prototype, Struct, spell

FILE: Final = "autostamp-checks"
"""What the compiler calls the lines in its messages."""

MARK: Final = "autostamp: "
"""Begins the message of every assertion, which goes on with what does not agree."""

_SAME: Final = """\
template <class A, class B> struct autostamp_same { static constexpr bool value = false; };
template <class A> struct autostamp_same<A, A> { static constexpr bool value = true; };
"""


def checks(prototype: Prototype) -> str:
    """The lines, which stand at the end of a unit at namespace scope (C++11 or later)."""
    kernel = f"::{prototype.name}"
    parameters = ", ".join(spell(parameter.type) for parameter in prototype.parameters)
    lines = [f'\n#line 1 "{FILE}"\n{_SAME}']
    structs = {struct.spelling: struct for parameter in prototype.parameters for struct in _structs(parameter.type)}
    lines += [
        f"static_assert(sizeof(::{name}) == {struct.size} && alignof(::{name}) == {struct.alignment}"
        f'{"".join(_offsets(name, struct))}, "{MARK}the layout of {name}");\n'
        for name, struct in structs.items()
        if name
    ]
    lines.append(
        f"static_assert(autostamp_same<decltype(&{kernel}), void (*)({parameters})>::value,"
        f' "{MARK}its parameters are not ({parameters})");\n'
    )
    return "".join(lines)


def instance(prototype: Prototype) -> str:
    """The line that makes the compiler create an instance of a template, by referring to it; empty for other kernels."""
    if not prototype.is_template:
        return ""
    return f'\n#line 1 "{FILE}"\n[[maybe_unused]] static auto* const autostamp_instance = &::{prototype.name};\n'


def _structs(kind: CType | None) -> Iterator[Struct]:
    """Structs of a type, those inside first."""
    match kind:
        case Struct():
            for field in kind.fields:
                yield from _structs(field.type)
            yield kind
        case Array():
            yield from _structs(kind.element)
        case Pointer():
            yield from _structs(kind.pointee)
        case _:
            pass


def _offsets(name: str, struct: Struct) -> Iterator[str]:
    for field in struct.fields:
        yield f" && __builtin_offsetof(::{name}, {field.name}) == {field.offset}"
