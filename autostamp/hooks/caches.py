# SPDX-License-Identifier: Apache-2.0
"""Caches of applications that would serve kernels compiled without stamps."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from autostamp.diagnostics import AutostampError


@dataclass(frozen=True, slots=True)
class ApplicationCache:
    """A switch in the environment: `off` turns the cache off; `default_on` says what an unset variable means."""

    application: str
    variable: str
    off: str
    default_on: bool


CACHES = (
    # flash_attn/cute/cache_utils.py of 4.0.0b36; quack/cache.py of quack-kernels 0.6.5.
    ApplicationCache("flash_attn", "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "0", default_on=False),
    ApplicationCache("quack", "QUACK_CACHE_ENABLED", "0", default_on=True),
    # The DSL keys its own file cache by IR, which holds the buffer's address: entries would never be used again.
    ApplicationCache("cutlass", "CUTE_DSL_DISABLE_FILE_CACHING", "1", default_on=False),
)


def switched_off() -> dict[str, str]:
    """Environment that turns every known cache off."""
    return {cache.variable: cache.off for cache in CACHES}


def check() -> None:
    """Raise AS5004 for an application that is imported already with its cache on: its switch was read at import."""
    for cache in CACHES:
        value = os.environ.get(cache.variable)
        is_on = cache.default_on if value is None else value != cache.off
        if is_on and cache.application != "cutlass" and cache.application in sys.modules:
            raise AutostampError.of("AS5004", variable=cache.variable, application=cache.application, value=cache.off)
