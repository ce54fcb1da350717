# SPDX-License-Identifier: Apache-2.0
"""Run the corpus check: exit status 0 when every package is good, 1 when one is not, 2 when it could not be run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tests.corpus.check import FileResult, check_file
from tests.corpus.packages import DEFAULT_CACHE, PACKAGES, CorpusError, ListedFile, Package, listed_files, unpacked
from tests.corpus.report import DEFINITIONS, Totals, as_json, findings, text, totals

Job = tuple[Path, ListedFile]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the chosen packages, print their tables, and return the exit status."""
    options = _parser().parse_args(arguments)
    packages = _chosen(options.packages, options.all)
    try:
        folders = {package.name: _folder(package, options.folder, options.cache) for package in packages}
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    jobs = [(folders[file.package], file) for file in listed_files() if file.package in folders]
    order = {file.path: number for number, (_, file) in enumerate(jobs)}
    results = sorted(_run(jobs, options.jobs), key=lambda result: order[result.path])
    sums = [totals(package.requirement, [r for r in results if r.package == package.name]) for package in packages]
    _print(sums, results)
    if options.json:
        options.json.write_text(json.dumps(as_json(sums, results), indent=1) + "\n", encoding="utf-8")
    return 0 if all(total.is_good for total in sums) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    names = [package.name for package in PACKAGES]
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--packages", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    which.add_argument("--all", action="store_true", help="all packages, the largest too")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="files checked at a time (default %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write the results of every file here")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="where wheels are kept (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="folder with one unpacked folder per package: download nothing")
    return parser


def _chosen(names: list[str] | None, is_all: bool) -> list[Package]:
    if names:
        return [package for package in PACKAGES if package.name in names]
    return [package for package in PACKAGES if is_all or package.is_default]


def _folder(package: Package, folder: Path | None, cache: Path) -> Path:
    if folder is None:
        return unpacked(package, cache)
    if not (folder / package.folder).is_dir():
        raise CorpusError(f"{folder} has no folder {package.folder}")
    return folder / package.folder


def _run(jobs: list[Job], workers: int) -> Iterator[FileResult]:
    done = (check_file(*job) for job in jobs) if workers <= 1 else _run_parallel(jobs, workers)
    console = Console(stderr=True)
    yield from track(done, "Checking", total=len(jobs), console=console, disable=not console.is_terminal)


def _run_parallel(jobs: list[Job], workers: int) -> Iterator[FileResult]:
    # Many sync calls mean a long file: those first, so that no worker is left alone with one at the end.
    longest = sorted(jobs, key=lambda job: -sum(job[1].totals))
    with ProcessPoolExecutor(workers) as pool:
        for future in as_completed([pool.submit(check_file, *job) for job in longest]):
            yield future.result()


def _print(sums: list[Totals], results: list[FileResult]) -> None:
    for line in findings(results):
        print(line)
    if any(result.failures or result.missed for result in results):
        print()
    for total in sums:
        print(text(total))
    if len(sums) > 1:
        print(text(totals("all", results)))
    print(DEFINITIONS)


if __name__ == "__main__":
    sys.exit(main())
