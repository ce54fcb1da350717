# SPDX-License-Identifier: Apache-2.0
"""`autostamp report` over a run folder, through the command line's own entry; the page is a stand-in for the built one."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

from autostamp.cli import main
from autostamp.model.run import MachineFacts
from autostamp.report import html
from autostamp.runtime.store import write_run
from tests.simulator.kernel import Simulation
from tests.simulator.region import WarpLog, write_region
from tests.simulator.tables import FILE_KEY, consumer, producer, ring_kernel, ring_manifest, ring_region

RING, OTHER = ring_kernel(), ring_kernel(number=2, kernel="other")
FACTS = MachineFacts(gpu="Test GPU", sm_mhz=1300.0)
SOURCE = "# the ring kernel\n" * 40
SCHEMA = json.loads(resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8"))
# Long enough that no stall can be taken for a ready wait.
TIMES = {"load": 10_000, "compute": 30_000}


@pytest.fixture(autouse=True)
def page(monkeypatch):
    built = "<title>AUTOSTAMP-TITLE</title><!--AUTOSTAMP-DOCUMENT-->"
    monkeypatch.setattr(html, "template", lambda: built)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`ring` alone, with its source; the current folder is beside it."""
    monkeypatch.chdir(tmp_path)
    sources = {f"original/{FILE_KEY}/ring.py": SOURCE, f"stamped/{FILE_KEY}/ring.py": "stamped"}
    write_run(tmp_path / "run", ring_manifest(RING), {1: ring_region(RING, **TIMES)}, FACTS, sources)
    return "run"


def two_kernels(path):
    regions = {1: ring_region(RING, **TIMES), 2: ring_region(OTHER, uses=2, **TIMES)}
    write_run(path, ring_manifest(RING, OTHER), regions, FACTS, {})
    return str(path)


def document_of(data):
    (packed,) = re.findall(rb'id="autostamp-document">([A-Za-z0-9+/=]+)<', data)
    found = json.loads(gzip.decompress(base64.b64decode(packed)))
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def written(folder):
    return sorted(path.name for path in Path(folder).iterdir() if path.name != "run")


def test_without_a_form_it_writes_the_page(run, tmp_path, capsys):
    assert main(["report", run]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "wrote report.html: open it in any browser; it needs no network\n"
    assert written(tmp_path) == ["report.html"]
    found = document_of((tmp_path / "report.html").read_bytes())
    assert found["title"] == "ring on Test GPU"
    assert found["sources"][0]["text"] == SOURCE
    (timeline,) = found["timelines"]
    assert timeline["verdict"]["headline"]
    assert [row["role"] for row in timeline["rows"]] == ["load", "mma"]


def test_every_form_at_once(run, tmp_path, capsys):
    forms = {"-o": "r.html", "--svg": "r.svg", "--png": "r.png", "--perfetto": "r.pftrace", "--json": "r.json"}
    forms["--csv"] = "deep/r.csv"
    assert main(["report", run, *(word for pair in forms.items() for word in pair)]) == 0
    assert capsys.readouterr().err.count("wrote ") == 6
    assert document_of((tmp_path / "r.html").read_bytes())["schema_version"] == 1
    assert ET.parse(tmp_path / "r.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert TraceProto.FromString((tmp_path / "r.pftrace").read_bytes()).packet
    plain = json.loads((tmp_path / "r.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(plain)
    # Four acquires and as many holds.
    assert len(plain["timelines"][0]["rows"][0]["spans"]["start"]) == 8
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "deep/r.csv").read_text())))) == 16


def test_the_page_and_the_file_hold_the_same(run, tmp_path):
    assert main(["report", run, "-o", "r.html", "--json", "r.json"]) == 0
    packed, plain = document_of((tmp_path / "r.html").read_bytes()), json.loads((tmp_path / "r.json").read_text())
    assert _unpacked(packed) == plain


