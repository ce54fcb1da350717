# SPDX-License-Identifier: Apache-2.0
"""A picture as PNG: the SVG, drawn by resvg. There is no other drawing path."""

from __future__ import annotations

from typing import Final

from autostamp.report.svg_elements import MONO, SANS

SCALE: Final = 2
"""Pixels of the PNG for one of the SVG: text of 11 px stays sharp on a page or a slide."""

_PROBE: Final = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">{}</svg>'
_LETTERS: Final = '<text x="2" y="16" font-family="{}" font-size="14">MW</text>'


class NoFontError(RuntimeError):
    """This machine has no font to write labels with."""


def png(svg: str) -> bytes:
    """The SVG drawn at SCALE. Raises ModuleNotFoundError without resvg, NoFontError where text would be left out."""
    import resvg_py

    # resvg draws no text and says nothing where it finds no font, so a word is drawn and looked for.
    blank = bytes(resvg_py.svg_to_bytes(svg_string=_PROBE.format("")))
    for family in (SANS, MONO):
        if bytes(resvg_py.svg_to_bytes(svg_string=_PROBE.format(_LETTERS.format(family)))) == blank:
            message = f"no font is installed that stands for {family}"
            raise NoFontError(message)
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=SCALE))
