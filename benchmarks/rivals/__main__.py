# SPDX-License-Identifier: Apache-2.0
"""autostamp beside other in-kernel profilers, each on a GEMM of 2048^3 that it can record, and on a loop that only stamps.

    python -m benchmarks.rivals [--json OUT] [--rounds N] [--only NAME]... [--programs FOLDER | --cutlass FOLDER]

Needs an H200. NVIDIA IKET and autostamp on the bundled CuTe-DSL GEMM need nvidia-cutlass-dsl, Proton needs triton and torch,
Mosaic GPU needs jax. CUTLASS's synclog and autostamp on a GEMM out of CUTLASS's collectives need builds of benchmarks/cuda:
--cutlass names CUTLASS's source folder, from which nvcc makes them (minutes), --programs a folder that holds them. A tool that
cannot run is reported, and the others still run. Takes some minutes, most of them IKET's.

Exit status: 0 done, 1 a tool could not run, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from autostamp.runtime import devices, machine
from benchmarks.overhead_statistics import Round, compare, spread_of, table
from benchmarks.rivals import cutlass_builds, iket_trace
from benchmarks.rivals.measured import Measured, read, rounds_of, sm_mhz
from benchmarks.rivals.queued import LATE

ROOT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 300
LAUNCHES: Final = 60
SIZE: Final = 2048
IKET: Final = (sys.executable, "-c", "from iket.cli.main import entrypoint; entrypoint()")
TOOLS: Final = ("cutedsl", "cutlass", "proton", "mosaic")
SLOW: Final = 4
"""Rounds of which a tool that runs a whole program twice for each time gets one."""

FIRST: Final = "the first 4096 of each warp of CTA 0 (or of those asked for); the rest are counted"
CYCLE_NS: Final = 0.5
"""A cycle of the SM clock at 1.98 GHz, rounded."""
_TIME: Final = re.compile(r"us_per_launch ([\d.]+)")
_EVENTS: Final = re.compile(r"events (\d+)")
_LOG: Final = re.compile(r"log_events (\d+) log_bytes (\d+) clock_step_ns (\d+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as scratch:
        programs = options.programs or Path(scratch)
        if options.cutlass:
            cutlass_builds.build(options.cutlass, programs)
        found = [
            each for name in options.only or TOOLS for each in _measure(name, programs, Path(scratch), options.rounds)
        ]
    print(report(found))
    if options.json:
        gpus = devices.find_gpus()[0]
        content = {"schema_version": 1, "gpu": gpus[0].name if gpus else "", "driver": machine.driver_version()}
        options.json.write_text(json.dumps(content | {"tools": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(each["error"] for each in found) else 0


def _measure(name: str, programs: Path, scratch: Path, rounds: int) -> list[dict[str, Any]]:
    """The tools of one kernel; what goes wrong is their result."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    try:
        if name in _MEASURES:
            return [each.as_json() for each in _MEASURES[name](programs, scratch, rounds)]
        said = _run(sys.executable, "-m", f"benchmarks.rivals.{name}", str(rounds), is_checked=False)
        return [read(said) or Measured(name, error="it printed nothing").as_json()]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return [Measured(name, error=f"{type(error).__name__}: {said.strip().splitlines()[-1]}").as_json()]


