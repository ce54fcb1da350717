# SPDX-License-Identifier: Apache-2.0
"""Memory of many CTAs and launches: what lies where, which launches are kept, and what a run folder says of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.options import Blocks, RecordOptions
from autostamp.model.run import MachineFacts
from autostamp.runtime.layout import region_bytes
from autostamp.runtime.regions import Recorded, memory_bytes, split, unrecorded
from autostamp.runtime.store import RECORDS_NAME, decode_every, load_run, write_run
from tests.simulator.grid import Sm, run_cta
from tests.simulator.tables import ring_kernel, ring_manifest

CAPACITY = 64
KERNEL = ring_kernel(capacity=CAPACITY)
SIZE = region_bytes(CAPACITY)


class Device:
    """What stamps do at a kernel's entry: each chosen CTA records in the group of its own count of launches."""

    def __init__(self, options: RecordOptions) -> None:
        self.options = options
        self.memory = np.zeros(memory_bytes(options), np.uint8)
        self._counts: dict[int, int] = {}
        self._now = 0

    def launch(self, grid: tuple[int, int, int], uses: int = 4) -> None:
        """All chosen CTAs of the grid, one after another on one SM."""
        options = self.options
        for cta in range(options.ctas):
            block = options.block if options.blocks is None else options.blocks.block(cta, grid)
            if block is None:
                continue
            count = self._counts.get(cta, 0)
            self._counts[cta] = count + 1
            placed = run_cta(KERNEL, Sm(cta, 5), self._now, grid, uses=uses, launch=count)
            begin = (count % options.repeat * options.ctas + cta) * SIZE
            self.memory[begin : begin + SIZE] = placed.region
            self._now = placed.end + 500
        self._now += 5000

    def split(self) -> list[Recorded]:
        return split(1, self.memory, self.options)


def places(found: list[Recorded]) -> list[tuple[int, tuple[int, int, int] | None]]:
    return [(each.launch, each.block) for each in found]


def uses_of(found: list[Recorded]) -> list[int]:
    """How often the producer of each region filled a stage: it acquires, so two records, and commits."""
    traces = decode_every(ring_manifest(KERNEL), found)
    return [len(trace.lanes[0].events) // 3 for trace in traces]


def test_one_cta_of_one_launch_is_the_memory_itself():
    device = Device(RecordOptions(CAPACITY, (1, 0, 0)))
    device.launch((2, 1, 1))
    (found,) = device.split()
    assert (found.launch, found.cta, found.block, found.grid) == (0, 0, (1, 0, 0), (0, 0, 0))
    assert np.array_equal(found.data, device.memory)


def test_a_range_knows_its_blocks_by_the_grid():
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(2, 4)))
    device.launch((2, 2, 2))
    assert places(device.split()) == [(0, (0, 1, 0)), (0, (1, 1, 0)), (0, (0, 0, 1)), (0, (1, 0, 1))]


def test_listed_blocks_outside_the_grid_have_no_region():
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(count=2, listed=((9, 0, 0), (1, 0, 0)))))
    device.launch((2, 1, 1))
    assert places(device.split()) == [(0, (1, 0, 0))]


def test_the_last_launches_are_kept_in_their_order():
    device = Device(RecordOptions(CAPACITY, repeat=3))
    for uses in (2, 3, 4, 5, 6):
        device.launch((1, 1, 1), uses)
    found = device.split()
    assert places(found) == [(0, (0, 0, 0)), (1, (0, 0, 0)), (2, (0, 0, 0))]
    assert uses_of(found) == [4, 5, 6]


def test_launches_of_many_ctas():
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(0, 3), repeat=2))
    for uses in (2, 3, 4):
        device.launch((2, 1, 1), uses)
    found = device.split()
    assert places(found) == [(0, (0, 0, 0)), (0, (1, 0, 0)), (1, (0, 0, 0)), (1, (1, 0, 0))]
    assert uses_of(found) == [3, 3, 4, 4]