def _unpacked(value):
    from autostamp.report.columns import unpacked

    if isinstance(value, dict):
        return unpacked(value) if value.keys() == {"n", "i32", "delta"} else {k: _unpacked(v) for k, v in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


def test_another_form_alone_writes_no_page(run, tmp_path):
    assert main(["report", run, "--csv", "spans.csv", "-q"]) == 0
    assert written(tmp_path) == ["spans.csv"]


def test_quiet_says_nothing(run, capsys):
    assert main(["report", run, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_one_kernel_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = two_kernels(tmp_path / "run")
    assert main(["report", run, "--json", "both.json"]) == 0
    assert main(["report", run, "--kernel", "^oth", "--json", "one.json"]) == 0
    both, one = (json.loads((tmp_path / name).read_text()) for name in ("both.json", "one.json"))
    assert [timeline["kernel"] for timeline in both["timelines"]] == ["ring", "other"]
    assert [timeline["kernel"] for timeline in one["timelines"]] == ["other"]
    assert all(
        note.startswith(("all 2 timelines: ", "ring CTA", "other CTA", "the original")) for note in both["notes"]
    )


def test_the_window_of_the_picture(run, tmp_path, capsys):
    assert main(["report", run, "--svg", "r.svg", "--from", "40000", "--to", "70000"]) == 0
    assert "showing cycles 40,000 to 70,000" in (tmp_path / "r.svg").read_text()
    assert main(["report", run, "--csv", "r.csv", "--from", "40000"]) == 2
    assert "--from and --to need --svg or --png" in capsys.readouterr().err


def test_a_refusal_leaves_nothing_behind(run, tmp_path, capsys):
    assert main(["report", run, "-o", "r.html", "--svg", "r.svg", "--from", "900000"]) == 2
    assert "AS9001" in capsys.readouterr().err
    assert written(tmp_path) == []


def test_a_place_that_cannot_be_written_leaves_nothing_behind(run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["report", run, "-o", "r.html", "--csv", "file/spans.csv"]) == 2
    assert "AS7001" in capsys.readouterr().err
    assert written(tmp_path) == ["file"]


def test_two_forms_to_one_file_are_refused(run, capsys):
    assert main(["report", run, "--csv", "x", "--json", "./x"]) == 2
    assert "same file" in capsys.readouterr().err


def test_source_from_disk_counts_only_with_the_same_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/ring.py").write_text(SOURCE)
    manifest = ring_manifest(RING)
    same = replace(manifest.files[0], sha256=hashlib.sha256(SOURCE.encode()).hexdigest())
    for name, file, expected in (("same", same, SOURCE), ("other", manifest.files[0], "")):
        write_run(tmp_path / name, replace(manifest, files=(file,)), {1: ring_region(RING, **TIMES)}, FACTS, {})
        assert main(["report", name, "--json", f"{name}.json", "-q"]) == 0
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert found["sources"][0]["text"] == expected
        assert any("was not kept" in note for note in found["notes"]) == (not expected)


def test_records_that_contradict_themselves_are_loud(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    logs = Simulation(RING, {0: 0, 1: 0}).run({0: producer(2, 10_000), 1: consumer(3, 30_000)})
    write_run(tmp_path / "run", ring_manifest(RING), {1: write_region(64, logs, RING.signature)}, FACTS, {})
    assert main(["report", "run"]) == 1
    assert "AS6006 lane 1: instance 3 enters visit 2 and never exits it" in capsys.readouterr().err
    notes = document_of((tmp_path / "report.html").read_bytes())["notes"]
    assert notes[0] == "AS6006 lane 1: instance 3 enters visit 2 and never exits it"
    assert "warp 1 entered K consumer_wait at ring.py:31; never came out" in notes


def test_lanes_that_were_all_full_are_loud(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ring_kernel(capacity=10)
    write_run(tmp_path / "run", ring_manifest(small), {1: ring_region(small, **TIMES)}, FACTS, {})
    assert main(["report", "run", "-q"]) == 0
    found = document_of((tmp_path / "report.html").read_bytes())
    assert found["notes"][0].startswith("all 2 lanes were full: 4 records are lost")
    assert found["timelines"][0]["lost"] == 4


@pytest.mark.parametrize("logs", [[], [WarpLog(0, 0, 90), WarpLog(1, 0, 90)]], ids=["no lane", "no record"])
def test_an_empty_trace_is_an_error_and_no_empty_chart(tmp_path, monkeypatch, capsys, logs):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run", ring_manifest(RING), {1: write_region(64, logs, RING.signature)}, FACTS, {})
    assert main(["report", "run"]) == 1
    assert "AS5003" in capsys.readouterr().err
    assert written(tmp_path) == []


def test_of_two_kernels_one_without_records_is_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    silent = write_region(64, [WarpLog(0, 0, 90)], OTHER.signature)
    write_run(tmp_path / "run", ring_manifest(RING, OTHER), {1: ring_region(RING, **TIMES), 2: silent}, FACTS, {})
    assert main(["report", "run", "--json", "r.json"]) == 0
    assert "note: kernel trace 2 (other) is left out" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "r.json").read_text())["timelines"]) == 1


def test_a_run_folder_is_needed(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 1
    assert "AS6004" in capsys.readouterr().err


def safety_file(path, *kernels):
    names = {"registers": (168, 176), "spill stores (bytes)": (0, 8), "spill loads (bytes)": (0, 4)}
    resources = [{"name": name, "clean": clean, "stamped": stamped} for name, (clean, stamped) in names.items()]
    rows = [{"kernel": kernel, "resources": resources, "schedule_distance": 0.25} for kernel in kernels]
    path.write_text(json.dumps({"schema_version": 1, "kernels": rows, "findings": []}))
    return str(path)


def overhead_file(path, **ratios):
    cases = [{"name": name, "ratio": {"median": ratio}} for name, ratio in ratios.items()]
    path.write_text(json.dumps({"schema_version": 1, "cases": cases, "resources": []}))
    return str(path)


def test_the_cost_of_measuring_is_taken_from_both_files(run, tmp_path):
    safety, overhead = (
        safety_file(tmp_path / "s.json", "ring_kernel"),
        overhead_file(tmp_path / "o.json", a=1.18, b=1.5),
    )
    arguments = ["--safety", safety, "--overhead", overhead, "--case", "a", "--json", "r.json"]
    assert main(["report", run, *arguments]) == 0
    (timeline,) = json.loads((tmp_path / "r.json").read_text())["timelines"]
    assert timeline["cost"] == {
        "time_ratio": 1.18,
        "registers": [168, 176],
        "spills": [0, 12],
        "schedule_distance": 0.25,
        "lost": 0,
    }
    assert not any("cost of measuring" in line for line in timeline["verdict"]["lines"])  # the page's strip says it


def test_the_summary_takes_the_cost_from_the_same_files(run, tmp_path, capsys):
    safety, overhead = safety_file(tmp_path / "s.json", "ring_kernel"), overhead_file(tmp_path / "o.json", a=1.18)
    arguments = ["summary", run, "--safety", safety, "--overhead", overhead, "--case", "a"]
    assert main(arguments) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "cost of measuring: 1.180 times the clean time; registers 168 to 176" in told
    assert main([*arguments, "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert any("1.180 times the clean time" in line for line in kernel["flow"]["verdict"]["lines"])


def test_the_cost_goes_to_the_kernel_of_that_symbol(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernels = replace(RING, symbol="first"), replace(OTHER, symbol="second")
    regions = {1: ring_region(RING, **TIMES), 2: ring_region(OTHER, **TIMES)}
    write_run(tmp_path / "run", ring_manifest(*kernels), regions, FACTS, {})
    safety_file(tmp_path / "s.json", "second", "first")
    assert main(["report", "run", "--safety", "s.json", "--json", "r.json"]) == 0
    found = json.loads((tmp_path / "r.json").read_text())["timelines"]
    assert [timeline["cost"]["schedule_distance"] for timeline in found] == [0.25, 0.25]


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (lambda path: path.write_text("{"), ["--safety"], "cannot take the cost of measuring from"),
        (lambda path: path.write_text("[]"), ["--safety"], "it has no list 'kernels'"),
        (lambda path: path.write_text('{"cases": [1]}'), ["--overhead"], "it has no list 'cases'"),
        (lambda path: safety_file(path, "a", "b"), ["--safety"], "no row is kernel trace 1"),
        (lambda path: path.write_text('{"kernels": [{"resources": []}]}'), ["--safety"], "autostamp safety --json"),
        (
            lambda path: overhead_file(path, a=1.0, b=2.0),
            ["--overhead"],
            "choose one of its cases with --case; it has a, b",
        ),
        (lambda path: overhead_file(path, a=1.0), ["--case", "z", "--overhead"], "it has a"),
        (lambda path: path.write_text('{"cases": [{"name": "a"}]}'), ["--overhead"], "has no median ratio"),
    ],
)
def test_a_file_without_this_cost_is_refused(run, tmp_path, capsys, make, arguments, said):
    make(tmp_path / "cost.json")
    assert main(["report", run, *arguments, "cost.json"]) == 2
    err = capsys.readouterr().err
    assert "AS7004" in err
    assert said in err
    assert written(tmp_path) == ["cost.json"]


def test_one_time_is_not_shared_by_two_kernels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = two_kernels(tmp_path / "run")
    assert main(["report", run, "--overhead", overhead_file(tmp_path / "o.json", a=1.0)]) == 2
    assert "choose it with --kernel or --trace" in capsys.readouterr().err


def test_what_the_page_cannot_hold_is_refused_with_a_way_out(run, monkeypatch, capsys):
    def overflow(*_, **__):
        message = "a column holds a value beyond 32 bits"
        raise OverflowError(message)

    monkeypatch.setattr("autostamp.report.document.document", overflow)
    assert main(["report", run]) == 2
    err = capsys.readouterr().err
    assert "AS7003" in err
    assert "--json" in err


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from autostamp.cli import main; status = main(['report', '--help'])\n"
        "heavy = {'numpy', 'msgspec', 'perfetto', 'rich', 'google.protobuf', 'resvg_py'} & set(sys.modules)\n"
        "sys.exit(status or sorted(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_summary_begins_with_the_verdict(run, capsys):
    assert main(["summary", run]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ring (kernel trace 1)")
    assert lines[1] == ""
    assert "records lost: none" in lines[:42]
    assert "Roles, in warp-cycles" in lines


def test_summary_json_has_the_flow(run, capsys):
    assert main(["summary", run, "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["flow"]["verdict"]["headline"]
    keys = {"notes", "arrows", "stalls", "causes", "blame", "steady", "path", "overlaps", "depths", "early", "barriers"}
    assert kernel["flow"].keys() == keys | {"verdict"}
    assert kernel["flow"]["barriers"] == {"1": "K", "2": "epilogue"}
