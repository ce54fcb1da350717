# SPDX-License-Identifier: Apache-2.0
"""Stamps of CUDA C++ on a GPU: what they record under every carrier, launch mode and stream, and that results stay the same."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from autostamp.hooks.native import NativeOptions, NativeResult, run
from autostamp.model.manifest import MANIFEST_VERSION, EventKind, Manifest, SourceFile, Unit, UnitFile
from autostamp.model.options import RecordOptions
from autostamp.model.sync import Kind, Side
from autostamp.model.trace import Lane, Trace
from autostamp.runtime import store
from autostamp.runtime.cuda import header
from autostamp.runtime.cuda.collect import Wanted, collect
from autostamp.runtime.cuda.drain import read_drains
from autostamp.runtime.decode import check
from autostamp.runtime.layout import region_bytes
from autostamp.runtime.manifest_file import write_manifest
from tests.cuda_drains import entry, kernel, site, write_drain

pytestmark = pytest.mark.gpu

SOURCE = Path(__file__).with_name("cuda") / "stamps.cu"
UNIT = 0x5EED0000
STAGES = 3
HEADER = f"""\
#pragma once
#define AUTOSTAMP_UNIT {UNIT:#010x}u
#define AUTOSTAMP_UNIT_SLOTS 5
#ifndef AUTOSTAMP_UNIT_LAUNCHES
#define AUTOSTAMP_UNIT_LAUNCHES 7
#endif
#define AUTOSTAMP_EVENTS_aa 0
#define AUTOSTAMP_KERNELS_aa 0
#ifdef LEAN
#define AUTOSTAMP_UNIT_LEAN_KERNELS 0, 1, 2, 3, 4
#define AUTOSTAMP_UNIT_LEAN_EVENTS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19
#endif
"""
FLAGS = {
    "plain": (),
    "stamped": ("-DAUTOSTAMP",),
    "linked": ("-DAUTOSTAMP", "-rdc=true"),
    "debug": ("-DAUTOSTAMP", "-G"),
    "lean": ("-DAUTOSTAMP", "-DLEAN"),
    "hidden": ("-DAUTOSTAMP", "-DWITHOUT_HOOKS", "-DAUTOSTAMP_UNIT_LAUNCHES=0"),
}


def manifest() -> Manifest:
    """The sites and kernels of stamps.cu."""
    waits = {1: "empty", 3: "full", 5: "CTA", 6: "sleep", 7: "CTA", 8: "sleep", 9: "warp", 10: "spin"}
    sites = []
    for number in range(1, 11):
        name = waits.get(number, "full" if number == 2 else "empty")
        payload = "address" if number < 5 else "barrier-id" if number == 6 else "none"
        kind = Kind.WAIT if number in waits else Kind.SIGNAL
        sites.append(site(number, f"site{number}", kind, name, owner="test", side=Side.FULL, payload=payload))
    kernels = (
        kernel(1, "ring_param", [("aa", n) for n in range(1, 6)]),
        kernel(2, "ring_symbol", [("aa", n) for n in range(1, 6)]),
        kernel(3, "elected", [("aa", 6), ("aa", 7)]),
        kernel(4, "sharing", [("aa", 8)]),
        kernel(5, "busy", [("aa", 9), ("aa", 10)]),
    )
    file = SourceFile("aa", "stamps.cu", "", "0" * 64, tuple(sites), (), kernels, "cuda")
    return Manifest(MANIFEST_VERSION, "test", (file,), unit=Unit(UNIT, (UnitFile("aa", 0, 0),)))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    assert shutil.which("nvcc"), "nvcc is needed beside the GPU"
    folder = tmp_path_factory.mktemp("stamps")
    (folder / header.UNIT_HEADER).write_text(HEADER, encoding="ascii")
    write_manifest(folder / "unit.manifest.json", manifest())
    common = ["nvcc", "-std=c++17", "-O3", "-arch=native", f"-I{header.folder()}", f"-I{folder}"]
    for name, flags in FLAGS.items():
        subprocess.run([*common, *flags, "-o", folder / name, SOURCE], check=True)
    return {name: folder / name for name in FLAGS}


@dataclass
class Ran:
    """A program after its end: its output, and the traces of its run by kernel name."""

    result: NativeResult
    output: NDArray[np.int32]
    traces: dict[str, Trace]

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.result.findings]


@pytest.fixture
def execute(programs, tmp_path):
    def execute(words: str, name: str = "stamped", **options: object) -> Ran:
        out, folder = tmp_path / f"{name}.out", tmp_path / f"RUN-{name}"
        given = NativeOptions(manifests=(programs[name].parent,), **options)  # type: ignore[arg-type]
        result = run([str(programs[name]), str(out), *words.split()], folder, given)
        output = np.fromfile(out, np.int32) if out.exists() else np.zeros(0, np.int32)
        data = store.load_run(folder).traces.values() if result.was_written else ()
        return Ran(result, output, {trace.kernel.kernel: trace for trace in data})

    return execute


def counts(lane: Lane) -> Counter[tuple[int, EventKind]]:
    return Counter((event.instance, event.kind) for event in lane.events)


def assert_ring(trace: Trace, n: int, consumers: int) -> None:
    """Instances 1 to 5 are sites 1 to 5: what the producer's first thread and each consumer warp must have recorded."""
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(1 + consumers))
    assert len({lane.smid for lane in trace.lanes}) == 1
    assert not any(lane.lost for lane in trace.lanes)
    both = (EventKind.ENTER, EventKind.EXIT)
    producer, *rest = trace.lanes
    whole = {(5, kind): 1 for kind in both}
    assert counts(producer) == {**{(1, kind): n for kind in both}, (2, EventKind.SIGNAL): n, **whole}
    for lane in rest:
        assert counts(lane) == {**{(3, kind): n for kind in both}, (4, EventKind.SIGNAL): n, **whole}
    fills = [event for event in producer.events if event.instance == 2]
    ends = [event for event in producer.events if event.instance == 1 and event.kind is EventKind.EXIT]
    # One barrier for each stage, 8 bytes apart: addresses divided by 8 are consecutive and come round in turn.
    addresses = [event.payload for event in fills]
    assert addresses[:STAGES] == [addresses[0] + i for i in range(min(STAGES, n))]
    assert all(address == addresses[i % STAGES] for i, address in enumerate(addresses))
    for lane in rest:
        entered = [event for event in lane.events if event.instance == 3 and event.kind is EventKind.ENTER]
        left = [event for event in lane.events if event.instance == 3 and event.kind is EventKind.EXIT]
        assert [event.payload for event in entered] == addresses
        # A consumer's wait cannot end before the producer's wait for that stage has.
        assert all(after.cycles > before.cycles for after, before in zip(left, ends, strict=True))
    for lane in trace.lanes:
        assert 0 <= lane.entry_cycles <= lane.events[0].cycles <= lane.events[-1].cycles <= lane.exit_cycles
        assert lane.entry_ns <= lane.exit_ns


