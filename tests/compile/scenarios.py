# SPDX-License-Identifier: Apache-2.0
"""What happens around a stamped compilation, each in a process of its own: `python -m tests.compile.scenarios OUT NAME`.

A scenario leaves PTX files in OUT and says the rest in `result.json`.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.compile.compile_kernels import FIXTURES

ARCH = "sm_90a"


def options(out: Path) -> str:
    return f"--gpu-arch {ARCH} --keep-ptx --keep-cubin --dump-dir {out / 'dump'}"


def session(targets: list[str] | None = None, **more: Any) -> Any:
    from autostamp.hooks.session import Session

    opened = Session(targets or [str(FIXTURES)], compile_only=True, **more)
    opened.open()
    return opened


def build(out: Path, module: str, label: str) -> None:
    """Compile `module` and keep the PTX of each thing it builds as `NAME.LABEL.ptx`."""
    for name, compiled in importlib.import_module(module).build(options(out)).items():
        (out / f"{name}.{label}.ptx").write_text(compiled.__ptx__)


def tables(opened: Any) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(trace) for trace in opened.manifest().traces]


def again(out: Path) -> dict[str, Any]:
    """One kernel compiled twice in one session."""
    opened = session()
    build(out, "two_pipelines", "first")
    first = tables(opened)
    build(out, "two_pipelines", "second")
    return {"first": first, "second": tables(opened)}


def closed(out: Path) -> dict[str, Any]:
    """Compile in a session, after it, and in a second session. Nothing but the modules keeps the first one alive."""
    opened = session()
    build(out, "two_pipelines", "open")
    first = tables(opened)
    importlib.import_module("participants")
    opened.close()
    del opened
    gc.collect()
    build(out, "two_pipelines", "closed")
    build(out, "participants", "closed")
    opened = session()
    build(out, "two_pipelines", "reopened")
    files = [file.path for file in opened.manifest().files]
    return {"first": first, "second": tables(opened), "files": files, "findings": len(opened.findings())}


def raised(out: Path) -> dict[str, Any]:
    """A kernel that raises while it is traced, then one that is not stamped but uses a stamped helper, then a stamped one."""
    opened = session()
    try:
        importlib.import_module("failing").fail(options(out))
    except Exception as error:  # the DSL wraps what a kernel raises
        message = f"{error} {error.__cause__} {error.__context__}"
    else:
        message = ""
    unstamped(out, "stamped-helper")
    build(out, "two_pipelines", "after")
    return {"message": message, "traces": tables(opened)}


def plain(out: Path) -> dict[str, Any]:
    """The kernel that is not stamped with a helper that is not stamped either."""
    unstamped(out, "plain-helper")
    return {}


def unstamped(out: Path, label: str) -> None:
    """Compile a kernel of no target module that calls `two_pipelines.drain`."""
    from tests.compile import plain_kernel

    (out / f"plain.{label}.ptx").write_text(plain_kernel.build(options(out)).__ptx__)


def by_hand(out: Path) -> dict[str, Any]:
    """Stamped sources on disk, the buffer passed as `mProf=`, and no session."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    import autostamp
    from autostamp.runtime.recorder import RECORDER

    stamped = autostamp.instrument_source((FIXTURES / "two_kernels.py").read_bytes(), "two_kernels.py")
    (out / "by_hand.py").write_bytes(stamped.text)
    sys.path.insert(0, str(out))
    module = importlib.import_module("by_hand")
    x = make_fake_compact_tensor(cutlass.Float32, (module.THREADS,))
    buffer = make_fake_compact_tensor(cutlass.Int32, (autostamp.record_bytes() // 4,), assumed_align=8)
    for label, more in (("without", {}), ("with", {"mProf": buffer})):
        compiled = cute.compile(module.host, x, False, make_fake_stream(), options=options(out), **more)
        (out / f"two_kernels.{label}.ptx").write_text(compiled.__ptx__)
    return {"traces": [msgspec.to_builtins(trace) for trace in RECORDER.traces]}


def several(out: Path) -> dict[str, Any]:
    """One kernel with each choice of CTAs and launches, every one in a session of its own."""
    from autostamp.model.options import RecordOptions, parse_blocks
    from autostamp.runtime.recorder import RECORDER

    choices = {
        "one": RecordOptions(),
        "range": RecordOptions(blocks=parse_blocks("3..10")),
        "list": RecordOptions(blocks=parse_blocks("1,0,0;0,2,0")),
        "repeat": RecordOptions(repeat=3),
        "both": RecordOptions(blocks=parse_blocks("3..10"), repeat=3),
    }
    result = {}
    for label, options_ in choices.items():
        opened = session(options=options_)
        build(out, "two_pipelines", label)
        (trace,) = tables(opened)
        region = RECORDER.regions()[-1]
        result[label] = {"trace": trace, "address": region.address, "size": region.size}
        opened.close()
    return result


def main(out: Path, name: str) -> None:
    (out / "dump").mkdir(parents=True)
    sys.path.insert(0, str(FIXTURES))
    result = globals()[name](out)
    (out / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
