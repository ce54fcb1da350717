# SPDX-License-Identifier: Apache-2.0
"""Tests that need a GPU, FlashAttention or Chromium are skipped, and counted, where there is none."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def _why_no_gpu() -> str:
    from autostamp.runtime.devices import find_gpus

    _, note = find_gpus()
    return f"no GPU: {note}" if note else ""


def _why_no_flash() -> str:
    missing = [name for name in ("torch", "flash_attn") if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(missing)} (make test-flash)" if missing else ""


def _why_no_chromium() -> str:
    return "" if any(map(shutil.which, CHROMIUM)) else f"none of {', '.join(CHROMIUM)} on PATH"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, find_reason in (("gpu", _why_no_gpu), ("flash", _why_no_flash), ("browser", _why_no_chromium)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = find_reason() if marked else ""
        for item in marked if reason else []:
            item.add_marker(pytest.mark.skip(reason=reason))
