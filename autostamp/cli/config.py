# SPDX-License-Identifier: Apache-2.0
"""`[tool.autostamp]` of the user's pyproject.toml: which sites to stamp, and catalogue rows for wrappers of their own."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from autostamp.diagnostics import AutostampError
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.selection import check

_KEYS = ("only", "skip", "ops")
_OP_KEYS = ("owner", "method", "kind", "side", "stage", "group")


def load(
    folder: Path, only: tuple[str, ...] = (), skip: tuple[str, ...] = (), placed: Selection | None = None
) -> InstrumentOptions:
    """Options from the nearest pyproject.toml with a table at or above `folder`; those of the command line win.

    `placed` is one set of a placement, which then is the whole selection.

    Raises AS9003 for an unknown key and AS9001 for a value of the wrong kind or a term that selects by no known field.
    """
    table = _table(folder)
    _require_known(table, _KEYS)
    selection = placed or Selection(only or _texts(table, "only"), skip or _texts(table, "skip"))
    check(selection)
    rows = table.get("ops", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AutostampError.of("AS9001", detail="[tool.autostamp] ops must be an array of tables")
    return InstrumentOptions(selection, tuple(_op(row) for row in rows))


def _table(folder: Path) -> dict[str, Any]:
    for parent in (folder.resolve(), *folder.resolve().parents):
        file = parent / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise AutostampError.of("AS9001", detail=f"{file} is not TOML: {error}") from error
        tools = found.get("tool", {})
        table = tools.get("autostamp") if isinstance(tools, dict) else tools
        if table is None:
            continue
        if not isinstance(table, dict):
            raise AutostampError.of("AS9001", detail=f"{file}: [tool.autostamp] must be a table")
        return table
    return {}


def _require_known(table: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(keys)}."
            raise AutostampError.of("AS9003", key=key, hint=hint)


def _texts(table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise AutostampError.of("AS9001", detail=f"[tool.autostamp] {key} must be an array of strings")
    return tuple(value)


def _op(row: dict[str, Any]) -> SyncOp:
    _require_known(row, _OP_KEYS)
    if not str(row.get("method", "")).isidentifier():
        raise AutostampError.of("AS9001", detail="[tool.autostamp] ops: every entry needs the name of a method")
    try:
        return SyncOp(
            owner=str(row.get("owner", "")),
            method=str(row["method"]),
            kind=Kind(row["kind"]),
            side=Side(row.get("side", Side.MBARRIER)),
            stage_from=StageFrom(row.get("stage", StageFrom.NONE)),
            group=str(row.get("group", "")),
        )
    except (KeyError, ValueError) as error:
        raise AutostampError.of("AS9001", detail=f"[tool.autostamp] ops: {error}") from error
