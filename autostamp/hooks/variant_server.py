# SPDX-License-Identifier: Apache-2.0
"""Many variants of one kernel from one run of a program: `python -m autostamp.hooks.variant_server CONFIG script.py args`.

The program runs, all sites stamped, until the trace of the kernel begins. There it stops and serves: for each request it
forks, and the child traces on with the sites that were asked for, compiles, and leaves the cubin in the dump folder. So
what comes before (importing, stamping, preparing) is done once. The DSL compiles on one thread, so a fork is safe.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from autostamp.hooks import program
from autostamp.hooks.session import Session
from autostamp.model.placement import Form, site_key
from autostamp.runtime.buffer import NoMemory
from autostamp.runtime.recorder import RECORDER

POLL_S: Final = 0.02
_SECTIONS: Final = slice(40, 48)
_SECTION_SIZE: Final = slice(58, 60)
_SECTION_COUNT: Final = slice(60, 62)


class ServerConfig(msgspec.Struct, frozen=True):
    """What the builder passes on: the program's own configuration, the kernel to stop at, and where cubins are dumped.

    `requests` and `replies` are file descriptors: JSON, a line each.
    """

    program: program.Config
    symbol: str
    dump: str
    requests: int
    replies: int
    timeout_s: float


class Server:
    """The process that stopped at the kernel."""

    def __init__(self, config: ServerConfig, session: Session) -> None:
        self._config = config
        self._session = session
        self._requests = os.fdopen(config.requests, "r", encoding="utf-8")
        self._replies = os.fdopen(config.replies, "w", encoding="utf-8")

    def at_kernel(self, symbol: str) -> None:
        """Serve where the trace of the kernel begins. Returns in children, and never in the server itself."""
        if symbol != self._config.symbol:
            return
        self._reply({"ready": True})
        for line in self._requests:
            child = os.fork()
            if child == 0:
                # Nothing of the child is launched, and a device that was opened before a fork cannot be used after it.
                RECORDER.allocate, RECORDER.is_real = NoMemory().allocate, False
                RECORDER.at_kernel = lambda _symbol: None
                RECORDER.forms = self._forms(json.loads(line)["sites"])
                return
            self._reply({"detail": self._wait(child)})
        os._exit(0)

    def _forms(self, sites: list[list[str]]) -> dict[tuple[str, int], Form]:
        forms = {key: Form(form) for key, form in sites}
        return {
            (file.key, site.number): forms[key]
            for file in self._session.files()
            for site in file.sites
            if (key := site_key(file, site)) in forms
        }

    def _wait(self, child: int) -> str:
        """Wait until the child has left the kernel's cubin, and end it: "" then, else what went wrong."""
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < self._config.timeout_s:
                ended, status = os.waitpid(child, os.WNOHANG)
                if _has_cubin(Path(self._config.dump), self._config.symbol):
                    return ""
                if ended:
                    child = 0
                    return f"it ended with status {os.waitstatus_to_exitcode(status)} and left no cubin"
                time.sleep(POLL_S)
            return f"it took longer than {self._config.timeout_s:g} s"
        finally:
            if child:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)

    def _reply(self, value: Mapping[str, Any]) -> None:
        self._replies.write(json.dumps(value) + "\n")
        self._replies.flush()


def _has_cubin(folder: Path, symbol: str) -> bool:
    """True when a cubin of the kernel is there in full: its section table, which comes last, lies within the file."""
    for path in folder.glob("*.cubin"):
        data = path.read_bytes()
        head = data[:64]
        if len(head) == 64 and symbol.encode() in data:
            begin, size, count = (
                int.from_bytes(head[part], "little") for part in (_SECTIONS, _SECTION_SIZE, _SECTION_COUNT)
            )
            if begin and len(data) >= begin + size * count:
                return True
    return False


def main() -> None:
    """Entry point of the server."""
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=ServerConfig)
    given = config.program
    session = Session(given.targets, options=given.record, instrument=given.instrument, compile_only=given.compile_only)
    session.open()
    RECORDER.at_kernel = Server(config, session).at_kernel
    program.execute(sys.argv[2:], session.loaded, given.targets)


if __name__ == "__main__":
    main()
