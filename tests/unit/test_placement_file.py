# SPDX-License-Identifier: Apache-2.0
"""Placements in files, and what is stamped by one: exactly its sites, each in its form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.placement import (
    Effect,
    Form,
    PlacedSite,
    Placement,
    ReplaySet,
    ScheduleFeatures,
    site_key,
)
from autostamp.passes.cutedsl import instrument
from autostamp.passes.edits import strip
from autostamp.runtime.placement_file import decode, encode, read_placement, selection_of, write_placement

FEATURES = ScheduleFeatures(0.9, {"mma wait_group(0)": (10, 0)}, (1.0, 2.0), (168, 170), (0, 8), 0.05)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
forms = st.sampled_from(Form)
pairs = st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20))
finite = st.floats(0, 1e6, allow_nan=False)
feature_sets = st.builds(
    ScheduleFeatures, finite, st.dictionaries(names, pairs, max_size=3), st.tuples(finite, finite), pairs, pairs, finite
)


@st.composite
def placements(draw) -> Placement:
    keys = draw(st.lists(names, unique=True, max_size=6))
    sets = []
    for number in range(1, draw(st.integers(0, 3)) + 1):
        chosen = draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
        anchors = draw(st.lists(st.sampled_from(chosen), unique=True)) if chosen else []
        sites = tuple((key, draw(forms)) for key in chosen)
        sets.append(ReplaySet(number, sites, tuple(anchors), draw(feature_sets)))
    effects = st.sampled_from(Effect)
    every, roles = st.lists(forms, unique=True, max_size=3), st.lists(names, unique=True, max_size=2)
    placed = tuple(
        PlacedSite(key, draw(forms), draw(effects), draw(feature_sets), tuple(draw(every)), tuple(draw(roles)))
        for key in keys
    )
    floor = draw(st.sampled_from([0.0, 0.039]))
    return Placement(1, draw(names), draw(names), placed, tuple(sets), (), 3, True, ("a" * 16,), "nvcc 13.0.88", floor)


@given(placements())
def test_what_is_written_is_read_again(placement):
    assert decode(encode(placement)) == placement


def small(**changes) -> Placement:
    sets = (ReplaySet(1, (("a.py:1:1@k", Form.BOTH),), ("a.py:1:1@k",), FEATURES),)
    return replace(Placement(1, "k", "d", (), sets, (), 1, True), **changes)


def refused(value: object) -> str:
    with pytest.raises(AutostampError) as error:
        decode(json.dumps(value).encode(), "p.json")
    assert error.value.diagnostic.code == "AS8101"
    return error.value.diagnostic.message


def test_what_is_no_placement_is_refused_with_the_reason():
    good = json.loads(encode(small()))
    assert "schema version 2" in refused(good | {"schema_version": 2})
    assert "schema version None" in refused({})
    assert "Expected `object`" in refused([])
    assert "not numbered from 1" in refused(good | {"sets": [good["sets"][0] | {"number": 2}]})
    twice = good["sets"][0] | {"sites": good["sets"][0]["sites"] * 2}
    assert "names a site twice" in refused(good | {"sets": [twice]})
    assert "an anchor of set 1" in refused(good | {"sets": [good["sets"][0] | {"anchors": ["b"]}]})
    with pytest.raises(AutostampError, match="No such file"):
        read_placement(Path("there-is-none.json"))


def test_a_set_that_is_not_there():
    with pytest.raises(AutostampError) as error:
        selection_of(small(), 7, "p.json")
    assert error.value.diagnostic.code == "AS8102"
    assert "it has 1" in error.value.diagnostic.message


SOURCE = b"""\
import cutlass.cute as cute


@cute.kernel
def kernel(pipeline, state):
    pipeline.consumer_wait(state)
    cute.arch.barrier(barrier_id=1, number_of_threads=64)
    pipeline.consumer_release(state)
"""


def stamped(*chosen: tuple[int, Form]):
    whole = instrument(SOURCE, "/somewhere/k.py").file
    sites = tuple(
        (site_key(whole, site), dict(chosen)[site.number]) for site in whole.sites if site.number in dict(chosen)
    )
    return instrument(SOURCE, "/elsewhere/k.py", InstrumentOptions(Selection(placed=sites)))


def test_a_key_names_no_folder():
    whole = instrument(SOURCE, "/somewhere/k.py").file
    assert site_key(whole, whole.sites[0]) == f"k.py:6:5@{whole.key}"


def test_exactly_the_placed_sites_are_stamped():
    found = stamped((1, Form.BOTH))
    assert [site.line for site in (each.span for each in found.file.sites)] == [6]
    assert found.text.count(b"_as.enter(") == 1
    assert b"forms=" not in found.text
    assert {skip.code for skip in found.file.skips} == {"AS2106"}


def test_a_form_reaches_the_stamper():
    found = stamped((1, Form.ENTER), (2, Form.EXIT), (3, Form.BOTH))
    # Site 2 is a named barrier, whose wait lets the warp go on: the stamper learns that, too.
    key = found.file.key
    assert f"""_as.stamper("{key}", {{2}}, forms={{1: 'enter', 2: 'exit'}})""".encode() in found.text


def test_forms_of_signals_and_carried_waits_are_told_to_the_stamper_and_strip_away():
    found = stamped((1, Form.CARRIED), (3, Form.BEFORE))
    # Behind site 2, which is not stamped, the clock of site 1 is written, as it was in the search.
    assert b"forms={1: 'carried', 2: '', 3: 'before'}" in found.text
    assert [site.span.line for site in found.file.sites] == [6, 8]
    assert strip(found.text, "k.py") == SOURCE
    without = stamped((1, Form.ENTER), (3, Form.BEFORE))
    assert b"forms={1: 'enter', 3: 'before'}" in without.text
    assert len(without.edits) < len(found.edits)


def test_an_empty_set_binds_the_lane_and_stamps_nothing():
    found = stamped()
    assert found.file.sites == ()
    assert b"_as.bind(" in found.text


def test_a_changed_file_is_not_stamped_by_an_old_placement():
    whole = instrument(SOURCE, "k.py").file
    sites = tuple((site_key(whole, site), Form.BOTH) for site in whole.sites)
    other = instrument(SOURCE.replace(b"id=1", b"id=2"), "k.py", InstrumentOptions(Selection(placed=sites)))
    assert other.file.sites == ()


def test_files_that_the_placement_does_not_name_are_left_alone():
    options = InstrumentOptions(Selection(placed=(), files=("0" * 16,)))
    assert not instrument(SOURCE, "k.py", options).is_changed


def test_the_command_line_stamps_a_set(tmp_path, capsys):
    source = tmp_path / "k.py"
    source.write_bytes(SOURCE)
    whole = instrument(SOURCE, "k.py").file
    sites = ((site_key(whole, whole.sites[2]), Form.BOTH),)
    write_placement(tmp_path / "p.json", small(sets=(ReplaySet(1, sites, (), FEATURES),)))
    assert main(["instrument", str(source), "-o", str(tmp_path / "out"), "--placement", str(tmp_path / "p.json")]) == 0
    text = (tmp_path / "out" / "k.py").read_text()
    assert "_as.signal(3)" in text
    assert "_as.enter(" not in text
    assert main(["instrument", str(source), "--set", "1"]) == 2
    assert "give that too" in capsys.readouterr().err