def _cutedsl(_: Path, scratch: Path, rounds: int) -> list[Measured]:
    """autostamp and IKET on one kernel, with the same clean runs: clean, autostamp, IKET, and back again."""
    kernel = f"CuTe-DSL gemm_ws {SIZE}^3 fp16"
    ours = Measured("autostamp", "", kernel, FIRST, bytes_per_event=8, step_ns=CYCLE_NS)
    theirs = Measured("NVIDIA IKET", machine.versions().get("nvidia-cutlass-dsl", ""), f"{kernel}, same sites")
    theirs.kept = "all, in a buffer that a first run of the program sizes"
    clean, stamped = _script("cutedsl", "clean"), _script("cutedsl", "autostamp")
    traced = _under_iket("cutedsl", scratch / "iket", "none", LAUNCHES)
    for _round in range(max(1, rounds // SLOW)):
        first, ours_first, theirs_first = clean(), stamped(), traced()
        theirs_last, ours_last, last = traced(), stamped(), clean()
        ours.rounds.append([first, ours_first, ours_last, last])
        theirs.rounds.append([first, theirs_first, theirs_last, last])
    recorded = _EVENTS.search(_run(sys.executable, "-m", "benchmarks.rivals.cutedsl", "autostamp", "1"))
    ours.events = int(recorded[1]) if recorded else 0
    _under_iket("cutedsl", scratch / "iket_json", "json", 1)()
    found = iket_trace.summarise(scratch / "iket_json")
    theirs.events, theirs.step_ns = found.events, found.step_ns
    loop = _under_iket("cutedsl_loop", scratch / "iket_loop", "none", LAUNCHES)
    theirs.loop = rounds_of(_script("cutedsl_loop", "clean"), loop, max(1, rounds // SLOW))
    theirs.loop_stamps, theirs.sm_mhz = 2 * 2000, sm_mhz()
    return [ours, theirs]


def _script(script: str, build: str) -> Callable[[], float]:
    return lambda: _time(_run(sys.executable, "-m", f"benchmarks.rivals.{script}", build, str(LAUNCHES)))


def _under_iket(script: str, folder: Path, postprocess: str, launches: int) -> Callable[[], float]:
    words = ("--output-dir", str(folder), "--clobber", "profile", "--postprocess", postprocess, "--")
    program = (sys.executable, "-m", f"benchmarks.rivals.{script}", "iket", str(launches))
    return lambda: _time(_run(*IKET, *words, *program))


def _cutlass(programs: Path, scratch: Path, rounds: int) -> list[Measured]:
    """autostamp and synclog on one kernel."""
    kernel = f"CUTLASS pingpong GEMM {SIZE}^3 bf16"
    ours = Measured("autostamp", "", kernel, FIRST, bytes_per_event=8, step_ns=CYCLE_NS)
    clean, stamped, logged = (_program(programs, name, scratch) for name in ("clean", "stamped", "synclog"))
    ours.rounds = rounds_of(clean, stamped, rounds)
    theirs = Measured("CUTLASS synclog", "", kernel, "the first 64 Mi words of all warps of CTA 0")
    theirs.rounds = rounds_of(clean, logged, rounds)
    log = _LOG.search(_run(str(programs / "cutlass_synclog"), *[str(SIZE)] * 3))
    if log is None:
        message = "cutlass_synclog printed no summary of its log"
        raise ValueError(message)
    theirs.events, theirs.bytes_per_event = int(log[1]), int(log[2]) / int(log[1])
    theirs.step_ns = float(log[3])
    theirs.loop = rounds_of(
        _program(programs, "loop_clean", scratch), _program(programs, "loop_synclog", scratch), rounds
    )
    theirs.loop_stamps, theirs.sm_mhz = 2000, sm_mhz()
    return [ours, theirs]


def _program(programs: Path, build: str, scratch: Path) -> Callable[[], float]:
    words = ["2000", "20"] if build.startswith("loop") else [*[str(SIZE)] * 3, "--repeat", "100"]
    return lambda: _time(_run(str(programs / f"cutlass_{build}"), *words, AUTOSTAMP_RUN=str(scratch)))


_MEASURES: Final = {"cutedsl": _cutedsl, "cutlass": _cutlass}


def _time(said: str) -> float:
    if LATE in said:
        print(f"note: {LATE}", file=sys.stderr, flush=True)
    found = _TIME.search(said)
    if found is None:
        message = f"no time was printed: {said.strip()[-120:]!r}"
        raise ValueError(message)
    return float(found[1])


def _run(*command: str, is_checked: bool = True, **variables: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        **variables,
    }
    environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=is_checked
    )
    return done.stdout


def report(found: Sequence[dict[str, Any]]) -> str:
    """A Markdown table with a row for each tool."""
    headings = ("tool", "kernel", "clean µs", "stamped ÷ clean (p10-p90)", "events a launch", "bytes an event")
    return table((*headings, "cycles a stamp", "smallest step, ns", "kept"), [_row(each) for each in found])


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    if each["error"]:
        return (each["tool"], f"did not run: {each['error']}", *[""] * 7)
    rounds = compare([Round(*times) for times in each["rounds"]])
    return (
        f"{each['tool']} {each['version']}".strip(),
        each["kernel"],
        f"{rounds.clean.median:.1f}",
        f"{rounds.ratio.median:.3f} ({rounds.ratio.p10:.3f}-{rounds.ratio.p90:.3f})",
        f"{each['events']:,}" if each["events"] else "",
        f"{each['bytes_per_event']:.1f}" if each["bytes_per_event"] else "",
        _cycles(each),
        f"{each['step_ns']:g}" if each["step_ns"] else "",
        each["kept"],
    )


def _cycles(each: dict[str, Any]) -> str:
    """Median over rounds of what a stamp adds to a chain of dependent instructions of one warp."""
    if not each["loop"] or not each["sm_mhz"]:
        return ""
    added = [(b + c - a - d) / 2 * each["sm_mhz"] / each["loop_stamps"] for a, b, c, d in each["loop"]]
    spread = spread_of(added)
    return f"{spread.median:.0f} ({spread.low:.0f}-{spread.high:.0f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--rounds", type=int, default=5, help="A/B/B/A rounds (default %(default)s)")
    parser.add_argument("--only", action="append", choices=TOOLS, metavar="NAME", help=", ".join(TOOLS))
    parser.add_argument("--programs", type=Path, metavar="FOLDER", help="builds of CUTLASS's programs")
    parser.add_argument("--cutlass", type=Path, metavar="FOLDER", help="CUTLASS's source, to make those builds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
