# SPDX-License-Identifier: Apache-2.0
"""Drain files and what becomes of them: which kernel wrote a region, its instances, the launches that are kept, what is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autostamp.analysis.timeline import analyse
from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind, Payload
from autostamp.model.sync import Kind, Side, SyncOp
from autostamp.runtime import layout, store
from autostamp.runtime.cuda.collect import Collected, Wanted, collect
from autostamp.runtime.cuda.drain import (
    Drained,
    Head,
    geometry_of,
    notes_of,
    read_drain,
    read_drains,
    sharers_of,
    without_stale_lanes,
)
from autostamp.runtime.cuda.instances import UnitTable, table_of
from autostamp.runtime.cuda.names import kernel_name
from tests.cuda_drains import KEY, OTHER, SIGNATURE, entry, region, set_words, unit_manifest, with_reaches, write_drain

SECOND = 0
"""Signature of the kernel `second`: slot 1 of a unit with signature 2^32 - 1."""
THIRD = 1
VISIT = [(1100, 5), (1200, 6)]
"""`second` enters and exits its __syncthreads."""


def collected(folder: Path, wanted: Wanted | None = None, **more: object) -> Collected:
    heads, drained = read_drains(folder)
    return collect(heads, drained, {SIGNATURE: unit_manifest()}, wanted or Wanted(), "test", **more)  # type: ignore[arg-type]


def codes(found: Collected) -> list[str]:
    return [finding.code for finding in found.findings]


def test_a_file_is_read_as_it_was_written(tmp_path):
    first, second = region(SECOND, {0: VISIT}), region(THIRD, {1: [(1001, 7)]}, capacity=32)
    path = write_drain(
        tmp_path / "drain-77-0.bin", [(entry(), first), (entry(capacity=32, slot=2, sequence=2), second)], errors=["no"]
    )
    head, drained = read_drain(path)
    assert (head.pid, head.drained, head.keep, head.block, head.errors) == (77, "exit", "last", (0, 0, 0), ("no",))
    assert (head.devices[0].sm_count, head.units[0].signature) == (132, SIGNATURE)
    assert [each.entry.slot for each in drained] == [1, 2]
    np.testing.assert_array_equal(drained[0].data, first)
    np.testing.assert_array_equal(drained[1].data, second)
    assert drained[0].geometry.grid == (4, 1, 1)
    assert (drained[0].geometry.block, drained[0].geometry.warps) == ((64, 1, 1), 2)


def test_files_of_a_folder_in_the_order_of_launches(tmp_path):
    data = region(SECOND, {0: VISIT})
    write_drain(tmp_path / "drain-77-0.bin", [(entry(sequence=5), data), (entry(sequence=2), data)])
    write_drain(tmp_path / "mapped-77-3.bin", [(entry(sequence=3), data)], drained="mapped")
    (tmp_path / "mapped-77-4.bin.tmp").write_bytes(b"half")
    heads, drained = read_drains(tmp_path)
    assert sorted(head.drained for head in heads) == ["exit", "mapped"]
    assert [each.entry.sequence for each in drained] == [2, 3, 5]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda data: b"", "it does not begin as a drain file does"),
        (lambda data: b"\x7fELF" + data, "it does not begin as a drain file does"),
        (lambda data: data.replace(b"drain 1 ", b"drain 2 ", 1), "version 2, this autostamp reads version 1"),
        (lambda data: data.replace(b'"pid": 77', b'"pid": "7', 1), "pid"),
        (lambda data: data.replace(b'"unused": 0', b'"unuses": 0', 1), "unused"),
        (lambda data: data[:-1], "in the region that begins at 65536"),
        (
            lambda data: data.replace(b'"capacity": 16', b'"capacity": 17', 1),
            "12288 bytes, where 12800 hold 17 records",
        ),
    ],
)
def test_a_broken_file_is_refused(tmp_path, change, detail):
    # 64 lanes x (64 + 16 x 8) bytes = 12,288, which is three times 4096: the file ends with the region.
    path = write_drain(tmp_path / "drain-1-0.bin", [(entry(), region(SECOND, {0: VISIT}))])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(AutostampError) as caught:
        read_drain(path)
    assert caught.value.diagnostic.code == "AS6001"
    assert detail in caught.value.diagnostic.message


def test_a_file_that_is_not_there():
    with pytest.raises(AutostampError, match="No such file"):
        read_drain(Path("/no/such/drain-1-0.bin"))


def test_a_region_becomes_a_kernel_trace(tmp_path):
    write_drain(tmp_path / "drain-1-0.bin", [(entry(name="void second(int)"), region(SECOND, {0: VISIT, 1: VISIT}))])
    found = collected(tmp_path)
    assert codes(found) == []
    (trace,) = found.manifest.traces
    assert (trace.number, trace.kernel, trace.file, trace.region) == (1, "second", KEY, 1)
    assert (trace.capacity, trace.block, trace.signature) == (16, (0, 0, 0), SECOND)
    assert [(each.file, each.site, each.enter, each.exit, each.signal) for each in trace.instances] == [
        (KEY, 3, 5, 6, 0),
        (OTHER, 1, 7, 8, 0),
    ]
    assert [(each.payload, each.kind, each.side) for each in trace.instances] == [
        (Payload.NONE, "wait", "cta"),
        (Payload.BARRIER_ID, "wait", "named"),
    ]
    assert [(each.number, each.label, each.is_inferred) for each in trace.barriers] == [
        (1, "CTA", True),
        (2, "barrier 3", True),
    ]
    assert [file.key for file in found.manifest.files] == [KEY, OTHER]
    assert found.manifest.unit == unit_manifest().unit


def test_the_run_decodes(tmp_path):
    records = [(1100, 1 | 0x81 << 16), (1150, 2), (1300, 3)]
    write_drain(tmp_path / "drain-1-0.bin", [(entry(slot=0), region(0xFFFFFFFF, {0: records, 33: [(1120, 1)]}))])
    found = collected(tmp_path)
    (trace,) = store.decode_all(found.manifest, found.regions).values()
    (lane,) = trace.lanes
    assert [(event.cycles, event.kind, event.instance, event.payload) for event in lane.events] == [
        (100, EventKind.ENTER, 1, 0x81),
        (150, EventKind.EXIT, 1, 0),
        (300, EventKind.SIGNAL, 2, 0),
    ]
    assert trace.warnings == ("warp 1 has single-thread records but its lane was never bound: they are left out",)
    assert trace.sm_mhz == 2000.0  # 310 cycles in 155 ns
    full = found.manifest.traces[0].barriers[0]
    assert (full.label, full.is_inferred) == ("full", False)
    assert analyse(trace).warps[0].warp == 0


def test_single_thread_lanes_join_their_warp(tmp_path):
    lanes = {0: [(1100, 5), (1200, 6)], 32: [(1130, 7 | 3 << 16), (1140, 8)]}
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), region(SECOND, lanes))])
    found = collected(tmp_path)
    (trace,) = store.decode_all(found.manifest, found.regions).values()
    assert [event.cycles for event in trace.lanes[0].events] == [100, 130, 140, 200]
    assert trace.lanes[0].events[1].payload == 3


def test_lost_records_are_counted(tmp_path):
    records = [(1000 + 10 * number, 5 + number % 2) for number in range(16)]
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), region(SECOND, {0: records}, lost=5))])
    found = collected(tmp_path)
    (trace,) = store.decode_all(found.manifest, found.regions).values()
    assert (len(trace.lanes[0].events), trace.lanes[0].lost) == (16, 5)


def test_a_region_that_no_warp_was_bound_to_says_nothing(tmp_path):
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), np.zeros(layout.region_bytes(16), np.uint8))])
    found = collected(tmp_path)
    assert (found.manifest.traces, found.regions, found.findings) == ((), (), ())


def test_headers_of_an_earlier_larger_launch_are_left_out(tmp_path):
    data = region(SECOND, {0: VISIT, 1: VISIT, 2: [(9000, 1)], 34: [(9000, 1)]}, threads=33)
    kept = without_stale_lanes(data, 16)
    states = [int(kept[lane * layout.lane_bytes(16) + 36]) for lane in (0, 1, 2, 34)]
    assert states == [layout.RELEASED, layout.RELEASED, 0, 0]
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), data)])
    found = collected(tmp_path)
    (trace,) = store.decode_all(found.manifest, found.regions).values()
    assert [lane.warp for lane in trace.lanes] == [0, 1]
    everything = region(SECOND, {0: VISIT}, threads=1024)
    assert without_stale_lanes(everything, 16) is everything


@pytest.mark.parametrize(
    ("threads", "warps"), [((1, 1, 1), 1), ((32, 1, 1), 1), ((33, 1, 1), 2), ((7, 5, 3), 4), ((16, 16, 4), 32)]
)
def test_warps_of_a_block(threads, warps):
    data = region(SECOND, {0: VISIT})
    set_words(data, 16, layout.WARPS, 20, threads)
    assert geometry_of(data, 16).warps == warps


def test_the_last_launch_of_each_kernel_is_kept(tmp_path):
    second, third = region(SECOND, {0: VISIT}), region(THIRD, {0: [(1001, 7), (1002, 8)]})
    late = region(SECOND, {0: [(1500, 5), (1600, 6)]})
    rows = [
        (entry(sequence=1, launch=1, slot=-1), second),
        (entry(sequence=2, launch=2, slot=-1), third),
        (entry(sequence=3, launch=3, slot=-1), late),
        (entry(sequence=4, launch=4, slot=-1, device=1), second),
    ]
    write_drain(tmp_path / "drain-1-0.bin", rows)
    found = collected(tmp_path)
    names = [trace.kernel for trace in found.manifest.traces]
    assert names == ["third", "second on device 0", "second on device 1"]
    np.testing.assert_array_equal(found.regions[1].data, late)
    every = collected(tmp_path, Wanted(keep="all"))
    assert [trace.kernel for trace in every.manifest.traces] == [
        "second on device 0 #1",
        "third",
        "second on device 0 #3",
        "second on device 1",
    ]


def test_one_launch_of_each_kernel(tmp_path):
    second, third = region(SECOND, {0: VISIT}), region(THIRD, {0: [(1001, 7), (1002, 8)]})
    rows = [(entry(sequence=n, launch=n, slot=-1), data) for n, data in enumerate((second, third, third, second), 1)]
    write_drain(tmp_path / "drain-1-0.bin", rows, keep="one", launch=2)
    found = collected(tmp_path, Wanted(keep="one", launch=2))
    assert [(trace.kernel, trace.region) for trace in found.manifest.traces] == [("third", 1), ("second", 2)]
    missed = collected(tmp_path, Wanted(keep="one", launch=3))
    assert (missed.manifest.traces, codes(missed)) == ((), ["AS5018"])
    assert "launch 3: fewer launches were seen of: second, third" in missed.findings[0].message


def test_a_launch_whose_kernel_the_host_knew_is_not_counted_again(tmp_path):
    rows = [(entry(sequence=9, launch=2, carrier="param"), region(SECOND, {0: VISIT}))]
    write_drain(tmp_path / "drain-1-0.bin", rows, keep="one", launch=2)
    assert [trace.kernel for trace in collected(tmp_path, Wanted(keep="one", launch=2)).manifest.traces] == ["second"]


def test_kernels_are_chosen_by_name(tmp_path):
    name = "void third(T) [with T = float; int N = 4]"
    rows = [
        (entry(sequence=1, slot=-1), region(SECOND, {0: VISIT})),
        (entry(sequence=2, slot=-1, name=name), region(THIRD, {0: [(1001, 7), (1002, 8)]})),
    ]
    write_drain(tmp_path / "drain-1-0.bin", rows)
    assert [trace.kernel for trace in collected(tmp_path, Wanted(r"<float, \d>")).manifest.traces] == [
        "third<float, 4>"
    ]
    found = collected(tmp_path, Wanted("gemm"))
    assert (found.regions, codes(found)) == ((), ["AS5018"])
    assert "recorded were: second, third<float, 4>" in found.findings[0].message


def test_instantiations_of_one_template_are_two_kernels(tmp_path):
    data = region(SECOND, {0: VISIT})
    names = ["void second(T) [with T = float]", "void second(T) [with T = double]"]
    write_drain(tmp_path / "drain-1-0.bin", [(entry(name=name, sequence=n), data) for n, name in enumerate(names)])
    assert [trace.kernel for trace in collected(tmp_path).manifest.traces] == ["second<float>", "second<double>"]


def test_lanes_that_were_never_released(tmp_path):
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), region(0, {0: VISIT[:1]}, released=False))])
    found = collected(tmp_path)
    assert [trace.kernel for trace in found.manifest.traces] == ["second"]
    assert codes(found) == ["AS5015"]
    assert "no warp came to the end of the kernel" in found.findings[0].message


@pytest.mark.parametrize(
    ("more", "records", "kernel"),
    [
        ({"slot": 2}, [(1001, 7)], "third"),
        ({"slot": -1, "name": "void ns::first()"}, [(1001, 1)], "ns::first"),
        ({"slot": -1, "name": "void first(T) [with T = int]"}, [(1001, 1)], "first<int>"),
        ({"slot": -1}, [(1001, 5)], "second"),
        ({"slot": -1}, [(1001, 3)], "ns::first"),
    ],
)
def test_whose_lanes_were_never_released(tmp_path, more, records, kernel):
    # Event 5 is in reach of `second` alone, event 3 of `ns::first` alone.
    write_drain(tmp_path / "drain-1-0.bin", [(entry(**more), region(0, {0: records}, released=False))])
    assert [trace.kernel for trace in collected(tmp_path).manifest.traces] == [kernel]


def test_lanes_that_two_kernels_could_have_left(tmp_path):
    # Event 7 is in reach of both `second` and `third`.
    write_drain(tmp_path / "drain-1-0.bin", [(entry(slot=-1), region(0, {0: [(1001, 7)]}, released=False))])
    found = collected(tmp_path)
    assert (found.manifest.traces, codes(found)) == ((), ["AS5014"])
    assert "2 of its unit's kernels could have written them" in found.findings[0].message


def test_a_signature_that_no_kernel_has(tmp_path):
    write_drain(tmp_path / "drain-1-0.bin", [(entry(name="void other()"), region(77, {0: VISIT}))])
    found = collected(tmp_path)
    assert codes(found) == ["AS5014"]
    assert "no kernel of its unit has the signature 0x0000004d" in found.findings[0].message


def test_a_unit_without_a_manifest(tmp_path):
    data = region(0x2000, {0: VISIT})
    write_drain(tmp_path / "drain-1-0.bin", [(entry(unit=0x2000), data), (entry(unit=0x2000), data)])
    found = collected(tmp_path)
    assert codes(found) == ["AS5013"]
    assert "no manifest of unit 00002000 was found, which /tmp/app holds" in found.findings[0].message


def test_a_kernel_of_another_unit_than_the_launch(tmp_path):
    # The launch stands in one unit, the kernel in another: the signature in the lanes decides.
    write_drain(tmp_path / "drain-1-0.bin", [(entry(unit=0x2000, slot=0), region(THIRD, {0: [(1001, 7), (1002, 8)]}))])
    assert [trace.kernel for trace in collected(tmp_path).manifest.traces] == ["third"]


def test_what_was_dropped_and_what_failed_is_said(tmp_path):
    write_drain(
        tmp_path / "drain-1-0.bin",
        [(entry(), region(SECOND, {0: VISIT}))],
        dropped=[{"of": f"0:{SIGNATURE}:1", "count": 3}, {"of": "0:5:-1", "count": 1}],
        errors=["cannot allocate a region: out of memory", "cannot allocate a region: out of memory"],
    )
    found = collected(tmp_path)
    assert codes(found) == ["AS5017", "AS5016", "AS5016"]
    assert "3 launches of second were not kept: the limit is 64" in found.findings[1].message
    assert "1 launches of unit 00000005" in found.findings[2].message


def test_launches_that_overlapped(tmp_path):
    data = region(SECOND, {0: VISIT, 1: VISIT})
    set_words(data, 16, 1, 48, (1,))
    assert notes_of(data, 16) == [
        "another launch wrote to it at the same time, or an earlier one never came to its end"
    ]
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), data)])
    found = collected(tmp_path)
    assert (len(found.manifest.traces), codes(found)) == (1, ["AS5015"])


def test_threads_that_shared_a_lane():
    data = region(SECOND, {0: VISIT, 33: [(1100, 7)]})
    set_words(data, 16, 33, 40, (1 << 5,))
    assert sharers_of(data, 16) == []
    set_words(data, 16, 33, 40, (1 << 5 | 1 << 6 | 1 << 7 | 1 << 31,))
    assert sharers_of(data, 16) == [
        "threads 5-7, 31 of warp 1, which count as one: had they taken turns, records would be lost"
    ]


def test_threads_that_shared_a_lane_are_a_note(tmp_path):
    data = region(SECOND, {0: VISIT, 33: [(1100, 7)]})
    set_words(data, 16, 33, 40, (1 << 5 | 1 << 6,))
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), data)])
    (found,) = collected(tmp_path).findings
    assert (found.code, found.status) == ("AS5019", 0)


def test_lanes_of_two_kernels_in_one_region(tmp_path):
    data = region(SECOND, {0: VISIT, 1: VISIT})
    set_words(data, 16, 1, 12, (THIRD,))
    write_drain(tmp_path / "drain-1-0.bin", [(entry(), data)])
    assert codes(collected(tmp_path)) == ["AS6002"]


def test_a_site_that_was_visited_and_not_known_to_be_reached():
    manifest = with_reaches(unit_manifest(), "second", [(KEY, 3)])
    unit = UnitTable.of(manifest)
    kernel = unit.kernels()[1]
    table = table_of(unit, kernel.definition, [unit.site_of(7), unit.site_of(5)])  # type: ignore[list-item]
    assert [(each.number, each.file, each.site) for each in table.instances] == [(1, KEY, 3), (2, OTHER, 1)]
    assert table.strays == ((OTHER, 1),)


def test_what_the_catalogue_knows_of_a_call():
    unit = UnitTable.of(unit_manifest())
    op = SyncOp("cuda", "__syncthreads", Kind.WAIT, Side.CTA, signals=(Side.CTA,), is_async=True)
    table = table_of(unit, unit.kernels()[1].definition, (), lambda site: op if site.owner == "cuda" else None)
    assert [(each.signals, each.is_async) for each in table.instances] == [(("cta",), True), ((), False)]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (0, None),
        (1, (KEY, 1)),
        (2, (KEY, 1)),
        (3, (KEY, 2)),
        (4, (KEY, 2)),
        (6, (KEY, 3)),
        (7, (OTHER, 1)),
        (8, (OTHER, 1)),
        (9, None),
    ],
)
def test_the_site_of_an_event(event, expected):
    assert UnitTable.of(unit_manifest()).site_of(event) == expected


def test_a_kernel_by_its_signature():
    unit = UnitTable.of(unit_manifest())
    assert [unit.signature_of(kernel) for kernel in unit.kernels()] == [SIGNATURE, SECOND, THIRD]
    assert [unit.kernel_of(signature).definition.name for signature in (SIGNATURE, 0, 1)] == [
        "ns::first",
        "second",
        "third",
    ]  # type: ignore[union-attr]
    assert unit.kernel_of(2) is None


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("", ""),
        ("void cc(const float *)", "cc"),
        ("void ns::plain(int)", "ns::plain"),
        ("void ns::dk(Op::P) [with Op = ns::Op<float>]", "ns::dk<ns::Op<float>>"),
        ("void ns::k(T, A..., autostamp::Slot) [with T = float; int N = 4]", "ns::k<float, 4>"),
        ("void ns::k(T, A..., autostamp::Slot) [with T = float, N = 4]", "ns::k<float, 4>"),
        (
            "void k(T) [with T = std::pair<int, float>; F = void (*)(int, int)]",
            "k<std::pair<int, float>, void (*)(int, int)>",
        ),
        ("void (anonymous namespace)::k()", "(anonymous namespace)::k"),
        ("void ns::<unnamed>::k(void (*)(int))", "ns::<unnamed>::k"),
        # The first 64 bytes of a longer one.
        ("void gemm_pingpong(CUtensorMap_st, CUtensorMap_st, CUtensorMap_s", ""),
    ],
)
def test_names_of_kernels(signature, name):
    # As nvcc 13.0 (semicolons) and NVRTC 13.0 (commas) spell __PRETTY_FUNCTION__.
    assert kernel_name(signature) == name


def test_nothing_at_all(tmp_path):
    heads: tuple[Head, ...]
    drained: tuple[Drained, ...]
    heads, drained = read_drains(tmp_path)
    assert (heads, drained) == ((), ())


def many(regions: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(regions)


def test_regions_of_many_ctas_are_one_kernel_trace(tmp_path):
    """The grid that `region` notes is 4 by 1 by 1. The second CTA was chosen and has not run."""
    data = many([region(SECOND, {0: VISIT}), np.zeros(layout.region_bytes(16), np.uint8), region(SECOND, {1: VISIT})])
    write_drain(tmp_path / "drain-1-0.bin", [(entry(ctas=3), data)], blocks="1..5")
    found = collected(tmp_path)
    (trace,) = found.manifest.traces
    assert trace.blocks == "1..5"
    assert [(each.region, each.launch, each.cta, each.block, each.grid) for each in found.regions] == [
        (1, 0, 0, (1, 0, 0), (4, 1, 1)),
        (1, 0, 2, (3, 0, 0), (4, 1, 1)),
    ]
    assert [[lane.warp for lane in each.lanes] for each in store.decode_every(found.manifest, found.regions)] == [
        [0],
        [1],
    ]


def test_the_last_launches_are_those_of_the_global_timer(tmp_path):
    """Regions take turns, so the order in which they were first given out says nothing."""
    regions = []
    for turn, ns in enumerate((900, 500, 700)):
        data = region(SECOND, {0: VISIT})
        data[16:24].view("<u8")[:] = ns
        data[24:32].view("<u8")[:] = ns + 50
        regions.append((entry(launch=3, sequence=1 + turn), data))
    write_drain(tmp_path / "drain-1-0.bin", regions, repeat=2)
    heads, drained = read_drains(tmp_path)
    manifests = {SIGNATURE: unit_manifest()}
    found = collect(heads, drained, manifests, Wanted(repeat=2), "test")
    assert [(each.region, each.launch) for each in found.regions] == [(1, 0), (1, 1)]
    lanes = [trace.lanes[0] for trace in store.decode_every(found.manifest, found.regions)]
    assert [lane.entry_ns for lane in lanes] == [700, 900]


@pytest.mark.parametrize(("ctas", "blocks"), [(2, ""), (3, "0..1"), (0, "0..1"), (1, "1..0")])
def test_more_ctas_than_were_chosen_are_refused(tmp_path, ctas, blocks):
    data = np.zeros(ctas * layout.region_bytes(16), np.uint8)
    path = write_drain(tmp_path / "drain-1-0.bin", [(entry(ctas=ctas), data)], blocks=blocks)
    with pytest.raises(AutostampError, match="AS6001"):
        read_drains(path.parent)
