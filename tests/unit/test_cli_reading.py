# SPDX-License-Identifier: Apache-2.0
"""`autostamp decode`, `summary` and `export` over a run folder, through the command line's own entry."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

from autostamp.cli import main
from autostamp.model.run import MachineFacts
from autostamp.runtime.store import write_run
from tests.simulator.kernel import Simulation
from tests.simulator.region import write_region
from tests.simulator.tables import consumer, producer, ring_kernel, ring_manifest, ring_region

RING, OTHER, IDLE = ring_kernel(), ring_kernel(number=2, kernel="other"), ring_kernel(number=3, kernel="idle")
FACTS = MachineFacts(gpu="Test GPU", sm_mhz=1300.0)


@pytest.fixture
def run(tmp_path):
    """Three kernel traces: `ring` and `other` ran, `idle` did not."""
    regions = {1: ring_region(RING), 2: ring_region(OTHER, uses=2), 3: write_region(64, [], 0)}
    write_run(tmp_path / "run", ring_manifest(RING, OTHER, IDLE), regions, FACTS, {})
    return str(tmp_path / "run")


def hung_run(path):
    kernel = ring_kernel()
    logs = Simulation(kernel, {0: 0, 1: 0}).run({0: producer(2, 10), 1: consumer(3, 30)})
    write_run(path, ring_manifest(kernel), {1: write_region(kernel.capacity, logs, kernel.signature)}, FACTS, {})
    return str(path)


def test_decode_lists_lanes(run, capsys):
    assert main(["decode", run, "--trace", "1"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "ring (kernel trace 1), CTA (0, 0, 0)"
    assert lines[1].split() == ["role", "warp", "SM", "events", "lost", "span"]
    assert lines[2].split() == ["load", "0", "0", "12", "0", "80"]
    assert lines[3].split() == ["mma", "1", "0", "12", "0", "130"]
    assert err == ""


def test_decode_json_holds_the_events(run, capsys):
    assert main(["decode", run, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["schema_version"] == 1
    assert [kernel["kernel"] for kernel in found["kernels"]] == ["ring", "other"]
    lane = found["kernels"][0]["lanes"][0]
    assert (lane["warp"], lane["role"], lane["lost"], lane["span"], lane["exit_cycles"]) == (0, "load", 0, 80, 80)
    assert lane["columns"] == ["cycles", "kind", "instance", "payload", "visit"]
    assert lane["events"][3:6] == [[10, "enter", 1, 1, 1], [10, "exit", 1, 0, 1], [20, "signal", 2, 1, 1]]
    assert "kernel trace 3 (idle) has no records" in err


def test_decode_writes_to_a_file(run, tmp_path, capsys):
    output = tmp_path / "events.json"
    assert main(["decode", run, "--json", "-o", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"wrote {output}" in err
    assert len(json.loads(output.read_text())["kernels"]) == 2


def test_decode_reports_findings_and_still_prints(tmp_path, capsys):
    assert main(["decode", hung_run(tmp_path / "run"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["kernels"][0]["lanes"][1]["exit_cycles"] is None
    assert "AS6006 lane 1: instance 3 enters visit 2 and never exits it" in err
    assert "warning: warp 1 never released its lane" in err


def test_summary_covers_every_kernel_that_ran(run, capsys):
    assert main(["summary", run]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("ring (kernel trace 1)")
    assert "\nother (kernel trace 2)" in out
    assert "recorded on Test GPU" in out
    assert "\x1b" not in out
    assert "(idle) has no records: none of its lanes was entered" in err


def test_summary_json_has_one_object_per_kernel(run, capsys):
    assert main(["summary", run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema_version"] == 1
    assert [(kernel["kernel"], kernel["cycles"]) for kernel in found["kernels"]] == [("ring", 130), ("other", 70)]


@pytest.mark.parametrize("choice", [["--kernel", "^oth"], ["--trace", "2"], ["--kernel", "o", "--trace", "2"]])
def test_one_kernel_can_be_chosen_by_name_or_number(run, capsys, choice):
    assert main(["summary", run, *choice]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("other (kernel trace 2)")
    assert "ring (kernel" not in out
    assert err == ""


def test_top_limits_the_rows(tmp_path, capsys):
    """Waits of thousands of cycles at two sites: stalls, whatever a ready wait costs."""
    regions = {1: ring_region(RING, load=10_000, compute=30_000)}
    write_run(tmp_path / "run", ring_manifest(RING), regions, FACTS, {})
    main(["summary", str(tmp_path / "run"), "--top", "1"])
    assert "and 1 more" in capsys.readouterr().out


def test_a_choice_that_fits_nothing_names_what_there_is(run, capsys):
    assert main(["summary", run, "--kernel", "nothing"]) == 1
    err = capsys.readouterr().err
    assert "AS7002" in err
    assert "1 ring, 2 other, 3 idle" in err


def test_a_bad_expression_is_wrong_usage(run, capsys):
    assert main(["summary", run, "--kernel", "("]) == 2
    assert "no regular expression" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["summary"], ["decode"], ["export", "--perfetto", "out.pftrace"]])
def test_a_run_without_records_is_never_an_empty_success(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run", ring_manifest(IDLE), {3: write_region(64, [], 0)}, FACTS, {})
    assert main([command[0], "run", *command[1:]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "AS5003" in err
    assert not (tmp_path / "out.pftrace").exists()


@pytest.mark.parametrize("command", [["summary"], ["decode"], ["export", "--perfetto", "x"]])
def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys, command):
    assert main([command[0], str(tmp_path), *command[1:]]) == 1
    assert "AS6004" in capsys.readouterr().err


def test_export_writes_a_trace_and_says_how_to_open_it(run, tmp_path, capsys):
    output = tmp_path / "out" / "trace.pftrace"
    assert main(["export", run, "--perfetto", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"wrote {output}" in err
    packets = TraceProto.FromString(output.read_bytes()).packet
    names = [packet.track_descriptor.process.process_name for packet in packets]
    assert [name for name in names if name] == ["ring CTA (0, 0, 0) SM 0", "other CTA (0, 0, 0) SM 0"]


def test_export_can_be_quiet_and_take_one_trace(run, tmp_path, capsys):
    assert main(["export", run, "--perfetto", str(tmp_path / "t"), "--trace", "2", "-q"]) == 0
    assert capsys.readouterr().err == ""
    packets = TraceProto.FromString((tmp_path / "t").read_bytes()).packet
    assert [
        packet.track_descriptor.process.pid for packet in packets if packet.track_descriptor.HasField("process")
    ] == [2]


def test_export_to_a_place_that_cannot_be_written_is_said(run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["export", run, "--perfetto", str(tmp_path / "file" / "t")]) == 2
    assert "AS7001" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["decode", "summary", "export"])
def test_help_loads_nothing_heavy(name):
    code = (
        f"import sys; from autostamp.cli import main; status = main(['{name}', '--help'])\n"
        "heavy = {'numpy', 'msgspec', 'perfetto', 'rich', 'google.protobuf'} & set(sys.modules)\n"
        "sys.exit(status or sorted(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "RUN" in done.stdout
