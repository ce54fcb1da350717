# SPDX-License-Identifier: Apache-2.0
"""Variants of a CuTe-DSL kernel: the user's program compiles the kernel and leaves the cubin behind."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from autostamp.diagnostics import AutostampError
from autostamp.hooks import caches
from autostamp.hooks.program import Config, Report
from autostamp.hooks.server_pool import TIMEOUT_S, ServerError, ServerPool
from autostamp.hooks.variant_server import ServerConfig
from autostamp.hooks.variants import Candidate, Sites, Target
from autostamp.model.manifest import KernelTrace, Manifest
from autostamp.model.options import InstrumentOptions, RecordOptions
from autostamp.model.placement import forms_of, site_key
from autostamp.model.sync import Kind
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.prediction_file import digest_of_sources

LAST_LINES: Final = 3
"""How much of what a failed program said goes into the finding."""


@dataclass
class CuteBuilder:
    """`python` with its flags runs `arguments` (a script or `-m` module with its own), whose modules `targets` hold the kernel.

    `pattern` chooses the kernel by its name in the source or in the cubin, * and ? allowed. Programs run in this process's
    environment, with the DSL told to keep cubins and with caches of compiled kernels off. Where they launch what they compile,
    on a GPU, `is_compile_only` is off: stamped kernels need memory to write to.
    """

    python: Sequence[str]
    arguments: Sequence[str]
    targets: Sequence[str]
    pattern: str = "*"
    is_compile_only: bool = True
    options: InstrumentOptions = field(default_factory=InstrumentOptions)
    _found: Target | None = None
    _pool: ServerPool | None = None

    def target(self) -> Target:
        """Compile clean and with all stamps. Raises AS8106 where no kernel was stamped, AS8107 where the program fails."""
        with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
            clean, stamped = Path(folder, "clean"), Path(folder, "stamped")
            done = self._run([*self.python, *self.arguments], clean)
            if done.returncode:
                raise AutostampError.of("AS8107", detail=_said(done))
            manifest, cubins, toolchain = self._stamped(stamped, self.options)
            traces = self._matching(manifest)
            trace = max(traces, key=lambda each: len(each.instances))
            self._found = Target(
                symbol=trace.symbol,
                clean=_holding(_cubins(clean), trace.symbol),
                candidates=_candidates(manifest, trace),
                files=tuple(sorted({row.file for row in trace.instances} | {trace.file})),
                digest=digest_of_sources(manifest),
                toolchain=toolchain,
                others=tuple(dict.fromkeys(each.symbol for each in traces if each.symbol != trace.symbol)),
            )
            _holding(cubins, trace.symbol)
        self._pool = ServerPool(self.python, self.arguments, self._server, _environment)
        return self._found

    def build(self, sites: Sites) -> bytes:
        """The cubin with exactly these stamps. Raises AS8104."""
        assert self._found is not None, "target() comes first"
        assert self._pool is not None
        try:
            return _holding(self._pool.build(sites), self._found.symbol)
        except (ServerError, AutostampError) as error:
            raise AutostampError.of("AS8104", sites=_listed(sites), detail=str(error)) from error

    def close(self) -> None:
        """End the servers."""
        if self._pool is not None:
            self._pool.close()

    def _server(self, dump: Path, requests: int, replies: int) -> ServerConfig:
        assert self._found is not None
        selection = replace(self.options.selection, files=self._found.files)
        settings = self._settings(dump, replace(self.options, selection=selection))
        return ServerConfig(settings, self._found.symbol, str(dump), requests, replies, TIMEOUT_S)

    def _settings(self, folder: Path, options: InstrumentOptions) -> Config:
        return Config(
            targets=tuple(self.targets),
            out=str(folder / "run"),
            report=str(folder / "report.json"),
            record=RecordOptions(),
            instrument=options,
            compile_only=self.is_compile_only,
            command=tuple(self.arguments),
        )

    def _stamped(self, folder: Path, options: InstrumentOptions) -> tuple[Manifest, Mapping[Path, bytes], str]:
        """Run the program under the hook, compiling only: its manifest, the cubins that it left, and what compiled them."""
        folder.mkdir(parents=True, exist_ok=True)
        config, report, run = folder / "config.json", folder / "report.json", folder / "run"
        config.write_bytes(msgspec.json.encode(self._settings(folder, options)))
        done = self._run(
            [*self.python, "-m", "autostamp.hooks.program", str(config), *self.arguments], folder / "cubins"
        )
        if done.returncode:
            raise AutostampError.of("AS8107", detail=_said(done))
        made = msgspec.json.decode(report.read_bytes(), type=Report)
        findings = made.findings
        if not (run / "manifest.json").is_file():
            detail = findings[0].message if findings else "the program left no manifest"
            raise AutostampError.of("AS8106", detail=detail, hint="Name what holds the kernel with --instrument.")
        return read_manifest(run / "manifest.json"), _cubins(folder / "cubins"), made.toolchain

    def _run(self, command: Sequence[str], dump: Path) -> subprocess.CompletedProcess[str]:
        dump.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            command, env=_environment(dump), capture_output=True, text=True, errors="replace", check=False
        )

    def _matching(self, manifest: Manifest) -> list[KernelTrace]:
        """The kernels that match the pattern; the one with the most stamps is taken. Raises AS8106."""
        found = [
            each
            for each in manifest.traces
            if fnmatchcase(each.kernel, self.pattern) or fnmatchcase(each.symbol, self.pattern)
        ]
        if not found:
            there = ", ".join(each.kernel for each in manifest.traces) or "none"
            detail = f"no stamped kernel matches {self.pattern} (compiled were: {there})"
            raise AutostampError.of("AS8106", detail=detail, hint="Choose one with --kernel.")
        return found


def _environment(dump: Path) -> dict[str, str]:
    """The DSL's older and newer switches for keeping cubins, and caches off."""
    kept = {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_KEEP_CUBIN": "1", "CUTE_DSL_DUMP_DIR": str(dump)}
    return {**os.environ, **caches.switched_off(), **kept}


def _candidates(manifest: Manifest, trace: KernelTrace) -> tuple[Candidate, ...]:
    """The sites that the kernel reaches, in the order of their first instances. Raises AS8106 when there is none."""
    files = {file.key: file for file in manifest.files}
    roles: dict[tuple[str, int], list[str]] = {}
    for row in trace.instances:
        roles.setdefault((row.file, row.site), []).append(row.role)
    found = []
    for (key, number), reached in roles.items():
        site = next(each for each in files[key].sites if each.number == number)
        text = " ".join(site.text.split())
        is_wait = site.kind is Kind.WAIT
        forms = forms_of(is_wait=is_wait, is_deferred=site.side.is_deferred)
        found.append(Candidate(site_key(files[key], site), tuple(dict.fromkeys(reached)), is_wait, text, forms))
    if not found:
        detail = f"{trace.kernel} reaches no site"
        raise AutostampError.of("AS8106", detail=detail, hint="Name the modules of its helpers with --instrument, too.")
    return tuple(found)


def _cubins(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.glob("*.cubin"))}


def _holding(cubins: Mapping[Path, bytes], symbol: str) -> bytes:
    """The cubin whose names include the kernel's. Raises AS8106 where none does."""
    for data in cubins.values():
        if symbol.encode() in data:
            return data
    detail = f"the program left no cubin of {symbol} ({len(cubins)} cubins there)"
    hint = "It may serve a kernel from a cache of its own, or be run without compiling."
    raise AutostampError.of("AS8106", detail=detail, hint=hint)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
    return f"status {done.returncode}: {' | '.join(lines[-LAST_LINES:]) or 'no output'}"


def _listed(sites: Sites) -> str:
    keys = sorted(key.partition("@")[0] for key, _ in sites)
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
