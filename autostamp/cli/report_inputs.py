# SPDX-License-Identifier: Apache-2.0
"""What `autostamp report` reads beside run folders, and the slot spec that it writes: `--spec`, `--npz`, `--iket`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.flow import Arrow
    from autostamp.model.manifest import Manifest
    from autostamp.model.run import MachineFacts
    from autostamp.model.timeline import Timeline
    from autostamp.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a report is made of. `sources` are texts of source files by path; of these inputs none is kept."""

    manifest: Manifest
    traces: list[Trace]
    facts: MachineFacts
    sources: Mapping[str, str] = field(default_factory=dict)


def read_inputs(
    run: Path | None, spec: Path | None, npz: Path | None, iket: Path | None, trace: int | None = None
) -> Inputs | None:
    """The input that the options name, None where it is the run folder RUN. `trace` is `--trace`.

    With RUN, `--spec` and `--npz` are outputs. Raises AS9001 when the options name no input or more than one, and what
    `read_spec` and `read_iket` raise.
    """
    named = [name for name, value in (("RUN", run), ("--iket", iket)) if value is not None]
    if run is None and (spec is not None or npz is not None):
        named.append("--spec with --npz")
    if len(named) != 1:
        what = f"{' and '.join(named)} exclude each other" if named else "nothing to report on"
        raise AutostampError.of("AS9001", detail=f"{what}: give RUN, or --spec with --npz, or --iket")
    if iket is not None:
        return from_iket(iket, trace)
    if run is not None:
        if npz is not None and spec is None:
            raise AutostampError.of("AS9001", detail="--npz names the buffer that goes with --spec: give that too")
        return None
    if spec is None or npz is None:
        missing = "--spec SPEC.json, which says what its slots are" if spec is None else "--npz FILE.npz, its buffer"
        raise AutostampError.of("AS9001", detail=f"without RUN both files are inputs: give {missing}")
    return from_spec(spec, npz)


def from_spec(spec: Path, npz: Path) -> Inputs:
    """A hand-stamped fixed-slot buffer by its spec; raises what `read_spec` raises."""
    from autostamp.runtime.spec_file import read_spec

    found = read_spec(spec, npz)
    return Inputs(found.manifest, [found.trace], found.facts)


def from_iket(path: Path, trace: int | None = None) -> Inputs:
    """An IKET trace, all its CTAs or one; raises what `read_iket` raises."""
    from autostamp.model.run import MachineFacts
    from autostamp.runtime.iket import read_iket

    found = read_iket(path, trace)
    return Inputs(found.manifest, list(found.traces), MachineFacts())


def write_spec_files(
    spec: Path,
    npz: Path | None,
    traces: Iterable[tuple[Trace, Timeline, Iterable[Arrow]]],
    manifest: Manifest,
    facts: MachineFacts,
) -> tuple[Path, Path]:
    """Write the spec of the one trace and its buffer (default: beside the spec, as .npz), and return both paths.

    Raises AS9001 when there are several traces, AS7001 when a file cannot be written: then neither is.
    """
    from autostamp.runtime.spec_of_trace import spec_of, write_spec

    chosen = list(traces)
    if len(chosen) != 1:
        numbers = ", ".join(str(trace.kernel.number) for trace, _, _ in chosen)
        raise AutostampError.of("AS9001", detail=f"a slot spec holds one kernel trace: choose with --trace ({numbers})")
    buffer = npz if npz is not None else spec.with_suffix(".npz")
    if buffer == spec:
        raise AutostampError.of("AS9001", detail=f"--spec and --npz are both {spec}")
    ((trace, timeline, arrows),) = chosen
    write_spec(spec, buffer, spec_of(trace, timeline, manifest, arrows, facts), trace)
    return spec, buffer
