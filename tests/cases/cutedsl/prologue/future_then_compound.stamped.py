from __future__ import annotations; from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY")  # first
try:
    import cutlass.cute as cute
except ImportError:
    cute = None


def step():
    _as.enter(1, text='warp'); cute.arch.sync_warp(); _as.exit(1)
