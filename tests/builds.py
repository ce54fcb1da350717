# SPDX-License-Identifier: Apache-2.0
"""Folders that a subprocess fills once and many tests read, whichever of pytest's workers they run in."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 600

_BASE_FOLDER = threading.Lock()


def run_module(module: str, *arguments: object, timeout_s: int = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments` in the checkout, with this interpreter."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def build_once(factory: pytest.TempPathFactory, name: str, module: str, *arguments: object) -> Path:
    """The folder `name`, which `python -m module FOLDER arguments` filled. Workers wait for the first one that needs it."""
    # pytest makes its folder on the first call and two threads that make it at once end in FileExistsError.
    with _BASE_FOLDER:
        base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = root / name, root / f"{name}.done"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            result = run_module(module, folder, *arguments)
            if result.returncode != 0:
                message = (
                    f"{module} {' '.join(map(str, arguments))} ended with {result.returncode}:\n{result.stderr[-4000:]}"
                )
                raise RuntimeError(message)
            done.touch()
    return folder
