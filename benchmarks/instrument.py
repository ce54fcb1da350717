# SPDX-License-Identifier: Apache-2.0
"""How long instrumenting the largest corpus file takes, over the time libcst needs merely to parse it.

    python -m benchmarks.instrument [--repeat 7] [--folder UNPACKED] [--fail-over 3] [FILE ...]

Both are timed in this process, in turn, so that a slow moment of the machine hits both. The largest file by sync calls and the
largest by bytes are measured when no FILE is given.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst

if not __package__:  # run as a script: the corpus lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.passes.cutedsl import instrument
from tests.corpus.packages import DEFAULT_CACHE, PACKAGES, CorpusError, listed_files, unpacked


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each round on one file, parsing and instrumenting in turn."""

    path: Path
    size: int
    parse: tuple[float, ...]
    stamp: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.stamp) / statistics.median(self.parse)

    def text(self) -> str:
        rounds = [stamp / parse for stamp, parse in zip(self.stamp, self.parse, strict=True)]
        return "\n".join(
            (
                f"{self.path} ({self.size:,} bytes, {len(rounds)} rounds)",
                f"  libcst parse  {_spread(self.parse)}",
                f"  instrument    {_spread(self.stamp)}",
                f"  ratio of the medians {self.ratio:.2f} (single rounds {min(rounds):.2f} to {max(rounds):.2f})",
            )
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a ratio is over the limit, 2 when there is nothing to measure."""
    options = _parser().parse_args(arguments)
    try:
        paths = options.files or _largest(options.folder, options.cache)
        timings = [measure(path, options.repeat) for path in paths]
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for timing in timings:
        print(timing.text())
    worst = max(timing.ratio for timing in timings)
    print(f"instrument / parse: {worst:.2f}" + (f" (limit {options.fail_over:g})" if options.fail_over else ""))
    return 1 if options.fail_over and worst > options.fail_over else 0


def measure(path: Path, rounds: int) -> Timing:
    """Time both on one file; one round beforehand warms both up and is not counted."""
    source = path.read_bytes()
    parse, stamp = [], []
    for number in range(rounds + 1):
        # No two rounds see the same bytes: a result kept by content would make the time meaningless.
        text = source + f"\n# round {number}\n".encode()
        parse.append(_seconds(partial(libcst.parse_module, text)))
        stamp.append(_seconds(partial(instrument, text, path.name)))
    return Timing(path, len(source), tuple(parse[1:]), tuple(stamp[1:]))


def _seconds(call: Callable[[], object]) -> float:
    # Start without the other's garbage. Processor time, because the machine may be doing other work.
    gc.collect()
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _largest(folder: Path | None, cache: Path) -> list[Path]:
    """The listed file with most sync calls and the one with most bytes (often the same) of the default packages."""
    roots = {
        package.name: folder / package.folder if folder else unpacked(package, cache)
        for package in PACKAGES
        if package.is_default
    }
    found = [(sum(file.totals), roots[file.package] / file.path) for file in listed_files() if file.package in roots]
    by_calls = max(found)[1]
    by_bytes = max((path for _, path in found), key=lambda path: path.stat().st_size)
    return list(dict.fromkeys((by_calls, by_bytes)))


def _spread(seconds: Sequence[float]) -> str:
    return f"median {statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instrument", description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="folder with one unpacked folder per package: download nothing")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where wheels are kept (default %(default)s)")
    parser.add_argument("--fail-over", type=float, help="exit 1 when the ratio is over this")
    return parser


if __name__ == "__main__":
    sys.exit(main())
