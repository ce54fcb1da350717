# SPDX-License-Identifier: Apache-2.0
"""Variants of one kernel: builds that differ in which sites are stamped, and how far each is from the clean build."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, TypeAlias

import msgspec

from autostamp import __version__
from autostamp.diagnostics import AutostampError
from autostamp.hooks.state import StateFolder, write_whole
from autostamp.model.cubin import CubinFacts
from autostamp.model.placement import Form, ScheduleFeatures
from autostamp.passes import schedule_features
from autostamp.runtime import cubin

Sites: TypeAlias = frozenset[tuple[str, Form]]
"""Sites of one variant by key, each with its form."""

KEPT_S: Final = 14 * 24 * 3600
"""How long a cached variant is kept that nobody uses."""

_SIGNAL_S: Final = 0.1
"""How long the handler of a signal may take until a search is known to stop."""

STAMP_SOURCES: Final = (("runtime", ".py .cuh"), ("passes", ".py"))
"""What decides which instructions a stamp becomes: part of the name under which a variant's cubin is cached."""

MEASURES: Final = "loop schedule trip_code"
"""How the names of those modules and data of `passes` begin that only compare cubins: they decide what is read from one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A site that a kernel reaches: its key, the roles that reach it (empty: none is known), whether it waits, and its text.

    `forms` are those in which it can be stamped; empty: the ones that every wait or signal has.
    """

    key: str
    roles: tuple[str, ...]
    is_wait: bool
    text: str
    forms: tuple[Form, ...] = ()

    def other_forms(self) -> tuple[Form, ...]:
        """What may be tried where the usual form perturbs."""
        usual = (Form.ENTER, Form.EXIT) if self.is_wait else ()
        return tuple(form for form in self.forms or usual if form is not Form.BOTH)


@dataclass(frozen=True, slots=True)
class Target:
    """What a builder builds: the kernel's symbol, its clean cubin, the sites it reaches, and its sources.

    `files` are the manifest's keys of the files that it was traced through, `digest` is over all of them. `toolchain`
    compiled it. `others` are symbols of kernels that were asked for just as much.
    """

    symbol: str
    clean: bytes
    candidates: tuple[Candidate, ...]
    files: tuple[str, ...]
    digest: str
    toolchain: str = ""
    others: tuple[str, ...] = ()


class Builder(Protocol):
    """One language's way to compile a kernel with chosen stamps."""

    def target(self) -> Target:
        """Compile clean and with all stamps, and say what there is. Raises AS8106 and AS8107."""

    def build(self, sites: Sites) -> bytes:
        """The cubin that holds the kernel with exactly these stamps. Called by several threads at once. Raises AS8104."""

    def close(self) -> None:
        """Let go of what builds need."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant against the clean build. `roles` are those whose main loop holds a stamp."""

    features: ScheduleFeatures
    roles: frozenset[str]


@dataclass
class Variants:
    """Every variant of a target that was asked for, each compiled once: what `state` holds is not compiled again.

    `clean` is the clean build, `compiles` counts compilations, `failures` holds the finding of each variant that did not compile
    before the search was to stop (`is_stopped`).
    """

    builder: Builder
    target: Target
    state: StateFolder
    compiles: int = 0
    failures: dict[Sites, AutostampError] = field(default_factory=dict)
    is_stopped: bool = False
    _known: dict[Sites, Measured | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.clean = schedule_features.Outline(_kernel(self.target.clean, self.target.symbol))

        _prune(self.state.root / "variants")

    def measure(self, sites: Sites) -> Measured | None:
        """What these stamps do to the schedule; None where the variant does not compile."""
        if sites not in self._known:
            try:
                self._known[sites] = self._measured(sites)
            except AutostampError as error:
                # A signal that ends the search ends compilers, too: its handler has time to say so.
                time.sleep(_SIGNAL_S)
                if self.is_stopped:
                    return None
                self.failures[sites] = error
                self._known[sites] = None
        return self._known[sites]

    def known(self, sites: Sites) -> Measured | None:
        """What was measured of a variant already; None for one that failed, or was not asked for yet."""
        return self._known.get(sites)

    def measure_all(self, variants: Iterable[Sites], jobs: int) -> None:
        """Compile several at a time, so that `measure` finds them."""
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            list(pool.map(self.measure, variants))

    def _measured(self, sites: Sites) -> Measured:
        """From the state folder, else compiled and kept there: cubin and features."""
        name = self._name(sites)
        endings = ("cubin", f"{_measures_digest()}.json")
        path, known = (self.state.root / "variants" / f"{name}.{ending}" for ending in endings)
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode(known.read_bytes(), type=Measured)
            for each in (path, known):
                os.utime(each)  # what was used lately is not removed
            return found
        try:
            data = path.read_bytes()
        except OSError:
            data = self.builder.build(sites)
            with self._lock:
                self.compiles += 1
        outline = schedule_features.Outline(_kernel(data, self.target.symbol))
        found = Measured(schedule_features.features(self.clean, outline), outline.stamped_roles)
        write_whole(path, data)
        write_whole(known, msgspec.json.encode(found))
        return found

    def _name(self, sites: Sites) -> str:
        """A digest of all that the variant depends on: the clean cubin stands for program, options and compiler."""
        content = [
            __version__,
            _stamps_digest(),
            self.target.symbol,
            hashlib.sha256(self.target.clean).hexdigest(),
            self.target.digest,
            sorted((key, form.value) for key, form in sites),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _kernel(data: bytes, symbol: str) -> CubinFacts:
    """The kernel of a cubin by its name, or by the name that a threaded parameter lengthens. Raises AS8104."""
    kernels = cubin.read(data)
    named = [each for each in kernels if each.kernel == symbol]
    begun = [each for each in kernels if each.kernel.startswith(symbol) or symbol.startswith(each.kernel)]
    for each in (*named, *begun):
        return each
    there = ", ".join(each.kernel for each in kernels) or "none"
    raise AutostampError.of("AS8104", sites="?", detail=f"no kernel {symbol} in the cubin (it holds {there})")


def _prune(folder: Path) -> None:
    """Remove variants that were not used for a while."""
    limit = time.time() - KEPT_S
    for path in folder.glob("*.*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < limit:
                path.unlink()


@cache
def _stamps_digest() -> str:
    """Over the sources that stamps are made by."""
    digest = hashlib.sha256()
    for package, endings in STAMP_SOURCES:
        with resources.as_file(resources.files("autostamp") / package) as folder:
            for file in sorted(path for path in Path(folder).rglob("*") if path.suffix in endings.split()):
                if not file.name.startswith(tuple(MEASURES.split())):
                    digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _measures_digest() -> str:
    """Over the sources that compare cubins, and their weights."""
    digest = hashlib.sha256()
    with resources.as_file(resources.files("autostamp") / "passes") as folder:
        for file in sorted(path for path in Path(folder).iterdir() if path.suffix in (".py", ".toml")):
            if file.name.startswith(tuple(MEASURES.split())):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
