# SPDX-License-Identifier: Apache-2.0
"""SVG elements as text: numbers, escaping, text that is cut to its room, axis steps, and the colours of the picture."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

SANS: Final = "ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
MONO: Final = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"

BACKGROUND: Final = "#ffffff"
UNTRACKED: Final = "#e9edf1"
IDLE: Final = "#b4bec7"
PASS: Final = "#93a3b1"
INK: Final = "#1f2933"
FAINT_INK: Final = "#5b6770"
ALARM: Final = "#b00020"

ROLES: Final = ("#2c6cb8", "#1d8a6b", "#6a51a8", "#4f6d7a", "#0d7f9e", "#66801f")
"""Solid colours of active time, cool and dark enough for white letters; roles beyond them begin again."""

STALLS: Final = (
    ("#e8502e", 45),
    ("#f0a202", 135),
    ("#c2185b", 45),
    ("#8d5a2b", 135),
    ("#f06fa4", 90),
    ("#a31515", 0),
    ("#c9b400", 45),
    ("#d07be0", 135),
)
"""Colour and angle (degrees) of the hatching of stalls, warm, one per barrier from the most waited for downwards."""

OTHER_STALL: Final = ("#7d7d7d", 0)
"""Stalls on all barriers that no colour is left for."""

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Advance over font size, rounded up to that of the widest common fonts, DejaVu Sans (Mono) and Verdana.
_MONO_WIDTH = 0.605
_NARROW = frozenset("iljftrI.,:;'|![]()/ ")
_WIDE = frozenset("mwMW%@")
_SANS_WIDTHS = (0.42, 0.64, 0.78, 1.0)
_STEPS = (1, 2, 5, 10)


def figure(value: float) -> str:
    """A coordinate with at most two decimals: finer than a screen shows, and the same text everywhere."""
    digits = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def faded(element: str) -> str:
    """The element in a faint form, for what may not be so."""
    return f'<g opacity="0.4">{element}</g>'


def escaped(text: str) -> str:
    """Text for XML 1.0; characters that it cannot hold are shown as U+FFFD."""
    return escape(_NO_XML.sub("\ufffd", text), {'"': "&quot;"})


def width_of(text: str, size: float) -> float:
    """Upper estimate of the width in pixels of sans-serif text, in bold or not, at a font size in pixels."""
    narrow, plain, upper, wide = _SANS_WIDTHS
    widths = (
        narrow if letter in _NARROW else wide if letter in _WIDE else upper if letter.isupper() else plain
        for letter in text
    )
    return sum(widths) * size


def mono_width_of(text: str, size: float) -> float:
    """Width in pixels of monospaced text."""
    return len(text) * size * _MONO_WIDTH


def fitted(text: str, room: float, size: float) -> str:
    """Sans-serif text, cut with an ellipsis where it is wider than `room` pixels; empty when not even that fits."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(text, size) + size > room:
        text = text[:-1]
    return f"{text}…" if text else ""


def wrapped(text: str, room: float, size: float) -> list[str]:
    """The text as lines of at most `room` pixels, broken between words; a word that is wider alone is cut."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(fitted(word, room, size))
    return lines


def text(x: float, y: float, content: str, classes: str, anchor: str = "") -> str:
    """One line of text whose baseline begins at (x, y), or with `anchor` is centred there (middle) or ends there (end)."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{classes}" x="{figure(x)}" y="{figure(y)}"{placed}>{escaped(content)}</text>'


def rect(x: float, y: float, width: float, height: float, classes: str, title: str = "") -> str:
    """A rectangle of the given class, with `title` as what is shown where the pointer rests on it."""
    shape = f'<rect class="{classes}" x="{figure(x)}" y="{figure(y)}" width="{figure(width)}" height="{figure(height)}"'
    return f"{shape}><title>{escaped(title)}</title></rect>" if title else f"{shape}/>"


def steps(low: float, high: float, most: int) -> list[float]:
    """Round values from `low` to `high`, 1, 2 or 5 times a power of ten apart: at most `most` such gaps."""
    if high <= low or most < 1:
        return []
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in _STEPS if power * factor >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def step_labels(values: Sequence[float]) -> list[str]:
    """Axis labels with just the decimals that tell neighbours apart."""
    gap = values[1] - values[0] if len(values) > 1 else 1
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    return [f"{value:,.{decimals}f}" for value in values]


def style() -> str:
    """Style sheet and hatch patterns. The same in every picture, so that several may stand in one page."""
    rules = [
        f"text{{font-family:{SANS};font-size:12px;fill:{INK}}}",
        f".m{{font-family:{MONO};font-size:11px}}",
        f".f{{fill:{FAINT_INK}}}",
        ".h{font-size:15px;font-weight:600}",
        ".b{font-weight:600}",
        f".w{{fill:{ALARM}}}",
        f".in{{font-family:{MONO};font-size:10px;pointer-events:none}}",
        ".on{fill:#fff}",
        ".over{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}",
        f".u{{fill:{UNTRACKED}}}",
        ".grid{stroke:#000;stroke-opacity:.13;pointer-events:none}",
        f".axis{{stroke:{FAINT_INK}}}",
        f".i{{fill:{IDLE}}}",
        f".p{{fill:{PASS}}}",
        ".a{stroke-width:1.1;fill:none}",
        ".d{stroke-dasharray:4 3}",
        ".e{stroke:#fff;stroke-width:.8;paint-order:stroke}",
        f".o{{fill:{BACKGROUND}}}",
    ]
    rules += [f".r{index}{{fill:{color}}}" for index, color in enumerate(ROLES)]
    hatched = [*((str(index), *stall) for index, stall in enumerate(STALLS)), ("x", *OTHER_STALL)]
    rules += [
        f".s{name}{{fill:url(#autostamp-s{name})}}.t{name}{{fill:{color}}}.a{name}{{stroke:{color}}}"
        for name, color, _ in hatched
    ]
    return f"<style>{''.join(rules)}</style><defs>{''.join(map(_hatch, *zip(*hatched, strict=True)))}</defs>"


def _hatch(name: str, color: str, angle: int) -> str:
    return (
        f'<pattern id="autostamp-s{name}" width="5" height="5" patternUnits="userSpaceOnUse"'
        f' patternTransform="rotate({angle})"><rect width="5" height="5" fill="{color}"/>'
        '<rect width="5" height="1.6" fill="#fff" fill-opacity=".62"/></pattern>'
    )
