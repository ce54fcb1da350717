# SPDX-License-Identifier: Apache-2.0
"""Finding and running NVIDIA's binary tools, nvdisasm and cuobjdump. Neither needs a GPU or a driver."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError

DISTRIBUTIONS: Final = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump"}
"""The PyPI distribution that carries each tool; `autostamp[cutedsl]` installs both."""

HOMES: Final = ("CUDA_HOME", "CUDA_PATH")
TIMEOUT_S: Final = 300


def find(tool: str) -> Path:
    """The tool's path: from its wheel in this environment, then CUDA_HOME or CUDA_PATH, then PATH.

    The wheel comes first because its version is one that autostamp asked for, while a toolkit on the machine may be too old
    to know the cubin's architecture. Raises AS4002 when there is none.
    """
    candidates = [_in_wheel(tool), *(Path(os.environ[home], "bin", tool) for home in HOMES if os.environ.get(home))]
    for candidate in candidates:
        if candidate is not None and os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    on_path = shutil.which(tool)
    if on_path is None:
        raise AutostampError.of("AS4002", tool=tool)
    return Path(on_path)


def _in_wheel(tool: str) -> Path | None:
    # The folder differs between versions of the wheels (nvidia/cu13/bin, nvidia/cuda_nvdisasm/bin), so ask the record.
    try:
        files = metadata.files(DISTRIBUTIONS[tool]) or []
    except (KeyError, metadata.PackageNotFoundError):
        return None
    for file in files:
        if file.name == tool and file.parent.name == "bin":
            return Path(str(file.locate()))
    return None


def run(tool: str, option: str, file: Path) -> str:
    """What `tool option file` prints on stdout. Raises AS4002 when the tool is missing and AS4003 when it fails."""
    command = [str(find(tool)), option, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AutostampError.of("AS4003", tool=tool, detail=f"`{' '.join(command)}`: {error}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        detail = f"`{' '.join(command)}` ended with status {done.returncode}: {said[-1] if said else 'no output'}"
        raise AutostampError.of("AS4003", tool=tool, detail=detail)
    return done.stdout
