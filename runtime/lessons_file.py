# SPDX-License-Identifier: Apache-2.0
"""The lessons file: TOML, an entry of `[[lesson]]` for each, added at the end and never changed."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from autostamp.diagnostics import AutostampError
from autostamp.model.lesson import Lesson
from autostamp.runtime.manifest_file import write_whole

VARIABLE: Final = "AUTOSTAMP_LESSONS"
NAME: Final = "autostamp-lessons.toml"


def lessons_path(given: Path | None = None) -> Path:
    """Where lessons are: the file that is given, else that of $AUTOSTAMP_LESSONS, else one in the current folder."""
    return given or Path(os.environ.get(VARIABLE) or NAME)


def read_lessons(path: Path) -> tuple[Lesson, ...]:
    """All lessons, oldest first; none where there is no such file. Raises AS7145 for a file that is something else."""
    return _parse(_text(path), path)


def add_lesson(path: Path, lesson: Lesson) -> None:
    """Write the file with one more lesson, whole or not at all. Raises AS7145 and AS7001."""
    text = _text(path)
    _parse(text, path)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    write_whole(path, f"{text}{gap}{_entry(lesson)}".encode())


def of_resources(lessons: tuple[Lesson, ...], names: set[str]) -> tuple[Lesson, ...]:
    """Those about one of the resources, newest first."""
    return tuple(lesson for lesson in reversed(lessons) if lesson.resource in names)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS7145", path=path, detail=str(error)) from error


def _parse(text: str, path: Path) -> tuple[Lesson, ...]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AutostampError.of("AS7145", path=path, detail=str(error)) from error
    if strange := [key for key in content if key != "lesson"]:
        raise AutostampError.of("AS7145", path=path, detail=f"unknown key {strange[0]}")
    rows = content.get("lesson", [])
    if not isinstance(rows, list):
        raise AutostampError.of("AS7145", path=path, detail="lesson is no list: write [[lesson]]")
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            lesson = msgspec.convert(row, Lesson, strict=True)
        except msgspec.ValidationError as error:
            raise AutostampError.of("AS7145", path=path, detail=f"lesson {number}: {error}") from error
        if lesson.written_at.utcoffset() is None:
            raise AutostampError.of("AS7145", path=path, detail=f"lesson {number}: written_at has no zone")
        found.append(lesson)
    return tuple(found)


def _entry(lesson: Lesson) -> str:
    return "\n".join(["[[lesson]]", *_lines(lesson), ""])


def _lines(lesson: Lesson) -> Iterator[str]:
    for field in fields(lesson):
        value = getattr(lesson, field.name)
        if isinstance(value, datetime):
            yield f"{field.name} = {value.isoformat()}"
        elif isinstance(value, str):
            # A JSON string is a basic string of TOML, but for DEL, which TOML wants escaped.
            yield f"{field.name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        else:
            yield f"{field.name} = {float(value)!r}"
