# SPDX-License-Identifier: Apache-2.0
"""Threads of a CTA as the kernels of a cubin were compiled for."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path
from typing import Final

from autostamp.runtime import toolchain

_SECTION: Final = re.compile(r"^\s*\.nv\.info\.(\S+)\s*$", re.MULTILINE)
_THREADS: Final = re.compile(r"EIATTR_(?:REQNTID|MAX_THREADS)\s+Format:\s*\S+\s+Value:\s*((?:0x[0-9a-f]+\s*){3})")


def threads(file: Path) -> dict[str, int]:
    """By (mangled) name: the threads that `__launch_bounds__` or `.reqntid` allows a CTA. A kernel without either is absent.

    Read by `cuobjdump -elf`, attributes EIATTR_MAX_THREADS and EIATTR_REQNTID. Raises AS4002 and AS4003 as `toolchain.run`.
    """
    return parse(toolchain.run("cuobjdump", "-elf", file))


def parse(text: str) -> dict[str, int]:
    """As `threads`, from what cuobjdump printed."""
    found = {}
    sections = list(_SECTION.finditer(text))
    ends = [*(after.start() for after in sections[1:]), len(text)]
    for section, end in zip(sections, ends, strict=False):
        match = _THREADS.search(text, section.end(), end)
        if match:
            found[section[1]] = prod(int(each, 16) for each in match[1].split())
    return found
