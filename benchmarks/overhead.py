# SPDX-License-Identifier: Apache-2.0
"""What stamps cost: median time of the stamped kernel over that of the clean one, and whether their outputs are equal.

    python benchmarks/overhead.py [--json OUT] [--case GLOB]... [--rounds N] [--only TERM] [--skip TERM] [--no-stage]

Needs an H200 (or another Hopper GPU), torch, flash-attn-4 and nvidia-cutlass-dsl; takes a few minutes, most of which is
compiling. Both builds live in one process. A round times A/B/B/A (clean, stamped, stamped, clean), each a replay of a CUDA
graph that holds enough launches for about two milliseconds, so a steady drift of the clock cancels within the round. Printed
are the median of the rounds' ratios with its spread, and as a control the same for clean over clean. A case that fails is
reported and the others still run. With --compile-only both builds are compiled, without a GPU, and only resources are shown.
With --placement FILE the sets of a placement are measured beside the run with all sites, each in a process of its own; with
--set N as well, that set alone. With --program NAME=CLEAN,STAMPED[,ARGUMENT...] native programs are timed instead (see
overhead_programs.py): each time is one run of a build that `autostamp nvcc` or plain nvcc made beforehand. With --cuda these are
the bundled programs of CUDA C++, which are built first.

With --beside FILE|RUN, several times, what was recorded before stands in one table with what is measured: a single run with all
stamps, joined replays, other tools. With --recorded nothing is measured, and the table is all.

Exit status: 0 done, 1 a case failed or outputs differ, 2 wrong usage, 3 no GPU or no torch.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.hooks import caches
from autostamp.hooks.session import Session
from autostamp.model.options import InstrumentOptions, RecordOptions, Selection
from autostamp.runtime import devices, machine
from autostamp.runtime.buffer import NoMemory
from autostamp.runtime.placement_file import read_placement, selection_of
from benchmarks import overhead_beside, overhead_cuda, overhead_programs, overhead_replays
from benchmarks.overhead_cases import TARGETS, Builds, Case, TorchMemory, all_cases
from benchmarks.overhead_resources import resources_of
from benchmarks.overhead_statistics import Comparison, compare, table
from benchmarks.overhead_timing import Result, compile_both, measure, say

ROUNDS = 100
PROGRAM_ROUNDS = 4
"""Of programs: each time is a run of its own, so 100 rounds of the bundled ones would take half an hour."""

COMPILE_ONLY = {
    "CUTE_DSL_ARCH": "sm_90a",
    "FLASH_ATTENTION_ARCH": "sm_90",
    "FLASH_ATTENTION_NUM_SMS": "132",  # of an H200 (SXM), where nobody can be asked
    "FLASH_ATTENTION_FAKE_TENSOR": "1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    if options.recorded:
        return _show_beside(options, [])
    if options.cuda:
        return _run_bundled(options)
    if options.program:
        return _run_programs(options.program, options)
    if options.placement and not options.set:
        return _run_replays(options)
    cases = [case for case in all_cases(is_real=not options.compile_only) if _is_chosen(case.name, options.case)]
    if not cases:
        print("error: no case has such a name; --list shows them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        # Read by the packages while they are imported, so before anything of theirs is.
        os.environ.update(caches.switched_off() | {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": folder})
        os.environ.update(COMPILE_ONLY if options.compile_only else {})
        return _run(cases, options)


def _run_bundled(options: argparse.Namespace) -> int:
    if options.list:
        print("\n".join(each.name for each in overhead_cuda.BUNDLED))
        return 0
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        try:
            programs = overhead_cuda.built(Path(folder), lambda name: _is_chosen(name, options.case))
        except (OSError, overhead_cuda.CannotBuildError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 3
        if not programs:
            print("error: no program has such a name; --list shows them", file=sys.stderr)
            return 2
        if options.compile_only:
            print("\n".join(f"{each.name}: built clean and stamped" for each in programs))
            return 0
        return _run_programs(programs, options)


def _run_programs(programs: Sequence[overhead_programs.Program], options: argparse.Namespace) -> int:
    rounds = options.rounds or PROGRAM_ROUNDS
    results = [overhead_programs.measure(program, rounds) for program in programs]
    gpu = ", ".join(found.name for found in devices.find_gpus()[0][:1])
    print(report(gpu, results, []))
    _show_beside(options, results)
    _write(options, gpu, results, [])
    return 0 if all(result.is_good for result in results) else 1


def _run_replays(options: argparse.Namespace) -> int:
    words = [word for name in options.case for word in ("--case", name)]
    words += ["--rounds", str(options.rounds or ROUNDS), "--capacity", str(options.capacity)]
    words += ["--no-stage"] if options.no_stage else []
    replays = overhead_replays.measure(options.placement, words)
    print(overhead_replays.report(replays))
    if options.json:
        content = [{"set": each.number, "sites": each.sites, **each.report} for each in replays]
        options.json.write_text(
            json.dumps({"schema_version": 1, "replays": content}, indent=1) + "\n", encoding="utf-8"
        )
    return 0 if overhead_replays.is_good(replays) else 1


def _run(cases: Sequence[Case], options: argparse.Namespace) -> int:
    gpu = "" if options.compile_only else _gpu()
    if not gpu and not options.compile_only:
        print("error: torch sees no CUDA device; --compile-only needs none", file=sys.stderr)
        return 3
    selection = Selection(tuple(options.only), tuple(options.skip))
    if options.placement:
        selection = selection_of(read_placement(options.placement), options.set, str(options.placement))
    instrument = InstrumentOptions(selection=selection)
    session = Session(TARGETS, instrument=instrument, record=False)
    session.open()
    builds = Builds(
        NoMemory() if options.compile_only else TorchMemory(),
        RecordOptions(capacity=options.capacity, with_payload=not options.no_stage),
    )
    try:
        with _fake_tensors() if options.compile_only else contextlib.nullcontext():
            results = [_guarded(case, builds, options) for case in cases]
        resources = resources_of(builds)
    finally:
        session.close()
    for finding in session.findings():
        if finding.code != "AS5006":  # a target that was never imported: its cases were not chosen, or failed
            say(f"{finding.code} {finding.message}")
    print(report(gpu, results, resources))
    _show_beside(options, results)
    _write(options, gpu, results, resources)
    return 0 if all(result.is_good for result in results) else 1


def _show_beside(options: argparse.Namespace, results: Sequence[Result]) -> int:
    """The table of `overhead_beside`, where it was asked for; 2 where a source cannot be read."""
    try:
        text = overhead_beside.report(options.beside, [result.as_json() for result in results if result.rounds])
    except (OSError, ValueError, KeyError) as error:
        print(f"error: --beside: {error}", file=sys.stderr)
        return 2
    if options.beside:
        print(f"\n{text}")
    return 0


def _write(
    options: argparse.Namespace, gpu: str, results: Sequence[Result], resources: Sequence[dict[str, Any]]
) -> None:
    if options.json:
        content = {"schema_version": 1, "gpu": gpu, "driver": machine.driver_version(), "versions": machine.versions()}
        content |= {"only": options.only, "skip": options.skip, "with_stage": not options.no_stage}
        content |= {"cases": [result.as_json() for result in results], "resources": resources}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _guarded(case: Case, builds: Builds, options: argparse.Namespace) -> Result:
    """Measure one case; what goes wrong is its result."""
    result = Result(case.name)
    begin = time.monotonic()
    builds.case = case.name
    try:
        if isinstance(builds.memory, TorchMemory):
            measure(case, builds, builds.memory, options.rounds or ROUNDS, result)
        else:
            compile_both(case, builds)
    except Exception as error:  # one kernel that cannot run here must not hide the others
        traceback.print_exc()
        result.error = f"{type(error).__name__}: {error}".splitlines()[0]
    say(f"{case.name}: {result.error or 'done'} in {time.monotonic() - begin:.1f} s")
    return result


def report(gpu: str, results: Sequence[Result], resources: Sequence[dict[str, Any]]) -> str:
    """Tables for people, in Markdown."""
    parts: list[str] = []
    measured = [result for result in results if result.rounds]
    if measured:
        methods = " and ".join(dict.fromkeys(result.method for result in measured))
        parts.append(f"{gpu}: {len(measured[0].rounds)} rounds A/B/B/A of each case, by {methods}")
        headings = ("case", "clean µs", "stamped µs", "stamped ÷ clean", "p10-p90", "min-max", "clean ÷ clean p10-p90")
        rows = [_timing_row(result, compare(result.rounds)) for result in measured]
        parts.append(table((*headings, "records", "lost", "outputs"), rows))
    if resources:
        keys = ("registers", "spill_bytes", "instructions")
        changes = [
            (f"{row['case']}: {row['owner']}", *(f"{row['clean'][key]:,} → {row['stamped'][key]:,}" for key in keys))
            for row in resources
        ]
        parts.append(table(("compiled for, by", "registers", "spill bytes", "instructions"), changes))
    parts += [f"FAILED {result.name}: {result.error}" for result in results if result.error]
    return "\n\n".join(parts)


def _timing_row(result: Result, found: Comparison) -> tuple[str, ...]:
    ratio, control = found.ratio, found.control
    return (
        result.name,
        f"{found.clean.median:,.1f}",
        f"{found.stamped.median:,.1f}",
        f"{ratio.median:.3f}",
        f"{ratio.p10:.3f}-{ratio.p90:.3f}",
        f"{ratio.low:.3f}-{ratio.high:.3f}",
        f"{control.p10:.3f}-{control.p90:.3f}",
        f"{result.records:,}",
        f"{result.lost:,}",
        _outputs_text(result.outputs),
    )


def _outputs_text(outputs: dict[str, str]) -> str:
    """`equal`, or each verdict with the outputs it is about."""
    verdicts = dict.fromkeys(outputs.values())
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return "; ".join(
        f"{', '.join(name for name in outputs if outputs[name] == verdict)} {verdict}" for verdict in verdicts
    )


def _gpu() -> str:
    """Name of the device, or '' without torch or a device."""
    try:
        import torch
    except ImportError as error:
        say(str(error))
        return ""
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


@contextlib.contextmanager
def _fake_tensors() -> Iterator[None]:
    """Tensors without memory, and an H200 (SXM) for who asks how many multiprocessors there are."""
    from cutlass.utils import HardwareInfo
    from torch._subclasses.fake_tensor import FakeTensorMode

    HardwareInfo.__init__ = lambda self, device_id=0: None  # noqa: ARG005 - the signature that is called
    HardwareInfo.get_device_multiprocessor_count = lambda self: 132  # noqa: ARG005
    with FakeTensorMode():
        yield


def _is_chosen(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatch.fnmatchcase(name, f"*{glob}*") for glob in globs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose name holds it")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and do nothing")
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"A/B/B/A rounds of each case (default {ROUNDS}; of programs {PROGRAM_ROUNDS}: a round is four runs, about 2 s)",
    )
    parser.add_argument(
        "--program", action="append", type=overhead_programs.Program.of, metavar="NAME=CLEAN,STAMPED[,ARGUMENT...]"
    )
    parser.add_argument("--cuda", action="store_true", help="the bundled programs of CUDA C++, built with nvcc first")
    parser.add_argument("--only", action="append", default=[], metavar="TERM", help="stamp only sites that match")
    parser.add_argument("--skip", action="append", default=[], metavar="TERM", help="leave out sites that match")
    parser.add_argument("--placement", type=Path, metavar="FILE", help="measure its sets, and all sites in one run")
    parser.add_argument("--set", type=int, default=0, metavar="N", help="with --placement: this set alone")
    parser.add_argument("--no-stage", action="store_true", help="stamps do not carry the stage at run time")
    parser.add_argument("--capacity", type=int, default=4096, help="records per warp (default %(default)s)")
    parser.add_argument(
        "--beside",
        action="append",
        type=Path,
        default=[],
        metavar="FILE|RUN",
        help="show recorded results in one table",
    )
    parser.add_argument("--recorded", action="store_true", help="measure nothing: the table of --beside is all")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write everything, single rounds included, to a file")
    parser.add_argument("--compile-only", action="store_true", help="compile both builds for sm_90a, with no GPU")
    return parser


if __name__ == "__main__":
    sys.exit(main())
