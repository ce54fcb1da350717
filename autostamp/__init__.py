# SPDX-License-Identifier: Apache-2.0
"""Per-warp timelines of warp-specialized GPU kernels.

`session` stamps modules while they are imported and owns the record buffer, `instrument_source` stamps one text, and
`load_run` reads a run folder; `record_bytes` and `save_run` serve kernels that get their buffer by hand. They are loaded
when first used: `import autostamp` alone imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autostamp.hooks.by_hand import record_bytes, save_run
    from autostamp.hooks.instrument import instrument_source
    from autostamp.hooks.session import session
    from autostamp.runtime.store import load_run

__all__ = ["__version__", "instrument_source", "load_run", "record_bytes", "save_run", "session"]

__version__ = "0.1.0"

_HOME = {
    "instrument_source": "autostamp.hooks.instrument",
    "load_run": "autostamp.runtime.store",
    "record_bytes": "autostamp.hooks.by_hand",
    "save_run": "autostamp.hooks.by_hand",
    "session": "autostamp.hooks.session",
}


if not TYPE_CHECKING:  # a type checker would take any attribute of a module with __getattr__ for a real one

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
