# SPDX-License-Identifier: Apache-2.0
"""The PNG is read back pixel by pixel."""

from __future__ import annotations

import builtins
import struct
import zlib

import pytest
import resvg_py

from autostamp.cli.outputs import png_bytes
from autostamp.diagnostics import AutostampError
from autostamp.report.png import NoFontError, png

SQUARE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="2"><rect width="4" height="2" fill="#fff"/>'
    '<rect x="2" width="2" height="2" fill="#e8502e"/></svg>'
)


def pixels(data):
    """Width and rows of an 8-bit RGBA PNG without interlacing (PNG specification, 2nd edition, clauses 5 and 9)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, header = 8, b"", b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        header, packed = (body if kind == b"IHDR" else header), packed + (body if kind == b"IDAT" else b"")
        at += 12 + length
    width, height, depth, color = struct.unpack(">IIBB", header[:10])
    assert (depth, color) == (8, 6)
    raw, rows, above = zlib.decompress(packed), [], bytes(4 * width)
    for y in range(height):
        begin = y * (4 * width + 1)
        line = unfiltered(raw[begin], raw[begin + 1 : begin + 1 + 4 * width], above)
        rows.append([tuple(line[4 * x : 4 * x + 4]) for x in range(width)])
        above = line
    return width, rows


def unfiltered(kind, line, above):
    found = bytearray()
    for index, byte in enumerate(line):
        left = found[index - 4] if index >= 4 else 0
        corner = above[index - 4] if index >= 4 else 0
        estimate = left + above[index] - corner
        nearest = min((left, above[index], corner), key=lambda value: abs(estimate - value))
        found.append((byte + (0, left, above[index], (left + above[index]) // 2, nearest)[kind]) % 256)
    return bytes(found)


def test_it_is_drawn_at_twice_the_size():
    width, rows = pixels(png(SQUARE))
    assert (width, len(rows)) == (8, 4)
    assert rows[0] == [(255, 255, 255, 255)] * 4 + [(0xE8, 0x50, 0x2E, 255)] * 4


def test_the_same_picture_gives_the_same_bytes():
    assert png(SQUARE) == png(SQUARE)


def test_hatching_and_text_are_drawn():
    hatched = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><defs><pattern id="p" width="5" height="5"'
        ' patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#f00"/><rect width="5" height="2" fill="#fff"/>'
        '</pattern></defs><rect width="40" height="20" fill="url(#p)"/></svg>'
    )
    _, rows = pixels(png(hatched))
    # Ten pixels a period: four white, six red.
    assert [row[5][1] for row in rows[:10]] == [255] * 4 + [0] * 6


def test_a_machine_without_fonts_is_told(monkeypatch):
    drawn = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **options: drawn(**options, skip_system_fonts=True))
    with pytest.raises(NoFontError, match="no font"):
        png(SQUARE)
    with pytest.raises(AutostampError) as caught:
        png_bytes(SQUARE, "x.png")
    assert caught.value.diagnostic.code == "AS7003"
    assert "fonts-dejavu-core" in caught.value.diagnostic.help


def test_without_resvg_the_extra_is_named(monkeypatch):
    imported = builtins.__import__

    def refuse(name, *rest):
        if name == "resvg_py":
            message = "No module named 'resvg_py'"
            raise ModuleNotFoundError(message, name=name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(AutostampError) as caught:
        png_bytes(SQUARE, "x.png")
    assert caught.value.diagnostic.code == "AS7003"
    assert "autostamp[png]" in caught.value.diagnostic.help
