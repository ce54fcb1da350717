# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.run import MachineFacts
from autostamp.runtime.manifest_file import decode, digest, encode, read_manifest, write_manifest, write_whole
from autostamp.runtime.store import load_run, write_run
from tests.simulator.region import WarpLog, write_region
from tests.simulator.tables import ring_kernel, ring_manifest, ring_region

FACTS = MachineFacts(gpu="Test GPU", sm_count=4, sm_mhz=1500.0, versions={"python": "3.11"}, command=("bench.py",))
KERNEL = ring_kernel()
MANIFEST = ring_manifest(KERNEL)
SOURCES = {"src/ring.py": "stamped = True\n", "extra.py": "ünïcode\n"}


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    write_run(path, MANIFEST, {1: ring_region(KERNEL)}, FACTS, SOURCES)
    return path


def code_of(call, *arguments) -> str:
    with pytest.raises(AutostampError) as error:
        call(*arguments)
    return error.value.diagnostic.code


def files_in(folder) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_a_manifest_survives_its_file(tmp_path):
    path = tmp_path / "deep" / "manifest.json"
    write_manifest(path, MANIFEST)
    assert read_manifest(path) == MANIFEST
    assert path.read_bytes() == encode(MANIFEST)
    assert path.read_text().endswith("}\n")
    assert json.loads(path.read_text())["files"][0]["sites"][0]["method"] == "producer_acquire"


