# SPDX-License-Identifier: Apache-2.0
"""Totals of a corpus run, as text and as JSON-ready dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from autostamp.diagnostics.codes import CODES
from tests.corpus.check import ELSEWHERE, FileResult
from tests.corpus.count import CallClass

REQUIRED_SHARE = 0.97
SHOWN = 20

DEFINITIONS = f"""\
share of all       stamped / all calls that block or signal, a poll that a loop spins on counting as one that blocks
share of executed  the same without {" and ".join(sorted(ELSEWHERE))}: forwarding wrappers, whose callers are stamped,
                   and calls that task scheduling only records. At least {REQUIRED_SHARE:.0%} is required, in every package."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the files of one package, or over all of them."""

    name: str
    files: int
    agreeing: int
    calls: Counter[str]
    spins: int
    countable: int
    elsewhere: int
    stamped: int
    stamped_countable: int
    skipped: Counter[str]
    uncounted: int
    missed: int
    failed: int
    seconds: float

    @property
    def share_of_all(self) -> float:
        return _share(self.stamped_countable, self.countable)

    @property
    def share_of_executed(self) -> float:
        return _share(self.stamped_countable, self.countable - self.elsewhere)

    @property
    def is_good(self) -> bool:
        return not self.missed and not self.failed and self.share_of_executed >= REQUIRED_SHARE


def totals(name: str, results: Sequence[FileResult]) -> Totals:
    """Sum the results of some files under a name."""
    return Totals(
        name=name,
        files=len(results),
        agreeing=sum(result.agrees_with_list for result in results),
        calls=_sum(result.calls for result in results),
        spins=sum(result.spins for result in results),
        countable=sum(result.countable for result in results),
        elsewhere=sum(result.skipped_countable[code] for result in results for code in ELSEWHERE),
        stamped=sum(result.stamped for result in results),
        stamped_countable=sum(result.stamped_countable for result in results),
        skipped=_sum(result.skipped for result in results),
        uncounted=sum(len(result.uncounted) for result in results),
        missed=sum(len(result.missed) for result in results),
        failed=sum(bool(result.failures) for result in results),
        seconds=sum(result.seconds for result in results),
    )


def text(total: Totals) -> str:
    """The table of one package."""
    kinds = ", ".join(f"{total.calls[kind]} {kind}" for kind in CallClass)
    rows = [
        ("files", total.files, f"{total.agreeing} of them with the counts of files.tsv"),
        ("calls", total.calls.total(), f"{kinds} ({total.spins} of the polls spun on)"),
        ("stamped", total.stamped, f"{total.uncounted} more sites were found that the count does not look for"),
        *((f"skipped {code}", number, _meaning(code)) for code, number in sorted(total.skipped.items())),
        ("missed", total.missed, "neither stamped nor skipped"),
        ("files that fail", total.failed, "a crash, or an identity that does not hold"),
    ]
    lines = [f"  {label:<18}{number:>7}  {note}" for label, number, note in rows]
    shares = [("share of all", total.share_of_all), ("share of executed", total.share_of_executed)]
    lines += [f"  {label:<18}{share:>7.2%}" for label, share in shares]
    return "\n".join([total.name, *lines, f"  {'instrument':<18}{total.seconds:>7.1f}  seconds", ""])


def findings(results: Iterable[FileResult]) -> Iterator[str]:
    """One line for every missed call and every failure, the first few of each file."""
    for result in results:
        lines = [*result.failures, *(f"missed {call}" for call in result.missed)]
        yield from (f"{result.package}: {result.path}: {line}" for line in lines[:SHOWN])
        if len(lines) > SHOWN:
            yield f"{result.package}: {result.path}: and {len(lines) - SHOWN} more"


def as_json(packages: Sequence[Totals], results: Sequence[FileResult]) -> dict[str, Any]:
    """Everything printed, and every file, for a program to read."""
    summary = [
        {
            **_fields(total),
            "share_of_all": total.share_of_all,
            "share_of_executed": total.share_of_executed,
            "is_good": total.is_good,
        }
        for total in packages
    ]
    return {
        "format": 1,
        "required_share_of_executed": REQUIRED_SHARE,
        "packages": summary,
        "files": [_fields(result) for result in results],
    }


def _fields(value: Totals | FileResult) -> dict[str, Any]:
    # Not `asdict`, which cannot copy a Counter.
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _meaning(code: str) -> str:
    return CODES[code].message.split("{")[0].strip(" :") if code in CODES else "unknown code"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counters, Counter[str]())
