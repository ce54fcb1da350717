# SPDX-License-Identifier: Apache-2.0
"""Compile the gallery's CuTe-DSL kernels with no GPU: `python -m tests.compile.compile_gallery OUT MODE`.

OUT gets `NAME.ptx` and `NAME.cubin` of every kernel and, when stamped, `manifest.json` and `builds.json`: the number of each
NAME's kernel trace.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.compile.compile_kernels import open_session

TARGETS = ("autostamp.kernels.cutedsl.gemm_gallery", "autostamp.kernels.cutedsl.attention_handoff")
MODES = ("clean", "off", "stamped")


def builders() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Name of each kernel, and what compiles it with the given options."""
    from autostamp.kernels.cutedsl.attention_handoff.build import compile_attention
    from autostamp.kernels.cutedsl.attention_handoff.forward import AttentionHandoff
    from autostamp.kernels.cutedsl.gemm_gallery.build import VARIANTS, compile_gemm, make_gemm

    for variant in VARIANTS:
        yield f"gemm_{variant}", lambda options, variant=variant: compile_gemm(make_gemm(variant), options)
    for split in (2, 4, 6, 8):
        attention = AttentionHandoff(split)
        yield f"attention_split_{split}", lambda options, attention=attention: compile_attention(attention, options)
    serial = AttentionHandoff(4, halves=1, looks_ahead=False)
    yield "attention_serial", lambda options: compile_attention(serial, options)


def main(out: Path, mode: str) -> None:
    """One build of everything."""
    (out / "dump").mkdir(parents=True)
    session = open_session(mode, TARGETS)
    traces: dict[str, int] = {}
    for name, build in builders():
        compiled = build(f"--gpu-arch sm_90a --keep-ptx --keep-cubin --dump-dir {out / 'dump'}")
        (out / f"{name}.ptx").write_text(compiled.__ptx__)
        (out / f"{name}.cubin").write_bytes(compiled.__cubin__)
        if session is not None:
            traces[name] = max((trace.number for trace in session.manifest().traces), default=0)
    if session is None:
        return
    from autostamp.runtime.manifest_file import write_manifest

    write_manifest(out / "manifest.json", session.manifest())
    (out / "builds.json").write_text(json.dumps(traces))
    session.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