def test_the_digest_is_of_the_content_and_not_of_the_file():
    compact = json.dumps(json.loads(encode(MANIFEST)), sort_keys=True).encode()
    assert digest(decode(compact)) == digest(MANIFEST)
    assert len(digest(MANIFEST)) == 64
    assert digest(replace(MANIFEST, tool="autostamp 9")) != digest(MANIFEST)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"version": "1"}', "Expected `int`"),
        ('{"version": 1, "tool": "x"}', "missing required field `files`"),
        ('{"version": 2, "tool": "x", "files": []}', "version 2"),
        ("\x80", "malformed"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused_by_name(tmp_path, text, says):
    path = tmp_path / "m.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AutostampError, match=says) as error:
        read_manifest(path)
    assert error.value.diagnostic.code == "AS6003"
    assert str(path) in error.value.diagnostic.message


def test_a_missing_manifest_is_refused(tmp_path):
    assert code_of(read_manifest, tmp_path / "none.json") == "AS6003"


def test_a_file_is_written_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert files_in(tmp_path) == ["a/b.txt"]


def test_an_unwritable_place_is_said_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert code_of(write_whole, tmp_path / "file" / "under.txt", b"") == "AS7001"
    (tmp_path / "folder" / "x").mkdir(parents=True)
    assert code_of(write_whole, tmp_path / "folder", b"") == "AS7001"
    assert files_in(tmp_path) == ["file"]


def test_a_run_is_read_as_written(run):
    data = load_run(run)
    assert data.manifest == MANIFEST
    assert data.facts == FACTS
    assert data.path == run
    assert load_run(str(run)) == data
    assert list(data.traces) == [1]
    assert data.traces[1].lanes[0].exit_cycles == 80
    assert files_in(run) == [
        "machine.json",
        "manifest.json",
        "records.npz",
        "sources/extra.py",
        "sources/src/ring.py",
    ]
    assert (run / "sources/extra.py").read_text(encoding="utf-8") == "ünïcode\n"


def test_the_records_file_needs_no_pickle_and_names_its_manifest(run):
    with np.load(run / "records.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["layout_version", "manifest_sha256", "region_1"]
        assert archive["manifest_sha256"].dtype == np.uint8
        assert archive["manifest_sha256"].tobytes().decode() == digest(MANIFEST)
        assert np.array_equal(archive["region_1"], ring_region(KERNEL))


def test_a_second_run_in_the_same_folder_replaces_the_first_and_nothing_else(run):
    (run / "notes.txt").write_text("mine")
    write_run(run, MANIFEST, {}, FACTS, {"extra.py": "new"})
    assert files_in(run) == ["machine.json", "manifest.json", "notes.txt", "records.npz", "sources/extra.py"]
    assert load_run(run).traces[1].lanes == ()


@pytest.mark.parametrize("name", ["../out.py", "/out.py", "a/../../out.py"])
def test_a_source_name_may_not_leave_the_folder(tmp_path, name):
    assert code_of(write_run, tmp_path / "run", MANIFEST, {}, FACTS, {name: ""}) == "AS7001"
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("name", ["manifest.json", "records.npz", "machine.json"])
def test_a_folder_that_lacks_a_file_is_no_run(run, name):
    (run / name).unlink()
    with pytest.raises(AutostampError, match=name) as error:
        load_run(run)
    assert error.value.diagnostic.code == "AS6004"


def test_a_path_that_is_not_there_is_no_run(tmp_path):
    assert code_of(load_run, tmp_path / "none") == "AS6004"


@pytest.mark.parametrize("keep", [0, 10, 300, -1])
def test_truncated_records_are_said_to_be_unreadable(run, keep):
    whole = (run / "records.npz").read_bytes()
    (run / "records.npz").write_bytes(whole[:keep])
    assert code_of(load_run, run) == "AS6001"


def test_a_damaged_byte_in_the_records_is_noticed(run):
    data = bytearray((run / "records.npz").read_bytes())
    data[data.index(b"region_1.npy") + 60] ^= 0xFF
    (run / "records.npz").write_bytes(bytes(data))
    assert code_of(load_run, run) == "AS6001"


def test_an_npz_of_something_else_is_not_a_records_file(run):
    np.savez(run / "records.npz", a=np.zeros(3))
    assert code_of(load_run, run) == "AS6001"
    np.save(run / "records.npy", np.zeros(3))
    (run / "records.npy").replace(run / "records.npz")
    assert code_of(load_run, run) == "AS6001"


def test_pickled_objects_are_not_loaded(run):
    np.savez(run / "records.npz", layout_version=np.array({"a": 1}, object), manifest_sha256=np.zeros(1, np.uint8))
    assert code_of(load_run, run) == "AS6001"


def test_records_of_another_layout_are_refused(run):
    with np.load(run / "records.npz") as archive:
        arrays = dict(archive)
    np.savez(run / "records.npz", **(arrays | {"layout_version": np.array(99)}))
    with pytest.raises(AutostampError, match="layout 99") as error:
        load_run(run)
    assert error.value.diagnostic.code == "AS6001"


def test_records_under_another_manifest_are_refused(run):
    write_manifest(run / "manifest.json", replace(MANIFEST, tool="autostamp 9"))
    assert code_of(load_run, run) == "AS6002"


def test_a_reformatted_manifest_still_belongs(run):
    text = json.dumps(json.loads((run / "manifest.json").read_text()))
    (run / "manifest.json").write_text(text)
    assert load_run(run).manifest == MANIFEST


def test_bad_machine_facts_are_refused(run):
    (run / "machine.json").write_text('{"sm_count": "four"}')
    assert code_of(load_run, run) == "AS6001"


def test_a_region_that_no_kernel_trace_writes_is_refused(tmp_path):
    write_run(tmp_path, MANIFEST, {1: ring_region(KERNEL), 7: ring_region(KERNEL)}, FACTS, {})
    with pytest.raises(AutostampError, match="region 7") as error:
        load_run(tmp_path)
    assert error.value.diagnostic.code == "AS6002"


def test_a_kernel_that_never_ran_has_a_trace_without_lanes(tmp_path):
    write_run(tmp_path, MANIFEST, {1: write_region(64, [], 0)}, FACTS, {})
    trace = load_run(tmp_path).traces[1]
    assert (trace.lanes, trace.warnings) == ((), ())


def test_a_kernel_without_a_region_says_so(tmp_path):
    write_run(tmp_path, MANIFEST, {}, FACTS, {})
    trace = load_run(tmp_path).traces[1]
    assert (trace.lanes, trace.warnings) == ((), ("no region was recorded for it",))


SHARED = ring_manifest(ring_kernel(signature=11), ring_kernel(number=2, region=1, signature=22))


def test_of_two_compilations_in_one_region_the_last_writer_gets_the_records(tmp_path):
    write_run(tmp_path, SHARED, {1: ring_region(SHARED.traces[0])}, FACTS, {})
    traces = load_run(tmp_path).traces
    assert len(traces[1].lanes) == 2
    assert traces[2].lanes == ()
    assert traces[2].warnings == ("its region was written by kernel trace 1 after it",)


def test_a_shared_region_that_was_never_released_goes_to_the_latest_compilation_with_a_warning(tmp_path):
    write_run(tmp_path, SHARED, {1: write_region(64, [WarpLog(0, 0, None)], 0)}, FACTS, {})
    traces = load_run(tmp_path).traces
    assert traces[1].lanes == ()
    assert len(traces[2].lanes) == 1
    assert any("latest is assumed" in warning for warning in traces[2].warnings)


def test_a_shared_region_that_was_never_entered_leaves_both_without_lanes(tmp_path):
    write_run(tmp_path, SHARED, {1: write_region(64, [], 0)}, FACTS, {})
    assert [(trace.lanes, trace.warnings) for trace in load_run(tmp_path).traces.values()] == [((), ()), ((), ())]


def test_a_region_that_none_of_its_compilations_wrote_is_refused(tmp_path):
    write_run(tmp_path, SHARED, {1: write_region(64, [WarpLog(0, 0, 9)], 33)}, FACTS, {})
    with pytest.raises(AutostampError, match="0x00000021") as error:
        load_run(tmp_path)
    assert error.value.diagnostic.code == "AS6002"
