# SPDX-License-Identifier: Apache-2.0
"""What holds of stamping any program: it can be undone, adds nothing twice, moves nothing, and runs as before."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autostamp.model.edit import Edit
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.passes.cutedsl import Stamped, instrument
from autostamp.passes.edits import LineMap, apply, strip
from tests.corpus.count import count
from tests.corpus.unstamped import difference
from tests.property.pretend import Recorder, run
from tests.property.programs import Program, programs

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


def stamp(program: Program) -> Stamped:
    return instrument(program.text, "program.py")


def without_mark(text: bytes) -> bytes:
    return text.removeprefix(b"\xef\xbb\xbf")


def names_with_lines(text: bytes) -> set[tuple[str, int]]:
    return {(node.id, node.lineno) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def is_subsequence(part: bytes, whole: bytes) -> bool:
    rest = iter(whole)
    return all(byte in rest for byte in part)


@given(program=programs())
def test_strip_restores_the_program(program):
    stamped = stamp(program)
    assert stamped.is_changed or not stamped.file.sites
    assert strip(stamped.text, "program.py") == program.text if stamped.is_changed else stamped.text == program.text


@given(program=programs())
def test_stamping_twice_is_stamping_once(program):
    text = stamp(program).text
    assert instrument(text, "program.py").text == text


@given(program=programs())
def test_nothing_but_stamps_is_added(program):
    assert difference(program.text, stamp(program).text) == ""


@given(program=programs())
def test_every_sync_call_is_a_site_or_a_skip(program):
    file = stamp(program).file
    offset = len(program.text) - len(without_mark(program.text))
    covered = {(item.span.start, item.span.end) for item in (*file.sites, *file.skips)}
    missing = [
        call for call in count(without_mark(program.text)) if (call.start + offset, call.end + offset) not in covered
    ]
    assert missing == []
    spans = [(item.span.start, item.span.end) for item in (*file.sites, *file.skips)]
    assert len(spans) == len(covered)


@given(program=programs())
def test_lines_are_kept_or_mapped(program):
    stamped = stamp(program)
    lines = stamped.line_map()
    before, after = (without_mark(text).split(b"\n") for text in (program.text, stamped.text))
    if lines.is_identity and stamped.is_changed:
        assert names_with_lines(program.text) <= names_with_lines(stamped.text)
    held: dict[int, list[bytes]] = {}
    for number, line in enumerate(after, 1):
        held.setdefault(lines.to_original(number), []).append(line)
    for number, line in enumerate(before, 1):
        assert not line.strip() or any(is_subsequence(line, candidate) for candidate in held[number])


@given(program=programs(), seed=st.integers(0, 1 << 16))
@settings(max_examples=150)
def test_a_stamped_program_does_what_the_program_does(program, seed):
    names = (*program.functions, "host")
    recorder = Recorder()
    assert run(stamp(program).text, names, seed, recorder) == run(program.text, names, seed)


@given(program=programs(), seed=st.integers(0, 1 << 16), kind=st.sampled_from(["wait", "signal"]))
def test_a_selection_of_sites_runs_as_before_too(program, seed, kind):
    names = (*program.functions, "host")
    stamped = instrument(program.text, "program.py", InstrumentOptions(Selection(only=(f"kind={kind}",))))
    assert {site.kind for site in stamped.file.sites} <= {kind}
    assert run(stamped.text, names, seed, Recorder()) == run(program.text, names, seed)


EDITS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["a", "; b", "c\n", "\nd", "é"]), st.integers(-2, 2)))


@given(original=st.binary(max_size=40), places=EDITS)
@example(original=b"", places=[(0, "a", 0)])
@example(original=b"x\r", places=[(1, "a", 0)])
def test_insertions_into_any_bytes_can_be_undone(original, places):
    edits = [Edit(min(at, len(original)), min(at, len(original)), text, rank) for at, text, rank in places]
    stamped = apply(original, edits)
    if edits:
        assert strip(stamped, "x") == original
    last = max(1, len(original.splitlines()))
    assert all(1 <= LineMap(original, edits).to_original(line) <= last for line in range(1, 60))


@pytest.mark.parametrize("text", ["def f(pipe, s):\n    pipe.consumer_wait(s)\n"])
def test_the_rules_are_checked(text):
    """The stand-in refuses stamps that do not pair, so that the tests above can fail."""
    recorder = Recorder()
    recorder.enter(1)
    with pytest.raises(AssertionError):
        recorder.exit(2)
    with pytest.raises(AssertionError):
        Recorder().release()
    program = b"# cutlass\n" + text.encode()
    log, _ = run(program + b"\n\ndef g(i):\n    f(pipe, state)\n", ("g",), 0)
    assert log == ["pipe.consumer_wait(state)"]
