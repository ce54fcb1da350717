# SPDX-License-Identifier: Apache-2.0
"""The checks on one file of the corpus."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autostamp.model.manifest import SourceFile
from autostamp.passes.cutedsl import instrument
from autostamp.passes.edits import strip
from tests.corpus.count import Call, CallClass, count, listed_totals
from tests.corpus.packages import ListedFile
from tests.corpus.unstamped import difference

# Recorded by task scheduling, and forwarding wrappers whose callers are stamped: neither executes a wait of its own.
ELSEWHERE = frozenset({"AS2103", "AS2104"})


@dataclass(slots=True)
class FileResult:
    """What was found in one file. `countable` calls block or signal; `failures` are broken identities and crashes."""

    package: str
    path: str
    calls: Counter[str] = field(default_factory=Counter)
    spins: int = 0
    countable: int = 0
    stamped: int = 0
    stamped_countable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_countable: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    uncounted: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    agrees_with_list: bool = False
    seconds: float = 0.0


def check_file(folder: Path, listed: ListedFile) -> FileResult:
    """Stamp one file and hold it against the independent count. Never raises: a crash is a failure of the file."""
    result = FileResult(listed.package, listed.path)
    try:
        source = (folder / listed.path).read_bytes()
        with warnings.catch_warnings():
            # The original's own warnings, invalid escapes for example, are not ours to judge.
            warnings.simplefilter("ignore")
            _check(source, listed, result)
    except Exception as error:
        result.failures.append(f"crash: {type(error).__name__}: {error}")
    return result


def _check(source: bytes, listed: ListedFile, result: FileResult) -> None:
    calls = count(source)
    result.calls.update(call.kind.value for call in calls)
    result.spins = sum(call.kind is CallClass.POLL and call.is_spin for call in calls)
    result.countable = sum(call.is_counted for call in calls)
    result.agrees_with_list = listed_totals(calls) == listed.totals
    # Until the file has been instrumented nothing in it is covered.
    result.missed = [_where(call, source) for call in calls]
    begin = time.perf_counter()
    stamped = instrument(source, listed.path)
    result.seconds = time.perf_counter() - begin
    _match(source, calls, stamped.file, result)
    result.failures.extend(_broken_identities(source, stamped.text, listed.path))


def _match(source: bytes, calls: list[Call], file: SourceFile, result: FileResult) -> None:
    """Cover each counted call by the site or skip with the same span; chained calls share a start, so both ends count."""
    sites = {(site.span.start, site.span.end) for site in file.sites}
    skips = {(skip.span.start, skip.span.end): skip.code for skip in file.skips}
    result.missed = []
    for call in calls:
        span = (call.start, call.end)
        if span in sites:
            result.stamped += 1
            result.stamped_countable += call.is_counted
        elif span in skips:
            result.skipped[skips[span]] += 1
            result.skipped_countable[skips[span]] += call.is_counted
        else:
            result.missed.append(_where(call, source))
    counted = {(call.start, call.end) for call in calls}
    result.uncounted = [
        f"{site.span.line}: {site.method}" for site in file.sites if (site.span.start, site.span.end) not in counted
    ]
    result.failures.extend(
        f"span {span} is both stamped and skipped as {skips[span]}" for span in sorted(sites & skips.keys())
    )


def _broken_identities(source: bytes, text: bytes, path: str) -> Iterator[str]:
    if text != source and strip(text, path) != source:
        yield "strip(stamp(x)) differs from x"
    if instrument(text, path).text != text:
        yield "stamp(stamp(x)) differs from stamp(x)"
    try:
        compile(text, path, "exec", dont_inherit=True)
        parted = difference(source, text)
    except SyntaxError as error:
        yield f"the stamped text does not compile: line {error.lineno}: {error.msg}"
    else:
        if parted:
            yield f"the stamped text is not the original plus stamps: {parted}"


def _where(call: Call, source: bytes) -> str:
    text = b" ".join(source[call.start : call.end].split()).decode(errors="replace")
    return f"{call.line}:{call.column + 1}: {text[:80]}"
