# SPDX-License-Identifier: Apache-2.0
"""The options of `autostamp report` that name inputs beside run folders, and the spec that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.cli.report_inputs import read_inputs, write_spec_files
from autostamp.diagnostics import AutostampError
from autostamp.model.run import MachineFacts
from autostamp.report.summary import as_text
from autostamp.report.svg import timeline_svg
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "tests/fixtures/spec/fa4_forward_one_cta.json"
NPZ = SPEC.with_suffix(".npz")
IKET = ROOT / "tests/fixtures/iket/fa4_forward_one_cta.json.gz"
RUN = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"


def test_a_run_folder_is_left_to_the_command():
    assert read_inputs(RUN, None, None, None) is None
    assert read_inputs(RUN, Path("out.json"), None, None) is None
    assert read_inputs(RUN, Path("out.json"), Path("out.npz"), None) is None


def test_a_spec_and_its_buffer_make_a_report():
    found = read_inputs(None, SPEC, NPZ, None)
    (trace,) = found.traces
    assert found.facts.gpu == "NVIDIA H200"
    assert found.manifest.traces == (trace.kernel,)
    timeline = analyse(trace)
    text = as_text(timeline, found.manifest, found.facts)
    assert "flash_fwd_sm90.py:860" in text
    assert "pipeline_v.producer_acquire" in text
    assert timeline_svg([timeline], found.manifest, found.facts).startswith("<svg")


def test_an_iket_trace_makes_a_report():
    found = read_inputs(None, None, None, IKET)
    (trace,) = found.traces
    assert found.facts == MachineFacts()
    timeline = analyse(trace)
    text = as_text(timeline, found.manifest, found.facts)
    assert "every figure given as cycles is in nanoseconds" in text
    assert "L860_producer_acq" in text
    assert timeline_svg([timeline], found.manifest, found.facts).startswith("<svg")


def test_one_cta_of_an_iket_trace():
    assert len(read_inputs(None, None, None, IKET, trace=1).traces) == 1
    with pytest.raises(AutostampError) as error:
        read_inputs(None, None, None, IKET, trace=2)
    assert error.value.diagnostic.code == "AS7002"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((None, None, None, None), "nothing to report on"),
        ((RUN, None, None, IKET), "RUN and --iket exclude each other"),
        ((None, SPEC, NPZ, IKET), "--iket and --spec with --npz exclude each other"),
        ((None, SPEC, None, None), "give --npz FILE.npz"),
        ((None, None, NPZ, None), "give --spec SPEC.json"),
        ((RUN, None, NPZ, None), "goes with --spec"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, says):
    with pytest.raises(AutostampError) as error:
        read_inputs(*options)
    assert error.value.diagnostic.code == "AS9001"
    assert says in error.value.diagnostic.message


def pairs(count=1):
    data = load_run(RUN)
    (trace,) = data.traces.values()
    return data, [(trace, analyse(trace), ())] * count


def test_a_run_is_written_as_a_spec_and_read_again(tmp_path):
    data, chosen = pairs()
    spec, npz = write_spec_files(tmp_path / "out/s.json", None, chosen, data.manifest, data.facts)
    assert (spec, npz) == (tmp_path / "out/s.json", tmp_path / "out/s.npz")
    back = read_inputs(None, spec, npz, None)
    assert [trace.lanes for trace in back.traces] == [trace.lanes for trace, _, _ in chosen]
    assert back.facts == data.facts


def test_the_buffer_may_have_a_name_of_its_own(tmp_path):
    data, chosen = pairs()
    assert (
        write_spec_files(tmp_path / "s.json", tmp_path / "b.npz", chosen, data.manifest, data.facts)[1].name == "b.npz"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.npz", "s.json"]


@pytest.mark.parametrize(
    ("count", "npz", "says"), [(2, None, "--trace (1, 1)"), (0, None, "--trace ()"), (1, "s.json", "both")]
)
def test_what_cannot_be_one_spec_is_refused_and_nothing_written(tmp_path, count, npz, says):
    data, chosen = pairs(count)
    with pytest.raises(AutostampError) as error:
        write_spec_files(tmp_path / "s.json", npz and tmp_path / npz, chosen, data.manifest, data.facts)
    assert error.value.diagnostic.code == "AS9001"
    assert says in error.value.diagnostic.message
    assert list(tmp_path.iterdir()) == []