def ring_output(n: int, *threads: int) -> NDArray[np.int32]:
    """Two CTAs of each launch add 3i and their thread's number at i, from the second warp on."""
    out = np.zeros(1 << 16, np.int64)
    for count in threads:
        for i in range(n):
            out[i] += 2 * sum(3 * i + thread for thread in range(32, count))
    return out.astype(np.int32)


def test_lean_stamps_record_the_same(execute):
    ran = execute("p20 q10 s20", "lean")
    assert (ran.result.status, ran.codes) == (0, [])
    assert_ring(ran.traces["ring_param<0>"], 20, 2)
    assert_ring(ran.traces["ring_param<1>"], 10, 3)
    assert_ring(ran.traces["ring_symbol"], 20, 2)
    np.testing.assert_array_equal(ran.output, ring_output(20, 96, 96) + ring_output(10, 128))


def test_lean_stamps_of_another_cta(execute):
    assert_ring(execute("s20", "lean", record=RecordOptions(block=(1, 0, 0))).traces["ring_symbol"], 20, 2)
    assert execute("s20", "lean", record=RecordOptions(block=(2, 0, 0))).codes == ["AS5010"]


@pytest.mark.parametrize("name", ["stamped", "linked", "debug"])
def test_both_carriers(execute, name):
    ran = execute("p20 s20", name)
    assert (ran.result.status, ran.codes) == (0, [])
    assert set(ran.traces) == {"ring_param<0>", "ring_symbol"}
    for trace in ran.traces.values():
        assert_ring(trace, 20, 2)
        assert trace.sm_mhz == 0 or 100 < trace.sm_mhz < 10000  # 0 where the global timer did not tick meanwhile
    np.testing.assert_array_equal(ran.output, ring_output(20, 96, 96))


