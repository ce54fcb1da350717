# SPDX-License-Identifier: Apache-2.0
"""Compile our sample kernels with no GPU: `python -m tests.compile.compile_kernels OUT ARCH MODE`.

OUT gets `NAME.ptx` and `NAME.cubin` of every kernel. When stamped there are `manifest.json` and `builds.json` too: the kernel
traces of each NAME, and the (made-up) addresses of the regions.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"
GEMM = "autostamp.kernels.cutedsl.gemm_ws"
MODES = ("clean", "off", "stamped")


def open_session(mode: str, targets: Sequence[str] = (str(FIXTURES), GEMM)) -> Any:
    """clean: no hook. off: sources are stamped, but no buffer is bound. stamped: with a buffer that no one can write."""
    if mode == "clean":
        return None
    from autostamp.hooks.session import Session

    session = Session(targets, compile_only=True, record=mode == "stamped")
    session.open()
    return session


def compile_all(out: Path, arch: str, session: Any) -> dict[str, list[int]]:
    """Compile everything for `arch`; the numbers of the kernel traces that each made."""
    options = f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {out / 'dump'}"
    sys.path.insert(0, str(FIXTURES))
    modules = [file.stem for file in sorted(FIXTURES.glob("*.py"))]
    traces: dict[str, list[int]] = {}
    known = 0
    for name in [*modules, GEMM] if arch == "sm_90a" else modules:
        module = importlib.import_module(name)
        built = {"gemm_ws": module.compile_gemm(options=options)} if name == GEMM else module.build(options)
        for label, compiled in built.items():
            (out / f"{label}.ptx").write_text(compiled.__ptx__)
            (out / f"{label}.cubin").write_bytes(compiled.__cubin__)
        if session is not None:
            numbers = [trace.number for trace in session.manifest().traces]
            traces[name.rsplit(".", 1)[-1]], known = numbers[known:], len(numbers)
    return traces


def main(out: Path, arch: str, mode: str) -> None:
    """One build."""
    (out / "dump").mkdir(parents=True)
    session = open_session(mode)
    traces = compile_all(out, arch, session)
    if session is None:
        return
    from autostamp.runtime.manifest_file import write_manifest
    from autostamp.runtime.recorder import RECORDER

    write_manifest(out / "manifest.json", session.manifest())
    regions = {region.number: region.address for region in RECORDER.regions()}
    (out / "builds.json").write_text(json.dumps({"traces": traces, "regions": regions}))
    session.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
