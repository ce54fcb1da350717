# SPDX-License-Identifier: Apache-2.0
"""`// autostamp: off` at the end of a line, or on its own down to `// autostamp: on`."""

from __future__ import annotations

import re

from autostamp.passes.cuda.source import Source

_SWITCH = re.compile(rb"(?://|/\*)[ \t]*autostamp:[ \t]*(off|on)\b[^\n]*")


class Switches:
    """Which bytes of one source are switched off by comments."""

    def __init__(self, source: Source) -> None:
        self._spans: list[tuple[int, int]] = []
        data = source.original
        opened = -1
        for match in _SWITCH.finditer(data) if b"autostamp:" in data else ():
            if source.uncommented[match.start() : match.start() + 2].strip():
                continue  # in a literal
            line_start = data.rfind(b"\n", 0, match.start()) + 1
            if source.uncommented[line_start : match.start()].strip():
                if match[1] == b"off":
                    self._spans.append((line_start, match.end()))
            elif match[1] == b"off" and opened < 0:
                opened = match.start()
            elif match[1] == b"on" and opened >= 0:
                self._spans.append((opened, match.start()))
                opened = -1
        if opened >= 0:
            self._spans.append((opened, len(data)))

    def is_off(self, start: int, end: int) -> bool:
        """True when a call at bytes [start, end) is switched off."""
        return any(start < last and first < end for first, last in self._spans)
