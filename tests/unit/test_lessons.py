# SPDX-License-Identifier: Apache-2.0
"""The lessons file: what is written is read again, and a file that is not understood stays as it is."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autostamp.diagnostics import AutostampError
from autostamp.model.lesson import Lesson
from autostamp.runtime.lessons_file import NAME, VARIABLE, add_lesson, lessons_path, of_resources, read_lessons

AT = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)


def lesson(resource: str = "L2", cause: str = "one CTA has it alone") -> Lesson:
    return Lesson(resource, cause, "gemm", "h200", 860.4, 511.5, AT)


def test_lessons_are_added_at_the_end_and_shown_newest_first(tmp_path):
    path = tmp_path / NAME
    assert read_lessons(path) == ()
    added = lesson(), lesson("MUFU", "software exp"), lesson(cause="again")
    for each in added:
        add_lesson(path, each)
    assert read_lessons(path) == added
    assert of_resources(added, {"L2"}) == (added[2], added[0])
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["lesson"]
    assert rows[1] == {
        "resource": "MUFU",
        "cause": "software exp",
        "kernel": "gemm",
        "machine": "h200",
        "predicted": 860.4,
        "measured": 511.5,
        "written_at": AT,
    }


def test_what_a_person_wrote_is_kept(tmp_path):
    path = tmp_path / NAME
    by_hand = "# ours\n" + path_text(lesson()).rstrip()
    path.write_text(by_hand, encoding="utf-8")
    add_lesson(path, lesson("MUFU"))
    assert path.read_text(encoding="utf-8").startswith(by_hand)
    assert [each.resource for each in read_lessons(path)] == ["L2", "MUFU"]


def path_text(each: Lesson) -> str:
    return (
        f'[[lesson]]\nresource = "{each.resource}"\ncause = "{each.cause}"\nkernel = "gemm"\nmachine = "h200"\n'
        f"predicted = 860.4\nmeasured = 511.5\nwritten_at = 2026-11-29T12:30:00Z\n"
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cause=st.text(st.characters(codec="utf-8")), predicted=st.floats(0, 1e9))
def test_any_text_comes_back(tmp_path, cause, predicted):
    path = tmp_path / "any.toml"
    path.unlink(missing_ok=True)
    wanted = Lesson("L2", cause, "k", "h200", predicted, 1.0, AT)
    add_lesson(path, wanted)
    add_lesson(path, wanted)
    assert read_lessons(path) == (wanted, wanted)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("[[lesson", "Expected"),
        ("lesson = 3", "is no list"),
        ("other = 1", "unknown key other"),
        (path_text(lesson()).replace("cause", "reason"), "lesson 1: .*cause"),
        (path_text(lesson()) + path_text(lesson()).replace("860.4", '"much"'), "lesson 2: Expected `float`"),
        (path_text(lesson()).replace("Z", ""), "written_at has no zone"),
    ],
)
def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path, text, detail):
    path = tmp_path / NAME
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AutostampError, match=rf"AS7145 .*{detail}"):
        add_lesson(path, lesson())
    assert path.read_text(encoding="utf-8") == text


def test_the_file_is_the_one_given_or_of_the_variable_or_here(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert lessons_path() == Path(NAME)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "all.toml"))
    assert lessons_path() == tmp_path / "all.toml"
    assert lessons_path(tmp_path / "own.toml") == tmp_path / "own.toml"
