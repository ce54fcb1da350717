# SPDX-License-Identifier: Apache-2.0
"""Which function made ptxas refuse a stamped unit.

A stamp names registers that its kernel declares (PTX ISA, "Identifiers": a name is known inside the braces it is declared in).
In a function that was not inlined they are unknown. ptxas gives the line of a file that nvcc deletes, so the unit is compiled
once more with its intermediate files kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_UNKNOWN: Final = re.compile(rb"^ptxas (.+), line (\d+); error\s*: Unknown symbol 'autostamp_\w+'", re.MULTILINE)
_FUNCTION: Final = re.compile(r"\.(?:func|entry)\s+(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)")
_DEMANGLERS: Final = ("cu++filt", "c++filt")


def is_one(said: bytes) -> bool:
    """True when ptxas's output holds an unknown name of ours."""
    return _UNKNOWN.search(said) is not None


def functions(words: list[str], environment: Mapping[str, str]) -> list[str]:
    """The functions that hold such a stamp, demangled where a demangler is found; empty when they can't be told.

    `words` is the command that failed; it is run again.
    """
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        kept = [*words, "--keep", "--keep-dir", folder]
        done = subprocess.run(
            kept, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, close_fds=False, check=False
        )
        names: dict[str, None] = {}
        for file, line in _UNKNOWN.findall(done.stderr):
            try:
                text = Path(os.fsdecode(file)).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            found = _FUNCTION.findall("\n".join(text.splitlines()[: int(line)]))
            if found:
                names[found[-1]] = None
    return [_demangled(name) for name in names]


def _demangled(name: str) -> str:
    tool = next(filter(None, map(shutil.which, _DEMANGLERS)), None)
    if tool is None:
        return name
    done = subprocess.run([tool, name], capture_output=True, text=True, check=False)
    return done.stdout.strip() or name
