# SPDX-License-Identifier: Apache-2.0
"""What probes found: medians over repeats, and the machine file that holds them."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.model.run import MachineFacts
from autostamp.runtime.probes.probe import Derived, Pair, Probe
from autostamp.runtime.probes.session import DeviceFacts

SOURCE: Final = "autostamp probe"

_PRODUCTS: Final = (
    (r"H200\b", "h200"),
    (r"H100 80GB HBM3", "h100_sxm"),
    (r"H100 PCIe", "h100_pcie"),
    (r"B300\b", "b300"),
    (r"B200\b", "b200"),
    (r"A100\b", "a100"),
    (r"L40S\b", "l40s"),
    (r"RTX 5090\b", "rtx_5090"),
    (r"RTX PRO 6000\b", "rtx_pro_6000"),
)
"""What the driver calls a device, and what machine tables do."""


@dataclass(frozen=True, slots=True)
class Result:
    """One constant with its spread: the median of `repeats` values, the smallest and the largest of them.

    A derived one is of medians, and its smallest and largest are that value. `probe`: the probe's name, "" for a derived one.
    """

    name: str
    constant: Constant
    least: float
    most: float
    repeats: int
    probe: str

    @property
    def is_usable(self) -> bool:
        """True for what a machine file may hold: a number above zero."""
        return math.isfinite(self.constant.value) and self.constant.value > 0


def product_of(device: str) -> str:
    """The product's name in machine tables; of one that they do not know, the driver's name in lower case, `_` between words."""
    for pattern, product in _PRODUCTS:
        if re.search(pattern, device):
            return product
    return re.sub(r"[^a-z0-9]+", "_", device.lower().removeprefix("nvidia ")).strip("_")


def read(probe: Probe, pairs: Sequence[Pair]) -> Iterator[Result]:
    """The constants of one probe. Raises ValueError where the records do not hold them."""
    for row in probe.yields:
        values = [row.reading(pair) for pair in pairs]
        constant = Constant(statistics.median(values), row.unit, row.condition, SOURCE, ConstantKind.MEASURED)
        yield Result(row.name, constant, min(values), max(values), len(values), probe.name)


def of_driver(facts: DeviceFacts) -> Iterator[Result]:
    """What the driver says of the device, as constants."""
    rows = (
        ("sms", facts.sms, "SMs"),
        ("l2_bytes", facts.l2_bytes, "bytes"),
        ("smem_bytes_per_cta", facts.shared_bytes, "bytes"),
    )
    for name, value, unit in rows:
        constant = Constant(value, unit, "as the driver says", SOURCE, ConstantKind.MEASURED)
        yield Result(name, constant, value, value, 1, "")


def derive(rows: Iterable[Derived], results: Sequence[Result]) -> Iterator[Result]:
    """The derived constants of which everything is there."""
    values = {each.name: each.constant.value for each in results if each.is_usable}
    for row in rows:
        if all(name in values for name in row.needs):
            value = row.compute(*(values[name] for name in row.needs))
            constant = Constant(value, row.unit, row.condition, SOURCE, ConstantKind.DERIVED)
            yield Result(row.name, constant, value, value, 1, "")


def machine_table(results: Sequence[Result], device: str, arch: str) -> MachineTable:
    """The usable constants as a machine table, the spread in each condition."""
    constants = {each.name: _with_spread(each) for each in results if each.is_usable}
    return MachineTable(product_of(device), device, arch, constants)


def _with_spread(result: Result) -> Constant:
    constant = result.constant
    if result.repeats < 2:
        return constant
    spread = f"{result.repeats} repeats: {shown(result.least)} to {shown(result.most)}"
    return Constant(constant.value, constant.unit, f"{constant.condition}; {spread}", constant.source, constant.kind)


def shown(value: float) -> str:
    """A figure with five digits; whole numbers whole."""
    return f"{value:.0f}" if value == int(value) else f"{value:.5g}"


def machine_file(table: MachineTable, facts: MachineFacts) -> str:
    """The text of a machine file (TOML). The machine and the time stand in the text of the source."""
    said = {
        "driver": facts.driver, "CUDA": facts.cuda_runtime, "autostamp": facts.versions.get("autostamp", ""),
        "recorded": facts.recorded_at,
    }  # fmt: skip
    machine = ", ".join((facts.gpu or table.title, *(f"{key} {value}" for key, value in said.items() if value)))
    lines = [
        f"product = {_quoted(table.product)}",
        f"title = {_quoted(table.title)}",
        f"arch = {_quoted(table.arch)}",
        "",
        "[sources]",
        f"{_quoted(SOURCE)} = {_quoted(f'{SOURCE}: {machine}')}",
        "",
        "[constants]",
        *(f"{name} = {_inline(constant)}" for name, constant in table.constants.items()),
    ]
    return "\n".join(lines) + "\n"


def _inline(constant: Constant) -> str:
    fields: Mapping[str, str] = {
        "value": shown(constant.value),
        "unit": _quoted(constant.unit),
        "kind": _quoted(constant.kind.value),
        "source": _quoted(constant.source),
        "condition": _quoted(constant.condition),
    }
    return "{ " + ", ".join(f"{key} = {value}" for key, value in fields.items()) + " }"


def _quoted(text: str) -> str:
    # A JSON string is a basic string of TOML, except that TOML has no surrogate pairs: keep what is not ASCII as it is.
    return json.dumps(text, ensure_ascii=False)
