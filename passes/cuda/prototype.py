# SPDX-License-Identifier: Apache-2.0
"""A CUDA C++ text to the prototype of one of its kernels."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from autostamp.diagnostics import AutostampError, Position
from autostamp.model.prototype import Parameter, Place, Prototype
from autostamp.passes.cuda.declarations import Declaration, Lines, Sort, SourceText, declarations, split
from autostamp.passes.cuda.directives import Include, plain
from autostamp.passes.cuda.members import UnclearError
from autostamp.passes.cuda.type_names import TypeNames

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_SHOWN: Final = 8


def includes(text: str, defines: Mapping[str, str]) -> tuple[Include, ...]:
    """What a text includes, without branches known to be dead."""
    return tuple(plain(text, defines).includes)


TENSOR_MAP_ALIGNMENT: Final = 128
"""alignof(CUtensorMap) of the newest cuda.h."""


def parse_prototype(
    sources: Sequence[SourceText],
    kernel: str,
    defines: Mapping[str, str],
    tensor_map_alignment: int = TENSOR_MAP_ALIGNMENT,
) -> Prototype:
    """The prototype of `kernel` (`name`, `ns::name`, `name<float, 4>`) in the last of `sources`.

    The sources before it are headers, in the order of their inclusion, whose declarations count, too. `defines` are the macros
    of the command line, `tensor_map_alignment` is alignof(CUtensorMap) in the toolkit's cuda.h. Raises AS1020 when there is no
    such kernel, AS1021 when there are several, AS1023 for a template without arguments, and AS1022 and AS1024 to AS1027 for a
    parameter whose type cannot be read, laid out or given.
    """
    macros: dict[str, str | None] = {}
    found: list[Declaration] = []
    for source in sources:
        code = plain(source.text, defines, macros)
        macros = code.macros
        found += declarations(source, code)
    kernels = [item for item in found if item.sort is Sort.KERNEL]
    wanted, written = _split_name(kernel)
    chosen = _choose(kernels, wanted, sources[-1].path)
    place = _place(chosen, chosen.start - 1 - _back_to_name(chosen), len(chosen.name))
    name, substitutes = _instance(chosen, written, place)
    types = TypeNames(found, macros, tensor_map_alignment)
    return Prototype(name, chosen.scope, _parameters(chosen, types, substitutes), place, chosen.is_c)


def _split_name(kernel: str) -> tuple[str, str | None]:
    """(name without template arguments, those arguments or None)."""
    name, opened, rest = kernel.partition("<")
    return re.sub(r"\s+", "", name).removeprefix("::"), rest.rpartition(">")[0].strip() if opened else None


def _choose(kernels: Sequence[Declaration], wanted: str, path: str) -> Declaration:
    """The kernel of that name, its definition rather than another declaration."""
    named = [item for item in kernels if f"::{item.path}".endswith(f"::{wanted}")]
    exact = [item for item in named if item.path == wanted]
    named = exact or named
    if not named:
        names = list(dict.fromkeys(item.path for item in kernels))
        near = difflib.get_close_matches(wanted, names, 1, 0.5)
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        listed = f"it has {shown}" if names else "it has no kernel at all"
        raise AutostampError.of(
            "AS1020", kernel=wanted, path=path, detail=f"{listed}; did you mean {near[0]}?" if near else listed
        )
    named = [item for item in named if item.is_definition] or named
    ways = {(item.path, _without_names(item.text)): item for item in named}
    if len(ways) > 1:
        places = " and ".join(f"{item.path} ({item.source.path}:{item.line})" for item in ways.values())
        raise AutostampError.of("AS1021", name=wanted, places=places)
    return named[0]


def _without_names(parameters: str) -> str:
    """Parameters in a form in which a declaration equals its definition: without defaults and without their last words."""
    parts = [part.partition("=")[0] for _, part in split(parameters)]
    kept = [re.sub(r"__restrict(?:__)?|__grid_constant__", " ", part) for part in parts]
    return ",".join(re.sub(r"\s+", "", re.sub(r"(?<=[\s*&])\w+\s*(?=\Z|\[)", "", part.strip())) for part in kept)


def _back_to_name(kernel: Declaration) -> int:
    """How far the kernel's name begins before the parenthesis of its parameters."""
    before = kernel.source.text[: kernel.start - 1]
    return len(before) - before.rindex(kernel.name)


def _place(item: Declaration, offset: int, width: int) -> Place:
    line, column, source = Lines(item.source.text).at(offset)
    return Place(item.source.path, line, column, source, width)


def position_of(place: Place) -> Position:
    """A place as findings show it."""
    return Position(place.path, place.line, place.column, place.source, place.width)


def _instance(kernel: Declaration, written: str | None, place: Place) -> tuple[str, dict[str, str]]:
    """(name with its template arguments, what each template parameter stands for)."""
    if kernel.template is None:
        if written is not None:
            raise AutostampError.of("AS1023", position_of(place), kernel=kernel.path, detail="it is no template")
        return kernel.path, {}
    parameters = [part.strip() for _, part in split(kernel.template)]
    shown = ", ".join(" ".join(part.split()) for part in parameters)
    given = [] if written is None else [part.strip() for _, part in split(written) if part.strip()]
    if written is None or len(given) > len(parameters) or "..." in kernel.template:
        detail = f"it is a template <{shown}>"
        raise AutostampError.of("AS1023", position_of(place), kernel=kernel.path, detail=detail)
    substitutes: dict[str, str] = {}
    for number, parameter in enumerate(parameters):
        declared, _, default = parameter.partition("=")
        value = given[number] if number < len(given) else _substitute(default.strip(), substitutes)
        names = _WORD.findall(declared)
        if not value or not names:
            detail = f"it is a template <{shown}> and {parameter or 'a parameter'} has no value"
            raise AutostampError.of("AS1023", position_of(place), kernel=kernel.path, detail=detail)
        substitutes[names[-1]] = value
    return f"{kernel.path}<{', '.join(substitutes.values())}>", substitutes


def _substitute(text: str, substitutes: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: substitutes.get(match[0], match[0]), text)


def _parameters(kernel: Declaration, types: TypeNames, substitutes: Mapping[str, str]) -> tuple[Parameter, ...]:
    if kernel.text.strip() in ("", "void"):
        return ()
    return tuple(
        _parameter(kernel, types, substitutes, number, offset, text)
        for number, (offset, text) in enumerate(split(kernel.text), 1)
    )


def _parameter(
    kernel: Declaration, types: TypeNames, substitutes: Mapping[str, str], number: int, offset: int, text: str
) -> Parameter:
    declared, _, default = text.partition("=")
    begin = kernel.start + offset + len(text) - len(text.lstrip())
    whole = _place(kernel, begin, len(declared.strip()))
    try:
        name, kind = types.parameter(_substitute(declared, substitutes), kernel.scope)
        value = _default(_substitute(default.strip(), substitutes), types, kernel)
    except UnclearError as error:
        raise AutostampError.of(error.code, position_of(whole), **error.details) from error
    if not name:
        return Parameter(f"arg{number}", kind, whole, value)
    at = [match.start() for match in re.finditer(rf"\b{name}\b", declared)]
    place = _place(kernel, kernel.start + offset + at[-1], len(name)) if at else whole
    return Parameter(name, kind, place, value)


def _default(text: str, types: TypeNames, kernel: Declaration) -> str:
    """A default argument: a named constant by its value, anything else as written."""
    if not _WORD.match(text) or text in ("true", "false", "nullptr", "NULL"):
        return text
    try:
        return str(types.constant(text, kernel.scope))
    except UnclearError:
        return text
