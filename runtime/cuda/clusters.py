# SPDX-License-Identifier: Apache-2.0
"""Launching with a cluster: cupy's launch has no attribute for it, so the driver is called directly.

Types and numbers are those of cuda.h (CUDA driver API, cuLaunchKernelEx and CUlaunchConfig).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Final

_CLUSTER_DIMENSION: Final = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION."""

NON_PORTABLE_CLUSTER_SIZE_ALLOWED: Final = 14
"""CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED."""

PORTABLE_CLUSTER_SIZE: Final = 8
MAX_CLUSTER_SIZE: Final = 16
"""CTAs of a cluster: 8 on every device that has clusters, 16 where the device and the kernel allow it (CUDA C++ Programming
Guide, thread block clusters).
"""


class _Dimensions(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _AttributeValue(ctypes.Union):
    _fields_ = (("pad", ctypes.c_char * 64), ("cluster", _Dimensions))


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", _AttributeValue))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", _Dimensions),
        ("block", _Dimensions),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


def config(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
    shared_bytes: int,
    stream: int,
) -> LaunchConfig:
    """The configuration of one launch; it keeps its attribute alive."""
    attribute = _Attribute(id=_CLUSTER_DIMENSION)
    attribute.value.cluster = _Dimensions(*cluster)
    return LaunchConfig(_Dimensions(*grid), _Dimensions(*block), shared_bytes, stream, ctypes.pointer(attribute), 1)


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def launch(function: int, launch_config: LaunchConfig, parameters: Sequence[bytes]) -> None:
    """Launch a function handle with each parameter's bytes. Raises RuntimeError with the driver's name for what went wrong."""
    holders = [ctypes.create_string_buffer(data, len(data)) for data in parameters]
    pointers = (ctypes.c_void_p * max(len(holders), 1))(*(ctypes.addressof(holder) for holder in holders))
    driver = _driver()
    status = driver.cuLaunchKernelEx(ctypes.byref(launch_config), ctypes.c_void_p(function), pointers, None)
    if status:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(name.value.decode() if name.value else f"CUDA driver error {status}")
