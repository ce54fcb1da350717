# SPDX-License-Identifier: Apache-2.0
"""The slot manifest: what maps every record back to the source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autostamp.model.site import KernelDef, Site, Skip

MANIFEST_VERSION = 1


class Payload(StrEnum):
    """What the upper half of a record's event word holds for an instance.

    STAGE: ring index. ADDRESS: shared-memory address of the mbarrier divided by 8 (mbarriers are 8-byte aligned and the
    228 KiB of shared memory of compute capability 9.0 need 15 bits). BARRIER_ID: hardware barrier number, 0 to 15.
    """

    NONE = "none"
    STAGE = "stage"
    ADDRESS = "address"
    BARRIER_ID = "barrier-id"


class EventKind(StrEnum):
    """What one stamp marks."""

    ENTER = "enter"
    EXIT = "exit"
    SIGNAL = "signal"
    BEGIN = "begin"
    END = "end"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One stamped file. `key` is the first 16 hex digits of the SHA-256 of the original bytes.

    `forms` has the sites of CUDA C++ whose stamps are not in the form `both` (`model.placement.Form`), by site number.
    """

    key: str
    path: str
    module: str
    sha256: str
    sites: tuple[Site, ...]
    skips: tuple[Skip, ...]
    kernels: tuple[KernelDef, ...]
    language: str = "cutedsl"
    forms: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class UnitFile:
    """Where one file's numbers begin in a unit: site n enters (or signals) as event `events` + 2n - 1 and exits as
    `events` + 2n; kernel k has slot `kernels` + k - 1.
    """

    key: str
    events: int
    kernels: int


@dataclass(frozen=True, slots=True)
class Unit:
    """The stamped files that one compilation of CUDA C++ may hold, numbered together.

    `signature` is 32 bits of a hash over the files' keys and their stamps. A lane's signature is this plus the kernel's slot.
    """

    signature: int
    files: tuple[UnitFile, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier as the trace knew it: `label` is what a reader sees, `number` is unique within one kernel trace.

    `stages` is the ring depth (0: unknown or not a ring); `is_inferred` is true where identity rests on source text.
    """

    number: int
    label: str
    type: str
    stages: int
    is_inferred: bool


@dataclass(frozen=True, slots=True)
class Instance:
    """One site as reached by one call path while one kernel was traced.

    `number` counts from 1 within the kernel trace. `enter`, `exit` and `signal` are event numbers (0: this instance has no
    such stamp). `stage` is the ring index when it is a constant, -1 otherwise. `is_noop` marks a call that emits nothing.
    Of an instance of kind `work`, a region of bracketed work, `enter` and `exit` are the begin and the end. `form` says where the
    stamps stand (`model.placement.Form`): empty for the usual places, a wait's before and after the call, a signal's after it.
    """

    number: int
    file: str
    site: int
    role: str
    call_path: tuple[str, ...]
    kind: str
    side: str
    barrier: int
    payload: Payload
    stage: int = -1
    enter: int = 0
    exit: int = 0
    signal: int = 0
    signals: tuple[str, ...] = ()
    is_noop: bool = False
    is_async: bool = False
    form: str = ""


@dataclass(frozen=True, slots=True)
class KernelTrace:
    """One kernel as one compilation traced it: the table that its records are decoded with.

    `region` numbers the buffer region it writes to; compilations of one kernel that differ only in what the tracer cannot
    see share one, and `signature` (stored with the records) says which of them wrote last. `block` is the CTA that records;
    `blocks` says which do where there are several (`all`, `0..7`, `0,0,0;5,0,0`), and then `block` is the first that is listed.
    """

    number: int
    kernel: str
    file: str
    capacity: int
    block: tuple[int, int, int]
    region: int
    signature: int
    barriers: tuple[Barrier, ...]
    instances: tuple[Instance, ...]
    symbol: str = ""
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything needed to read records: source files with their sites, and kernel traces with their instances."""

    version: int
    tool: str
    files: tuple[SourceFile, ...]
    traces: tuple[KernelTrace, ...] = ()
    options: dict[str, str] | None = None
    unit: Unit | None = None
