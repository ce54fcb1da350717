from __future__ import annotations  # first
try:
    import cutlass.cute as cute
except ImportError:
    cute = None


def step():
    cute.arch.sync_warp()
