# SPDX-License-Identifier: Apache-2.0
"""CUTLASS's headers as published: the pinned wheel, downloaded once, and its include folder unpacked."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.builds import ROOT

REQUIREMENT = "nvidia-cutlass==4.2.0.0"
CACHE = ROOT / ".cache" / "cutlass"
PREFIX = "cutlass_library/source/include/"


def include_folder() -> Path:
    """The folder to give to -I. Test workers that ask at the same time wait for the first one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / REQUIREMENT.replace("==", "-") / "include"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _unpack(_wheel(), folder)
    return folder


def _wheel() -> Path:
    if not list(CACHE.glob("*.whl")):
        # What the wheel depends on is Python's, and nothing here imports it.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run([*pip, "--dest", str(CACHE), REQUIREMENT], capture_output=True, text=True)
        if done.returncode:
            message = f"pip download {REQUIREMENT} failed:\n{done.stderr.strip()}"
            raise RuntimeError(message)
    (wheel,) = CACHE.glob("*.whl")
    return wheel


def _unpack(wheel: Path, folder: Path) -> None:
    """The folder appears under its name once it is complete."""
    partial = folder.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial, [name for name in archive.namelist() if name.startswith(PREFIX)])
    (partial / PREFIX).rename(folder)
    shutil.rmtree(partial)