def test_a_launch_of_which_a_cta_was_overwritten_is_left_out():
    """CTA 1 ran in the first and third launch, CTA 0 in all three: of the first one CTA 0's records are gone."""
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(0, 2), repeat=2))
    for grid, uses in (((2, 1, 1), 2), ((1, 1, 1), 3), ((2, 1, 1), 4)):
        device.launch(grid, uses)
    found = device.split()
    assert [(each.launch, each.block, each.grid[0]) for each in found] == [
        (0, (0, 0, 0), 1),
        (1, (0, 0, 0), 2),
        (1, (1, 0, 0), 2),
    ]
    assert uses_of(found) == [3, 4, 4]


def test_a_kernel_that_never_ran_has_one_empty_region():
    (found,) = Device(RecordOptions(CAPACITY, blocks=Blocks(0, 3), repeat=2)).split()
    assert not found.data.any()
    assert found.data.size == SIZE
    (trace,) = decode_every(ring_manifest(KERNEL), [found])
    assert trace.lanes == ()


def test_a_warp_of_another_launch_is_left_out_and_said():
    first = run_cta(KERNEL, Sm(0, 0), 0, (1, 1, 1), launch=4)
    second = run_cta(KERNEL, Sm(0, 0), 50_000, (1, 1, 1), launch=7)
    mixed = first.region.copy()
    lane = SIZE // 64
    mixed[:lane] = second.region[:lane]
    (trace,) = decode_every(ring_manifest(KERNEL), {1: mixed})
    assert [lane.warp for lane in trace.lanes] == [0]
    assert trace.warnings == ("warp 1 has records of another launch: they are left out",)


def test_a_run_folder_keeps_block_launch_and_grid(tmp_path):
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(0, 8), repeat=2))
    device.launch((2, 1, 1))
    device.launch((2, 1, 1))
    write_run(tmp_path, ring_manifest(KERNEL), device.split(), MachineFacts(), {})
    with np.load(tmp_path / RECORDS_NAME) as archive:
        assert {name for name in archive.files if name.startswith("region")} == {
            f"region_1_launch_{launch}_cta_{cta}" for launch in (0, 1) for cta in (0, 1)
        }
        assert archive["places"].tolist()[3] == [1, 1, 1, 1, 0, 0, 2, 1, 1]
    run = load_run(tmp_path)
    assert [(trace.launch, trace.block, trace.grid) for trace in run.recorded] == [
        (0, (0, 0, 0), (2, 1, 1)),
        (0, (1, 0, 0), (2, 1, 1)),
        (1, (0, 0, 0), (2, 1, 1)),
        (1, (1, 0, 0), (2, 1, 1)),
    ]
    assert run.traces == {1: run.recorded[0]}


@pytest.mark.parametrize("broken", ["places", "name"])
def test_regions_that_no_place_names_are_refused(tmp_path, broken):
    device = Device(RecordOptions(CAPACITY, blocks=Blocks(0, 2)))
    device.launch((2, 1, 1))
    write_run(tmp_path, ring_manifest(KERNEL), device.split(), MachineFacts(), {})
    with np.load(tmp_path / RECORDS_NAME) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if broken == "places":
        arrays["places"] = arrays["places"][:1]
    else:
        arrays["regions_of_another_kind"] = arrays["places"]
    np.savez(tmp_path / RECORDS_NAME, **arrays)
    with pytest.raises(AutostampError, match="AS6001"):
        load_run(tmp_path)


def test_what_was_not_recorded_is_said():
    options = RecordOptions(CAPACITY, blocks=Blocks(0, 2, is_all=True))
    device = Device(options)
    device.launch((5, 1, 1))
    (finding,) = unrecorded("ring", device.split(), options)
    assert finding.code == "AS5021"
    assert finding.message.startswith("2 of the 5 CTAs of ring were recorded")
    listed = replace(options, blocks=Blocks(0, 2))
    assert unrecorded("ring", device.split(), listed) == []
    repeated = Device(RecordOptions(CAPACITY, repeat=3))
    repeated.launch((1, 1, 1))
    (note,) = unrecorded("ring", repeated.split(), repeated.options)
    assert (note.code, int(note.status)) == ("AS5022", 0)
    assert unrecorded("ring", Device(repeated.options).split(), repeated.options) == []
