# SPDX-License-Identifier: Apache-2.0
"""Recording without a session: the caller owns the buffer and passes it as `mProf=`.

buffer = cupy.zeros(autostamp.record_bytes() // 4, dtype=cupy.int32)
compiled = cute.compile(kernel, a, b, c, stream, mProf=from_dlpack(buffer, assumed_align=8))
compiled(a, b, c, stream, mProf=from_dlpack(buffer, assumed_align=8))
autostamp.save_run("RUN", buffer.get(), "stamped/kernel.manifest.json")
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autostamp.diagnostics import AutostampError
from autostamp.hooks.complete import complete
from autostamp.model.manifest import Manifest
from autostamp.runtime import machine, store
from autostamp.runtime.layout import DEFAULT_CAPACITY, region_bytes
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.recorder import RECORDER

BY_HAND = 0
"""Region number of traces whose buffer came from the caller."""


def record_bytes(capacity: int = DEFAULT_CAPACITY) -> int:
    """Bytes of a zeroed, 8-byte aligned buffer for one kernel with `capacity` records a warp."""
    return region_bytes(capacity)


def save_run(out: str | Path, buffer: npt.NDArray[np.generic], manifest: str | Path) -> Manifest:
    """Write a run folder from a buffer that a kernel of this process filled, and the manifest that `instrument` wrote.

    Raises AS5003 when no kernel was compiled with a buffer of its own, AS6002 when the buffer is not of the size they use.
    """
    known = read_manifest(Path(manifest))
    traces = [trace for trace in (*RECORDER.earlier, *RECORDER.traces) if trace.region == BY_HAND]
    if not traces:
        detail = "no stamped kernel was compiled with mProf="
        raise AutostampError.of("AS5003", detail=detail, hint="Pass the buffer to cute.compile, too.")
    region = np.ascontiguousarray(buffer).view(np.uint8).ravel()
    wanted = region_bytes(traces[-1].capacity)
    if region.size != wanted:
        raise AutostampError.of("AS6002", detail=f"the buffer has {region.size} bytes, the kernel writes {wanted}")
    numbered = tuple(replace(complete(trace, known.files), number=at) for at, trace in enumerate(traces, 1))
    made = replace(known, traces=numbered)
    sources = {f"original/{file.key}/{Path(file.path).name}": _text(file.path) for file in known.files}
    store.write_run(Path(out), made, {BY_HAND: region}, machine.facts(tuple(sys.argv), 0.0), sources)
    return made


def _text(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.is_file() else ""
