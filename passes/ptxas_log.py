# SPDX-License-Identifier: Apache-2.0
"""What ptxas says about wgmma while it compiles: the C75xx messages, clean against stamped.

They are `info` lines, printed whatever the warning level, and the only place where it says that it gave up overlapping
matrix instructions ("Potential Performance Loss: wgmma.mma_async instructions are serialized").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_MESSAGE = re.compile(r"\((?P<code>C75\d\d)\) (?P<text>.+?) in (?:the )?function '(?P<function>[^']+)'")
_PLACE = re.compile(r" in around line \d+")
"""Where in the PTX: stamps move every line."""


def messages(log: str) -> Counter[tuple[str, str, str]]:
    """How often each (code, text, function) stands in the compiler's output. Places in the PTX are left out of the text."""
    found = (match.group("code", "text", "function") for match in _MESSAGE.finditer(log))
    return Counter((code, _PLACE.sub("", text), function) for code, text, function in found)


def added(clean: str, stamped: str) -> Iterator[str]:
    """A sentence for each C75xx message that the stamped build gives more often than the clean one.

    Functions are not compared by name, because a buffer threaded in as a parameter changes the mangled name.
    """
    before: Counter[tuple[str, str]] = Counter()
    for (code, text, _), count in messages(clean).items():
        before[code, text] += count
    for (code, text, function), count in messages(stamped).items():
        known = min(count, before[code, text])
        before[code, text] -= known
        if count > known:
            yield f"ptxas says {code} of the stamped build alone: {text}, in {function}"
