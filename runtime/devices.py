# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, as the driver tells them."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DRIVER_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `cuda` is the newest CUDA version that the driver supports ("12.9"), `sm_count` is 0 when unknown."""

    name: str
    compute_capability: str
    sm_count: int
    driver: str
    cuda: str


def find_gpus() -> tuple[tuple[Gpu, ...], str]:
    """All GPUs, and why there are none where there are none. Never raises."""
    try:
        gpus = _ask_driver()
    except ImportError:
        gpus = _ask_nvidia_smi()
        return gpus, "" if gpus else "neither cuda-bindings nor nvidia-smi is installed, or nvidia-smi names no GPU"
    except Exception as error:  # the bindings raise their own types when the driver's library is missing or refuses
        is_absent = type(error).__name__ == "DynamicLibNotFoundError"
        return (), "the NVIDIA driver is not installed" if is_absent else str(error)
    return gpus, "" if gpus else "the driver reports no device"


def _ask_driver() -> tuple[Gpu, ...]:
    from cuda.bindings import driver

    def call(function: Any, *arguments: object) -> Any:  # noqa: ANN401  # the bindings are untyped
        status, *values = function(*arguments)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{function.__name__} answered {status.name}")
        return values[0] if values else None

    call(driver.cuInit, 0)
    version = call(driver.cuDriverGetVersion)
    attribute = driver.CUdevice_attribute
    gpus = []
    for number in range(call(driver.cuDeviceGetCount)):
        device = call(driver.cuDeviceGet, number)
        major, minor, sm_count = (
            call(driver.cuDeviceGetAttribute, wanted, device)
            for wanted in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            )
        )
        name = call(driver.cuDeviceGetName, 256, device).split(b"\0")[0].decode()
        cuda = f"{version // 1000}.{version % 1000 // 10}"
        gpus.append(Gpu(name, f"{major}.{minor}", sm_count, _driver_release(), cuda))
    return tuple(gpus)


def _driver_release() -> str:
    try:
        found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", _DRIVER_FILE.read_text())
    except OSError:
        return ""
    return found[1] if found else ""


def _ask_nvidia_smi() -> tuple[Gpu, ...]:
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = [command, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
        header = subprocess.run([command], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_nvidia_smi(rows, header)


def parse_nvidia_smi(rows: str, header: str) -> tuple[Gpu, ...]:
    """Read `nvidia-smi --query-gpu=name,compute_cap,driver_version` rows; the CUDA version stands only in the plain output."""
    found = re.search(r"CUDA Version:\s*(\d+\.\d+)", header)
    cuda = found[1] if found else ""
    gpus = []
    for row in rows.strip().splitlines():
        name, capability, driver = (cell.strip() for cell in row.rsplit(",", 2))
        gpus.append(Gpu(name, capability, 0, driver, cuda))
    return tuple(gpus)
