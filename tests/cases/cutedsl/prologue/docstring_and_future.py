# SPDX-License-Identifier: MIT
"""A module."""

from __future__ import annotations

import cutlass.cute as cute


@cute.jit
def step():
    cute.arch.sync_warp()