def test_outputs_are_equal_with_and_without_stamps(execute):
    words = "p500 q300 s77 e9 f9 h5"
    plain = execute(words, "plain")
    assert plain.codes == ["AS5010"]
    for name in ("stamped", "linked"):
        np.testing.assert_array_equal(execute(words, name).output, plain.output)


def test_a_stamped_program_that_is_not_recorded(programs, tmp_path):
    out = tmp_path / "out"
    done = subprocess.run([programs["stamped"], out, "p20"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    np.testing.assert_array_equal(np.fromfile(out, np.int32), ring_output(20, 96))


def test_launches_out_of_sight(execute):
    ran = execute("s20", "hidden")
    assert (ran.result.status, ran.codes) == (0, [])
    assert_ring(ran.traces["ring_symbol"], 20, 2)


def test_instantiations_are_told_apart(execute):
    ran = execute("p20 q10 p5")
    assert set(ran.traces) == {"ring_param<0>", "ring_param<1>"}
    assert_ring(ran.traces["ring_param<0>"], 5, 2)
    assert_ring(ran.traces["ring_param<1>"], 10, 3)


def test_one_launch_of_each_kernel(execute):
    ran = execute("p20 s10 p5 s4 p3", launch="2")
    assert set(ran.traces) == {"ring_param<0>", "ring_symbol"}
    assert_ring(ran.traces["ring_param<0>"], 5, 2)
    assert_ring(ran.traces["ring_symbol"], 4, 2)


def test_all_launches(execute):
    ran = execute("p20 s10 p5 s4", launch="all")
    expected = {"ring_param<0> #1": 20, "ring_param<0> #2": 5, "ring_symbol #1": 10, "ring_symbol #2": 4}
    assert set(ran.traces) == set(expected)
    for name, n in expected.items():
        assert_ring(ran.traces[name], n, 2)


def test_two_streams(execute):
    ran = execute("t1 p20 t2 p10 t1 s7", launch="all")
    assert ran.codes == []
    found = sorted(len(trace.lanes[0].events) for trace in ran.traces.values())
    # Three records a round for the producer, and two at the end.
    assert found == [3 * 7 + 2, 3 * 10 + 2, 3 * 20 + 2]


def test_launches_of_one_symbol_that_overlap(execute):
    ran = execute("t1 b3 t2 b3")
    assert "AS5015" in ran.codes


def test_a_graph(execute):
    ran = execute("t1 begin p20 s10 end graph graph graph")
    assert (ran.result.status, ran.codes) == (0, [])
    assert_ring(ran.traces["ring_param<0>"], 20, 2)
    assert_ring(ran.traces["ring_symbol"], 10, 2)
    np.testing.assert_array_equal(ran.output, 3 * (ring_output(20, 96) + ring_output(10, 96)))


@pytest.mark.parametrize("name", ["stamped", "lean"])
@pytest.mark.parametrize("capacity", [16, 17])
def test_what_does_not_fit_is_counted(execute, capacity, name):
    ran = execute("s500", name, record=RecordOptions(capacity))
    (trace,) = ran.traces.values()
    for lane in trace.lanes:
        assert (len(lane.events), lane.lost) == (capacity, 3 * 500 + 2 - capacity)
        assert lane.is_lossy
    np.testing.assert_array_equal(ran.output, ring_output(500, 96))


def test_another_cta(execute):
    assert_ring(execute("p20", record=RecordOptions(block=(1, 0, 0))).traces["ring_param<0>"], 20, 2)
    assert execute("p20", record=RecordOptions(block=(2, 0, 0))).codes == ["AS5010"]


@pytest.mark.parametrize("name", ["stamped", "lean"])
def test_a_single_thread_that_is_not_the_first(execute, name):
    """Site 6 is passed by thread 5 of warp 1, by eight threads of warp 2 as one, and by thread 0 of warp 3."""
    ran = execute("e9", name)
    (trace,) = ran.traces.values()
    assert check(trace) == []
    assert [len(lane.events) for lane in trace.lanes] == [2 * 9, 4 * 9, 4 * 9, 4 * 9]
    for lane in trace.lanes[1:]:
        alone = [event for event in lane.events if event.instance == 1]
        assert [event.payload for event in alone if event.kind is EventKind.ENTER] == list(range(9))
        # Between two visits of site 7 lies one of site 6: the two physical lanes are merged by clock.
        assert [event.instance for event in lane.events] == [1, 1, 2, 2] * 9
    # Eight threads of warp 2 wrote the same records to the same places.
    assert ran.codes == ["AS5019"]
    assert "threads 8-15 of warp 2, which count as one" in ran.result.findings[0].message


@pytest.mark.parametrize("name", ["stamped", "lean"])
def test_a_block_that_is_no_multiple_of_a_warp(execute, name):
    ran = execute("f9", name)
    (trace,) = ran.traces.values()
    # 7 x 5 threads: warp 1 has three, so thread 5 of it is not there.
    assert [(lane.warp, len(lane.events)) for lane in trace.lanes] == [(0, 18), (1, 18)]
    assert check(trace) == []


@pytest.mark.parametrize("name", ["stamped", "lean"])
def test_threads_that_take_turns_are_reported(execute, name):
    ran = execute("h9", name)
    assert ran.codes == ["AS5019"]
    assert "threads 3-4 of warp 0, which count as one" in ran.result.findings[0].message


def test_a_smaller_launch_after_a_larger_one(execute):
    """Of `last`, lanes that only the earlier launch had are not shown."""
    ran = execute("e3 f5")
    assert [lane.warp for lane in ran.traces["elected"].lanes] == [0, 1]


def test_records_outlive_an_abort(execute):
    ran = execute("b-7 abort", is_mapped=True)
    assert ran.result.status == -6
    assert ran.codes == ["AS5015", "AS5012"]
    (lane,) = ran.traces["busy"].lanes
    assert counts(lane) == {(1, EventKind.ENTER): 7, (1, EventKind.EXIT): 7, (2, EventKind.ENTER): 1}
    assert (lane.exit_cycles, lane.events[-1].instance) == (-1, 2)


def test_mapped_records_of_a_program_that_ends(execute):
    ran = execute("p20 s20", is_mapped=True)
    assert (ran.result.status, ran.codes) == (0, [])
    for trace in ran.traces.values():
        assert_ring(trace, 20, 2)


def test_an_abort_without_mapping(execute):
    ran = execute("p20 abort")
    assert (ran.result.status, ran.codes, ran.result.was_written) == (-6, ["AS5011"], False)


def test_a_cubin_that_is_loaded_by_hand(programs, tmp_path):
    """Whoever loads a module sets its slots by name."""
    import cupy

    cubin = tmp_path / "stamps.cubin"
    flags = [
        "-std=c++17",
        "-O3",
        "-arch=native",
        "-DAUTOSTAMP",
        f"-I{header.folder()}",
        f"-I{programs['plain'].parent}",
    ]
    subprocess.run(["nvcc", *flags, "-cubin", "-o", cubin, SOURCE], check=True)
    module = cupy.RawModule(path=str(cubin))
    region = cupy.zeros(region_bytes(256), cupy.uint8)
    slots = module.get_global(header.SLOTS_SYMBOL)
    data = np.frombuffer(
        header.slot_bytes(0, 0, (0, 0, 0)) + header.slot_bytes(region.data.ptr, 256, (0, 0, 0)), np.uint8
    )
    slots.copy_from_host(data.ctypes.data, data.nbytes)
    out = cupy.zeros(1 << 16, cupy.int32)
    module.get_function("_Z11ring_symbolPii")((2,), (96,), (out, np.int32(20)))
    cupy.cuda.runtime.deviceSynchronize()
    np.testing.assert_array_equal(out.get(), ring_output(20, 96))
    write_drain(tmp_path / "drain-1-0.bin", [(entry(unit=UNIT, slot=1, capacity=256), region.get())])
    found = collect(*read_drains(tmp_path), {UNIT: manifest()}, Wanted(), "test")
    (trace,) = store.decode_all(found.manifest, found.regions).values()
    assert_ring(trace, 20, 2)
