# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that opens from disk: the built page with the document inside it, compressed."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

MARKER: Final = "<!--AUTOSTAMP-DOCUMENT-->"
TITLE: Final = "AUTOSTAMP-TITLE"
ELEMENT_ID: Final = "autostamp-document"
_LEVEL: Final = 4
"""Of gzip. On a million records, measured: level 6 takes three times as long and saves 7 %, level 9 thirty times and 9 %."""


def template() -> str:
    """The page as `web/` builds it, without a document."""
    return resources.files("autostamp.report").joinpath("assets", "report.html").read_text(encoding="utf-8")


def page(document: Mapping[str, Any], built: str | None = None) -> bytes:
    """The file's bytes; the same document in the same page gives the same bytes. `built` is the page, by default the own one.

    Raises ValueError when the page does not hold both markers once.
    """
    built = template() if built is None else built
    for marker in (MARKER, TITLE):
        if built.count(marker) != 1:
            message = f"the built page holds {marker} {built.count(marker)} times, not once"
            raise ValueError(message)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode("ascii")
    element = f'<script type="application/octet-stream" id="{ELEMENT_ID}">{packed}</script>'
    before, after = built.split(MARKER)
    title = html.escape(str(document["title"]))
    return "".join((before.replace(TITLE, title), element, after.replace(TITLE, title))).encode()
