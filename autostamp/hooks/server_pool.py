# SPDX-License-Identifier: Apache-2.0
"""Servers of variants from the side that asks: one process for each compilation at a time, started when first needed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from autostamp.hooks.variant_server import ServerConfig
from autostamp.hooks.variants import Sites

TIMEOUT_S: Final = 300.0
"""Longest that one variant may compile."""
STOP_S: Final = 10.0


class ServerError(Exception):
    """A server gave no cubin; the message says why."""


@dataclass
class _Connection:
    """One server: its process, both pipes, its dump folder and what it printed."""

    process: subprocess.Popen[bytes]
    requests: IO[str]
    replies: IO[str]
    dump: Path
    log: Path

    def ask(self, sites: Sites) -> dict[Path, bytes]:
        """The cubins of one variant. Raises ServerError."""
        for path in self.dump.iterdir():
            path.unlink()
        try:
            self.requests.write(json.dumps({"sites": sorted((key, form.value) for key, form in sites)}) + "\n")
            self.requests.flush()
        except OSError as error:
            raise ServerError(f"its server is gone: {self.said()}") from error
        detail = self.reply().get("detail", "")
        if detail:
            raise ServerError(f"{detail}: {self.said()}")
        return {path: path.read_bytes() for path in sorted(self.dump.glob("*.cubin"))}

    def reply(self) -> dict[str, str]:
        """The next reply. Raises ServerError where the server ended instead."""
        line = self.replies.readline()
        if not line:
            raise ServerError(self.said() or "the program ended before it compiled the kernel")
        return dict(json.loads(line))

    def said(self) -> str:
        """The last lines that it printed."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-3:])

    def close(self) -> None:
        """End the server: it leaves when nobody can ask any more."""
        for pipe in (self.requests, self.replies):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class ServerPool:
    """Servers that are started as `python -m autostamp.hooks.variant_server` with what `config` makes of a dump folder.

    `arguments` are the program's. Close it when all variants are built.
    """

    python: Sequence[str]
    arguments: Sequence[str]
    config: Callable[[Path, int, int], ServerConfig]
    environment: Callable[[Path], dict[str, str]]
    _idle: queue.SimpleQueue[_Connection] = field(default_factory=queue.SimpleQueue)
    _folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="autostamp-")))
    _started: list[_Connection] = field(default_factory=list)

    def build(self, sites: Sites) -> dict[Path, bytes]:
        """The cubins of one variant, from an idle server or a new one. Raises ServerError."""
        try:
            server = self._idle.get_nowait()
        except queue.Empty:
            server = self._start()
        cubins = server.ask(sites)
        self._idle.put(server)  # one that failed is not used again
        return cubins

    def close(self) -> None:
        """End all servers."""
        for server in self._started:
            server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> _Connection:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        dump = folder / "cubins"
        dump.mkdir()
        (asked, ask), (answer, answered) = os.pipe(), os.pipe()
        config, log = folder / "config.json", folder / "log"
        config.write_bytes(msgspec.json.encode(self.config(dump, asked, answered)))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self.python, "-m", "autostamp.hooks.variant_server", str(config), *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment(dump),
                pass_fds=(asked, answered),
            )
        os.close(asked)
        os.close(answered)
        server = _Connection(process, os.fdopen(ask, "w"), os.fdopen(answer), dump, log)
        self._started.append(server)
        server.reply()
        return server
