# SPDX-License-Identifier: Apache-2.0
"""What each replay set of a placement costs on the GPU: `python -m benchmarks.placement_timing PLACEMENT.json OUT`.

One case of `benchmarks.overhead` in one process: for every set it is compiled with exactly the set's stamps, its output is
compared with the clean one's bit for bit, and both are timed A/B/B/A as CUDA graphs. OUT gets `timing.json` and the cubins.
`--program` compiles the case and no more: what `autostamp place` is to run. `--dry` times nothing. Both use fake tensors and
need no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from autostamp.hooks import caches
from autostamp.hooks.session import Session
from autostamp.model.options import InstrumentOptions, RecordOptions, Selection
from autostamp.model.placement import Form, Placement, site_key
from autostamp.runtime.buffer import NoMemory
from autostamp.runtime.placement_file import read_placement
from autostamp.runtime.recorder import RECORDER
from benchmarks.overhead import COMPILE_ONLY, _fake_tensors
from benchmarks.overhead_cases import TARGETS, Build, Builds, Case, TorchMemory, all_cases
from benchmarks.overhead_statistics import compare, launches_for
from benchmarks.overhead_timing import MOST_LAUNCHES, TARGET_US, _times, compare_outputs, one_round, say, timer_of

WARM_UP = 3
PROBE = 8


def choose(session: Session, sites: Collection[tuple[str, Form]]) -> None:
    """Trace exactly these of the stamps in this process's stamped modules from now on."""
    forms = dict(sites)
    places = {(file.key, site.number): site_key(file, site) for file in session.files() for site in file.sites}
    RECORDER.forms = {place: forms[key] for place, key in places.items() if key in forms}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("placement", type=Path, nargs="?")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument(
        "--case", default="FA4 forward 1x128x4096x1x128 bf16", help="the name of the case, or its begin"
    )
    parser.add_argument("--program", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=180.0, help="start no set after this time")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    case = next(
        each for each in all_cases(is_real=not (options.dry or options.program)) if each.name.startswith(options.case)
    )
    if options.program:
        return _compile(case)
    placement = read_placement(options.placement)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        os.environ.update(caches.switched_off() | {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": folder})
        os.environ.update(COMPILE_ONLY if options.dry else {})
        instrument = InstrumentOptions(Selection(placed=None, files=placement.files))
        session = Session(TARGETS, instrument=instrument, record=False)
        session.open()
        try:
            with _fake_tensors() if options.dry else contextlib.nullcontext():
                rows = _sets(case, placement, session, Path(folder), options)
        finally:
            session.close()
    value = {"schema_version": 1, "case": case.name, "sets": rows}
    (options.out / "timing.json").write_text(json.dumps(value, indent=1) + "\n")
    return 0


def _compile(case: Case) -> int:
    os.environ.update(caches.switched_off() | COMPILE_ONLY)
    with _fake_tensors():
        case.prepare()
        case.launch({})
    return 0


def _sets(
    case: Case, placement: Placement, session: Session, dump: Path, options: argparse.Namespace
) -> list[dict[str, Any]]:
    begin = time.monotonic()
    memory = NoMemory() if options.dry else TorchMemory()
    builds = Builds(memory, RecordOptions())
    with builds.use(Build.CLEAN):
        case.prepare()
    with builds.use(Build.CLEAN) as kept:
        case.launch(kept)
    _keep(dump, placement.kernel, options.out / "clean.cubin")
    rows: list[dict[str, Any]] = []
    for chosen in placement.sets:
        if time.monotonic() - begin > options.seconds:
            say(f"stopped before set {chosen.number}: out of time")
            break
        choose(session, chosen.sites)
        builds.kept[Build.STAMPED].clear()
        row: dict[str, Any] = {"set": chosen.number, "sites": [[key, form.value] for key, form in chosen.sites]}
        with builds.use(Build.STAMPED) as kept:
            case.launch(kept)
        _keep(dump, placement.kernel, options.out / f"{chosen.number}.cubin")
        if isinstance(memory, TorchMemory):
            row |= _timed(case, builds, memory, options.rounds)
        rows.append(row)
        say(f"{chosen.number}: {row.get('ratio', '-')} {row.get('outputs', '')} {time.monotonic() - begin:.1f} s")
    return rows


def _timed(case: Case, builds: Builds, memory: TorchMemory, rounds: int) -> dict[str, Any]:
    import torch

    torch.cuda.synchronize()
    outputs = compare_outputs(case, builds)
    probe = timer_of(case, builds, Build.CLEAN, PROBE)
    probe.replay()
    launches = launches_for(_times([probe])[0], TARGET_US, MOST_LAUNCHES)
    timers = {build: timer_of(case, builds, build, launches) for build in Build}
    for _ in range(WARM_UP):
        one_round(timers)
    found = compare([one_round(timers) for _ in range(rounds)])
    memory.clear()
    timers[Build.STAMPED].replay()
    records, lost = memory.records()
    return {
        "ratio": round(found.ratio.median, 4),
        "ratio_p10": round(found.ratio.p10, 4),
        "ratio_p90": round(found.ratio.p90, 4),
        "clean_us": round(found.clean.median, 3),
        "stamped_us": round(found.stamped.median, 3),
        "outputs": outputs,
        "records": records,
        "lost": lost,
    }


def _keep(dump: Path, symbol: str, file: Path) -> None:
    """Of the cubins that were dumped since the last call, the kernel's."""
    for found in dump.glob("*.cubin"):
        if symbol.encode() in found.read_bytes():
            shutil.move(found, file)
        else:
            found.unlink()


if __name__ == "__main__":
    sys.exit(main())
