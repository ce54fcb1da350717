# SPDX-License-Identifier: Apache-2.0
"""Programs that are started before their turn: they import and prepare, and their first kernel waits for a file to appear."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from autostamp.runtime.recorder import RECORDER

PAUSE: Final = 0.01
"""Seconds between two looks."""


def wait_for(turn: Path) -> None:
    """Let the first kernel that is compiled, recorded or not, wait until `turn` is there.

    When the process that would make the file has ended, the program ends as well.
    """
    before, parent = RECORDER.at_entry, os.getppid()

    def in_turn() -> None:
        while not turn.exists():
            if os.getppid() != parent:
                raise SystemExit(1)
            time.sleep(PAUSE)
        RECORDER.at_entry = before
        before()

    RECORDER.at_entry = in_turn
