# SPDX-License-Identifier: Apache-2.0
"""What each replay set of a placement costs on the GPU: `python -m benchmarks.placement_timing PLACEMENT.json OUT`.

FlashAttention's forward kernel in one process: for every set the kernel is compiled with exactly its stamps, its output is
compared with the clean one's bit for bit, and both are timed A/B/B/A as CUDA graphs. OUT gets `timing.json` and the cubins.
`--dry` compiles with fake tensors and times nothing: for machines without a GPU.
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
from benchmarks.overhead_cases import Build, Builds, FlashForward, Shape, TorchMemory
from benchmarks.overhead_statistics import compare, launches_for
from benchmarks.overhead_timing import MOST_LAUNCHES, TARGET_US, compare_outputs, one_round, say, timer_of

SHAPE = Shape(1, 128, 4096, 1, 128)
WARM_UP = 3


def choose(session: Session, sites: Collection[tuple[str, Form]]) -> None:
    """Trace exactly these of the stamps in this process's stamped modules from now on."""
    forms = dict(sites)
    places = {(file.key, site.number): site_key(file, site) for file in session.files() for site in file.sites}
    RECORDER.forms = {place: forms[key] for place, key in places.items() if key in forms}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("placement", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=180.0, help="start no set after this time")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    placement = read_placement(options.placement)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        os.environ.update(caches.switched_off() | {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": folder})
        os.environ.update(COMPILE_ONLY if options.dry else {})
        instrument = InstrumentOptions(Selection(placed=None, files=placement.files))
        session = Session(["flash_attn.cute"], instrument=instrument, record=False)
        session.open()
        try:
            with _fake_tensors() if options.dry else contextlib.nullcontext():
                rows = _sets(placement, session, Path(folder), options)
        finally:
            session.close()
    value = {"schema_version": 1, "shape": str(SHAPE), "sets": rows}
    (options.out / "timing.json").write_text(json.dumps(value, indent=1) + "\n")
    return 0


def _sets(placement: Placement, session: Session, dump: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    begin = time.monotonic()
    memory = NoMemory() if options.dry else TorchMemory()
    case = FlashForward(SHAPE, is_causal=False)
    builds = Builds(memory, RecordOptions())
    with builds.use(Build.CLEAN):
        case.prepare()
        case.launch({})
    _keep(dump, options.out / "clean.cubin")
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
        _keep(dump, options.out / f"{chosen.number}.cubin")
        if isinstance(memory, TorchMemory):
            row |= _timed(case, builds, memory, options.rounds)
        rows.append(row)
        say(f"{chosen.number}: {row.get('ratio', '-')} {row.get('outputs', '')} {time.monotonic() - begin:.1f} s")
    return rows


def _timed(case: FlashForward, builds: Builds, memory: TorchMemory, rounds: int) -> dict[str, Any]:
    import torch

    torch.cuda.synchronize()
    outputs = compare_outputs(case, builds)
    launches = launches_for(46.0, TARGET_US, MOST_LAUNCHES)
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


def _keep(dump: Path, file: Path) -> None:
    """The one cubin that was dumped since the last call."""
    (found,) = dump.glob("*.cubin")
    shutil.move(found, file)


if __name__ == "__main__":
    sys.exit(main())
