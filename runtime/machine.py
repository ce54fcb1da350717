# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine that made a run."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import platform
import shutil
import subprocess

from autostamp.model.run import MachineFacts

_PACKAGES = (
    "autostamp",
    "nvidia-cutlass-dsl",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
    "flash-attn-4",
    "quack-kernels",
    "numpy",
)


def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that decide what is compiled."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def driver_version() -> str:
    """The display driver's version from nvidia-smi, or ''."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    done = subprocess.run(
        [tool, "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def facts(command: tuple[str, ...], sm_mhz: float) -> MachineFacts:
    """Everything known about this machine; device fields stay empty without cupy or without a device."""
    device = {"gpu": "", "compute_capability": "", "sm_count": 0, "cuda_runtime": ""}
    try:
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
        device = {
            "gpu": properties["name"].decode(),
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "sm_count": int(properties["multiProcessorCount"]),
            "cuda_runtime": str(cupy.cuda.runtime.runtimeGetVersion()),
        }
    except (ImportError, RuntimeError):
        pass
    return MachineFacts(
        driver=driver_version(),
        sm_mhz=sm_mhz,
        versions=versions(),
        recorded_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=command,
        **device,  # type: ignore[arg-type]
    )
