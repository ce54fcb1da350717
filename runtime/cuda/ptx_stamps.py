# SPDX-License-Identifier: Apache-2.0
"""Which stamps a compiled unit holds, from its PTX: every stamp of CUDA C++ begins with the comment `// autostamp EVENT`.

A unit of templates has far more sites than any kernel of it. What was instantiated is in the PTX, each stamp in the body of the
kernel that it was inlined into, or of a function that is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LINE: Final = re.compile(
    r"^\s*(?:\.(?:visible|weak|extern|noreturn)\s+)*\.(?P<kind>entry|func)\b(?P<head>[^\n]*)$"
    r"|^\s*//\s*autostamp (?P<event>\d+)\s*$",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)")


def events_of(ptx: str) -> Mapping[str, frozenset[int]]:
    """The event numbers in each kernel, by its symbol; those of functions that are called are in every kernel's."""
    kernels: dict[str, set[int]] = {}
    called: set[int] = set()
    current = called
    for match in _LINE.finditer(ptx):
        if match["event"]:
            current.add(int(match["event"]))
        elif match["kind"] == "func":
            current = called
        else:
            name = _NAME.search(match["head"])
            current = kernels.setdefault(name[1], set()) if name else called
    return {symbol: frozenset(events | called) for symbol, events in kernels.items()}
