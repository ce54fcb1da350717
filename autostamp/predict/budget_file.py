# SPDX-License-Identifier: Apache-2.0
"""The user's budget file: TOML, read strictly. docs/predict.md says what each key means."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Dependency, Origin, Resource, Step
from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.predict.constants import MEANINGS
from autostamp.predict.given import Given, GivenRing, GivenRole, GivenRow
from autostamp.predict.machines import constant
from autostamp.predict.quantities import Place, amount
from autostamp.predict.work import WORK_UNITS, row

_TOP: Final = (
    "machine",
    "iteration",
    "active_sms",
    "smem_write_share",
    "roles",
    "rows",
    "rings",
    "dependencies",
    "chains",
    "overrides",
)
_ROLE: Final = ("warps", "trips", "loop", "tma_bytes", "l2_bytes", "hbm_bytes", "leave_out")
_ROW: Final = ("role", "resource", "what", "work", "constant", "source", "is_write", "replaces")
_RING: Final = ("stages", "producer", "consumer", "fill", "consume", "hand_off", "leave_out")
_DEPENDENCY: Final = ("start", "end", "distance", "steps")
_STEP: Final = ("what", "cycles", "work", "constant", "source")
_OVERRIDE: Final = ("value", "unit", "source", "condition")

RESOURCES: Final[Mapping[str, Resource]] = MappingProxyType({each.name.lower(): each for each in Resource})
"""What a file calls a resource: tensor, smem, mufu, tma_bytes, …"""


@dataclass(frozen=True, slots=True)
class BudgetText:
    """A budget file's content, not yet applied to a machine. `machine` is "" where it names none."""

    path: str
    content: Mapping[str, Any]
    machine: str


def read_budget(file: Path) -> BudgetText:
    """Read a file. Raises AS7120 for what is no budget file."""
    try:
        return parse_budget(file.read_bytes(), str(file))
    except OSError as error:
        raise AutostampError.of("AS7120", path=file, detail=error.strerror or str(error)) from error


def parse_budget(data: bytes, path: str) -> BudgetText:
    """As `read_budget`, of a file's bytes."""
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AutostampError.of("AS7120", path=path, detail=f"not TOML: {error}") from error
    reader = _Reader(path)
    reader.known(content, _TOP, "")
    return BudgetText(path, content, reader.text(content, "machine", "", ""))


def overridden(text: BudgetText, table: MachineTable) -> MachineTable:
    """The machine with the file's `overrides` over its constants. Raises AS7120, and AS7121 for a wrong unit."""
    reader = _Reader(text.path)
    rows = reader.table(text.content, "overrides")
    own = {name: _override(reader, name, entry) for name, entry in rows.items()}
    return MachineTable(table.product, table.title, table.arch, MappingProxyType({**table.constants, **own}))


