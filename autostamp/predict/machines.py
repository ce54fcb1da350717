# SPDX-License-Identifier: Apache-2.0
"""Machine tables: read from the package, and from a user's file that overrides or adds constants.

A file has `product`, `title`, `arch`, a table `constants` with `value`, `unit`, `condition`, `source` and `kind` for each, and
perhaps a table `sources` of texts that a `source` may name by their key.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from autostamp.diagnostics import AutostampError
from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.predict.constants import MEANINGS, UNITS

_KEYS: Final = ("product", "title", "arch", "sources", "constants")
_FIELDS: Final = ("value", "unit", "condition", "source", "kind")


def products() -> tuple[str, ...]:
    """Names of the machines that the package knows."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir()))


def load_machine(name: str, file: Path | None = None) -> MachineTable:
    """The table of product `name`, with the constants of `file` over it, where one is given.

    A `file` whose own product is `name` may stand alone. Raises AS7101 for an unknown product, or a file of another product,
    and what `read_machine` raises.
    """
    packaged = _packaged(name) if name in products() else None
    if file is None:
        if packaged is None:
            raise _unknown(name)
        return packaged
    own = read_machine(file)
    if own.product != name:
        raise AutostampError.of("AS7101", name=name, hint=f"{file} is of {own.product}.")
    return own if packaged is None else _over(packaged, own)


def read_machine(file: Path) -> MachineTable:
    """The table in `file`, checked. A packaged product needs no `title` and `arch` there.

    Raises AS7102 for what is no machine file, AS7104 for a wrong unit, AS7105 for a value that is not above zero.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS7102", path=file, detail=error) from error
    content = _content(text, str(file))
    product = content.get("product")
    return _machine(content, str(file), _packaged(product) if product in products() else None)


def constant(table: MachineTable, name: str) -> Constant:
    """The constant `name`; raises AS7103, which says what to add, when this machine's is unknown."""
    found = table.constants.get(name)
    if found is None:
        meaning = MEANINGS.get(name)
        what, unit = (meaning.what, meaning.unit) if meaning else ("no constant that the model knows", "?")
        raise AutostampError.of("AS7103", machine=table.product, name=name, what=what, unit=unit)
    return found


def unread(table: MachineTable) -> dict[str, str]:
    """Constants that the model reads by no such name, each with the nearest name that it knows ("": none is near)."""
    strange = [name for name in table.constants if name not in MEANINGS]
    return {name: next(iter(difflib.get_close_matches(name, MEANINGS, 1, cutoff=0.75)), "") for name in strange}


def _folder() -> Any:  # noqa: ANN401  # importlib.resources' Traversable moved between Python versions
    return resources.files("autostamp.predict").joinpath("machines")


@cache
def _packaged(name: str) -> MachineTable:
    file = _folder().joinpath(f"{name}.toml")
    return _machine(_content(file.read_text(encoding="utf-8"), file.name), file.name)


def _content(text: str, path: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AutostampError.of("AS7102", path=path, detail=f"not TOML: {error}") from error
    for key in content:
        if key not in _KEYS:
            raise AutostampError.of("AS7102", path=path, detail=f"unknown key {key}{_near(key, _KEYS)}")
    return content


def _machine(content: Mapping[str, Any], path: str, known: MachineTable | None = None) -> MachineTable:
    """The table that a file holds; what it does not say of itself is that of the packaged table `known`."""
    sources = _table(content, "sources", path)
    constants = {name: _constant(name, row, sources, path) for name, row in _table(content, "constants", path).items()}
    return MachineTable(
        _text(content, "product", path, ""),
        _text(content, "title", path, "", known.title if known else None),
        _text(content, "arch", path, "", known.arch if known else None),
        MappingProxyType(constants),
    )


def _over(base: MachineTable, own: MachineTable) -> MachineTable:
    return MachineTable(base.product, own.title, own.arch, MappingProxyType({**base.constants, **own.constants}))


def _unknown(name: str) -> AutostampError:
    known = products()
    near = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    return AutostampError.of("AS7101", name=name, hint=hint)


def _near(word: str, words: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, words, 1)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(words)}"


def _table(content: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise AutostampError.of("AS7102", path=path, detail=f"{key} must be a table")
    return found


def _text(content: Mapping[str, Any], key: str, path: str, where: str, default: str | None = None) -> str:
    found = content.get(key, default)
    if not isinstance(found, str) or not found.strip():
        place = f"{where}: " if where else ""
        raise AutostampError.of("AS7102", path=path, detail=f"{place}{key} must be a text that is not empty")
    return found


def _constant(name: str, row: object, sources: Mapping[str, Any], path: str) -> Constant:
    if not isinstance(row, dict):
        raise AutostampError.of("AS7102", path=path, detail=f"constants.{name} must be a table")
    where = f"constants.{name}"
    for key in row:
        if key not in _FIELDS:
            raise AutostampError.of("AS7102", path=path, detail=f"{where}: unknown key {key}{_near(key, _FIELDS)}")
    unit = _text(row, "unit", path, where)
    meaning = MEANINGS.get(name)
    if meaning is not None and unit != meaning.unit:
        raise AutostampError.of("AS7104", path=path, name=name, unit=unit, expected=meaning.unit)
    if unit not in UNITS:
        raise AutostampError.of("AS7104", path=path, name=name, unit=unit, expected=f"one of {', '.join(UNITS)}")
    kinds = ", ".join(ConstantKind)
    kind = _text(row, "kind", path, where)
    if kind not in tuple(ConstantKind):
        raise AutostampError.of("AS7102", path=path, detail=f"{where}: kind {kind} is none of {kinds}")
    source = _text(row, "source", path, where)
    condition = row.get("condition", "")
    if not isinstance(condition, str):
        raise AutostampError.of("AS7102", path=path, detail=f"{where}: condition must be a text")
    source = _text(sources, source, path, "sources") if source in sources else source
    return Constant(_value(name, row.get("value"), path), unit, condition, source, ConstantKind(kind))


def _value(name: str, value: object, path: str) -> float:
    # A truth value is an int to Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AutostampError.of("AS7105", path=path, name=name, value=value)
    if not math.isfinite(value) or value <= 0:
        raise AutostampError.of("AS7105", path=path, name=name, value=value)
    return float(value)