def given(text: BudgetText, table: MachineTable) -> Given:
    """What the file says, amounts in the model's units by the constants of `table`.

    Raises AS7120 for a wrong key or form, AS7121 for a unit, AS7103 for a constant that the machine lacks, AS7106 for work that
    is not above zero.
    """
    reader, content = _Reader(text.path), text.content
    share = content.get("smem_write_share", -1.0)
    if "smem_write_share" in content and (not _is_number(share) or not 0 <= share <= 1):
        raise reader.wrong("smem_write_share", f"{share} is no share from 0 to 1")
    return Given(
        path=text.path,
        iteration=reader.text(content, "iteration", "", ""),
        active_sms=reader.count(content, "active_sms", ""),
        smem_write_share=float(share),
        roles={name: _role(reader, table, name, each) for name, each in reader.table(content, "roles").items()},
        rows=tuple(
            _row(reader, table, f"rows[{index}]", each) for index, each in enumerate(reader.list(content, "rows"))
        ),
        rings={name: _ring(reader, table, name, each) for name, each in reader.table(content, "rings").items()},
        dependencies=tuple(
            _dependency(reader, table, f"dependencies[{index}]", each)
            for index, each in enumerate(reader.list(content, "dependencies"))
        ),
        has_chains=reader.flag(content, "chains", "", default=True),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks of one file: every refusal names the file and the key."""

    path: str

    def wrong(self, key: str, detail: str) -> AutostampError:
        return AutostampError.of("AS7120", path=self.path, detail=f"{key}: {detail}" if key else detail)

    def known(self, entry: object, keys: Iterable[str], at: str) -> Mapping[str, Any]:
        """The table, if it has no key but these."""
        if not isinstance(entry, dict):
            raise self.wrong(at, "must be a table")
        for key in entry:
            if key not in keys:
                near = difflib.get_close_matches(key, tuple(keys), 1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(keys)}"
                raise self.wrong(at, f"unknown key {key}; {hint}")
        return entry

    def table(self, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = content.get(key, {})
        if not isinstance(found, dict):
            raise self.wrong(key, "must be a table")
        return found

    def list(self, content: Mapping[str, Any], key: str, at: str = "") -> list[Any]:
        found = content.get(key, [])
        if not isinstance(found, list):
            raise self.wrong(_join(at, key), "must be a list")
        return found

    def text(self, content: Mapping[str, Any], key: str, at: str, default: str | None = None) -> str:
        found = content.get(key, default)
        if not isinstance(found, str) or (not found.strip() and found != default):
            raise self.wrong(_join(at, key), "must be a text that is not empty")
        return found

    def count(self, content: Mapping[str, Any], key: str, at: str, default: int = 0) -> int:
        """A whole number above zero, `default` where the key is absent."""
        if key not in content:
            return default
        found = content[key]
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(_join(at, key), f"{found} is no whole number")
        if found < 1:
            raise AutostampError.of("AS7106", what=f"{self.path}, {_join(at, key)}", detail=f"it is {found}")
        return found

    def flag(self, content: Mapping[str, Any], key: str, at: str, *, default: bool = False) -> bool:
        found = content.get(key, default)
        if not isinstance(found, bool):
            raise self.wrong(_join(at, key), "must be true or false")
        return found

    def amount(self, content: Mapping[str, Any], key: str, unit: str, at: str, table: MachineTable) -> float:
        """An amount above zero, 0 where the key is absent."""
        return amount(content[key], unit, Place(self.path, _join(at, key)), table) if key in content else 0.0


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _override(reader: _Reader, name: str, entry: object) -> Constant:
    at = f"overrides.{name}"
    found = reader.known(entry, _OVERRIDE, at)
    meaning = MEANINGS.get(name)
    if meaning is None:
        near = difflib.get_close_matches(name, MEANINGS, 1)
        raise reader.wrong(at, f"no constant of this name{f'; did you mean {near[0]}?' if near else ''}")
    unit = reader.text(found, "unit", at)
    if unit != meaning.unit:
        raise AutostampError.of("AS7121", path=reader.path, key=f"{at}.unit", value=unit, expected=meaning.unit)
    value = found.get("value")
    if not _is_number(value) or not 0 < float(str(value)) < float("inf"):
        raise AutostampError.of("AS7106", what=f"{reader.path}, {at}", detail=f"value {value} must be above zero")
    source = reader.text(found, "source", at, reader.path)
    condition = reader.text(found, "condition", at, "")
    return Constant(float(str(value)), unit, condition, source, ConstantKind.DERIVED)


def _role(reader: _Reader, table: MachineTable, name: str, entry: object) -> GivenRole:
    at = f"roles.{name}"
    found = reader.known(entry, _ROLE, at)
    trips = found.get("trips", 0.0)
    if "trips" in found and (not _is_number(trips) or not 0 < trips < float("inf")):
        raise AutostampError.of("AS7106", what=f"{reader.path}, {at}.trips", detail=f"{trips} must be above zero")
    loop = found.get("loop", -1)
    if isinstance(loop, bool) or not isinstance(loop, int):
        raise reader.wrong(f"{at}.loop", f"{loop} is no byte address (0x05a0, without quotes)")
    tma, l2, hbm = (reader.amount(found, key, "B", at, table) for key in ("tma_bytes", "l2_bytes", "hbm_bytes"))
    return GivenRole(
        reader.count(found, "warps", at), float(trips), loop, tma, l2, hbm, reader.flag(found, "leave_out", at)
    )


def _row(reader: _Reader, table: MachineTable, at: str, entry: object) -> GivenRow:
    found = reader.known(entry, _ROW, at)
    named = reader.text(found, "resource", at)
    if named not in RESOURCES:
        raise reader.wrong(f"{at}.resource", f"{named} is none of {', '.join(RESOURCES)}")
    name = reader.text(found, "constant", at)
    unit = WORK_UNITS.get(constant(table, name).unit)
    if unit is None:
        raise reader.wrong(f"{at}.constant", f"{name} is neither a rate nor a duration")
    made = row(
        table,
        reader.text(found, "role", at),
        RESOURCES[named],
        reader.text(found, "what", at, named),
        _work(reader, table, at, found.get("work"), unit),
        name,
        origin=Origin.GIVEN,
        source=reader.text(found, "source", at, reader.path),
        is_write=reader.flag(found, "is_write", at),
    )
    return GivenRow(made, reader.flag(found, "replaces", at))


def _work(reader: _Reader, table: MachineTable, at: str, work: object, unit: str) -> float:
    """Work in `unit`; where the constant is a duration (`unit` is empty), how often it is spent: a plain number."""
    if unit:
        return amount(work, unit, Place(reader.path, f"{at}.work"), table)
    if not isinstance(work, int | float) or isinstance(work, bool):
        raise reader.wrong(f"{at}.work", f"{work} is no number: the constant is a duration, and work says how often")
    return float(work)


def _ring(reader: _Reader, table: MachineTable, name: str, entry: object) -> GivenRing:
    at = f"rings.{name}"
    found = reader.known(entry, _RING, at)
    return GivenRing(
        reader.count(found, "stages", at),
        reader.text(found, "producer", at, ""),
        reader.text(found, "consumer", at, ""),
        _ring_steps(reader, table, found, "fill", at),
        _ring_steps(reader, table, found, "consume", at),
        _ring_steps(reader, table, found, "hand_off", at),
        reader.flag(found, "leave_out", at),
    )


def _ring_steps(
    reader: _Reader, table: MachineTable, found: Mapping[str, Any], key: str, at: str
) -> tuple[Step, ...] | None:
    """A duration, a list of steps, or None where the key is absent."""
    value = found.get(key)
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_step(reader, table, f"{at}.{key}[{index}]", each) for index, each in enumerate(value))
    cycles = amount(value, "cycles", Place(reader.path, f"{at}.{key}"), table, may_be_zero=True)
    return (Step(key.replace("_", "-"), cycles, origin=Origin.GIVEN, source=reader.path),)


def _dependency(reader: _Reader, table: MachineTable, at: str, entry: object) -> Dependency:
    found = reader.known(entry, _DEPENDENCY, at)
    distance = found.get("distance", 0)
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 0:
        raise reader.wrong(f"{at}.distance", f"{distance} is no number of iterations")
    steps = reader.list(found, "steps", at)
    return Dependency(
        reader.text(found, "start", at),
        reader.text(found, "end", at),
        tuple(_step(reader, table, f"{at}.steps[{index}]", each) for index, each in enumerate(steps)),
        distance,
    )


def _step(reader: _Reader, table: MachineTable, at: str, entry: object) -> Step:
    """`cycles`, or `work` over the rate `constant`, or the latency `constant` alone."""
    found = reader.known(entry, _STEP, at)
    what = reader.text(found, "what", at)
    source = reader.text(found, "source", at, reader.path)
    if "cycles" in found:
        if "work" in found or "constant" in found:
            raise reader.wrong(at, "give cycles, or a constant, not both")
        cycles = amount(found["cycles"], "cycles", Place(reader.path, f"{at}.cycles"), table, may_be_zero=True)
        return Step(what, cycles, origin=Origin.GIVEN, source=source)
    name = reader.text(found, "constant", at)
    rate = constant(table, name)
    if "work" not in found:
        if rate.unit != "cycles":
            raise AutostampError.of(
                "AS7121", path=reader.path, key=f"{at}.constant", value=f"{name} ({rate.unit})", expected="cycles"
            )
        return Step(what, rate.value, name, True, Origin.MACHINE, rate.source)
    unit = WORK_UNITS.get(rate.unit)
    if not unit:
        raise AutostampError.of(
            "AS7121", path=reader.path, key=f"{at}.constant", value=f"{name} ({rate.unit})", expected="a rate"
        )
    return Step(what, reader.amount(found, "work", unit, at, table) / rate.value, name, False, Origin.GIVEN, source)
