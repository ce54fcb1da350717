# SPDX-License-Identifier: Apache-2.0
"""Several sessions in one process: what each finds of the kernels that were compiled or launched in it.

Memory is numpy's here, and tracing and launching are done by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.hooks import session as sessions
from autostamp.hooks.session import Session
from autostamp.model.manifest import Instance, KernelTrace, Payload
from autostamp.model.options import Blocks, RecordOptions
from autostamp.runtime.buffer import DeviceMemory, NoMemory
from autostamp.runtime.layout import lane_bytes, region_bytes
from autostamp.runtime.recorder import Recorder
from autostamp.runtime.store import load_run
from tests.simulator.region import Stamp, WarpLog, write_region

CAPACITY = 16
OPTIONS = RecordOptions(capacity=CAPACITY)
MODULE = "sample_with_a_sync_call"
SOURCE = "import cutlass.cute as cute\n\n\ndef helper(pipe, state):\n    pipe.consumer_wait(state)\n"


class HostMemory(DeviceMemory):
    """Regions in numpy arrays, at addresses that are never used as such."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}

    def allocate(self, size: int) -> int:
        address = 4096 * (len(self.arrays) + 1)
        self.arrays[address] = np.zeros(size, np.uint8)
        return address

    def read(self, address: int) -> np.ndarray:
        return self.arrays[address].copy()

    def clear(self) -> None:
        for array in self.arrays.values():
            array.fill(0)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HostMemory:
    """What a process begins with: no session yet, an importable target; the memory that sessions will use."""
    memory = HostMemory()
    monkeypatch.setattr(sessions, "RECORDER", Recorder())
    monkeypatch.setattr(sessions, "_MEMORY", {False: memory, True: NoMemory()})
    monkeypatch.setattr(sessions, "_STAMPED", {})
    monkeypatch.setattr(sessions.caches, "check", lambda: None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    return memory


def trace(kernel: str) -> KernelTrace:
    """What tracing `kernel` in an open session leaves: a region and a table."""
    region = sessions.RECORDER.region((kernel,))
    row = Instance(1, "f", 1, "", (), "wait", "full", 0, Payload.NONE, enter=1, exit=2)
    made = KernelTrace(1, kernel, "f", CAPACITY, (0, 0, 0), region.number, 77, (), (row,), kernel)
    sessions.RECORDER.add(made)
    return made


def launch(memory: HostMemory, made: KernelTrace) -> None:
    """What running a compiled kernel leaves."""
    address = next(item.address for item in sessions.RECORDER.regions() if item.number == made.region)
    log = WarpLog(0, entry=100, exit=900, stamps=[Stamp(200, 1), Stamp(300, 2)], entry_ns=1, exit_ns=2)
    memory.arrays[address][:] = write_region(CAPACITY, [log], made.signature)


def opened(**more: object) -> Session:
    session = Session([MODULE], options=OPTIONS, **more)
    session.open()
    __import__(MODULE)
    return session


def recorded(folder: Path) -> list[str]:
    return [trace.kernel.kernel for trace in load_run(folder).traces.values() if trace.lanes]


def test_a_kernel_traced_again_belongs_to_the_second_session_too(process, tmp_path):
    for folder in (tmp_path / "first", tmp_path / "second"):
        session = opened()
        launch(process, trace("gemm"))
        session.write(folder)
        session.close()
        assert recorded(folder) == ["gemm"]


def test_a_kernel_that_the_program_kept_is_found_where_it_is_launched(process, tmp_path):
    session = opened()
    kept, unused = trace("kept"), trace("unused")
    launch(process, kept)
    launch(process, unused)
    session.close()
    session = opened()
    launch(process, kept)
    launch(process, trace("new"))
    session.write(tmp_path / "run")
    session.close()
    assert recorded(tmp_path / "run") == ["kept", "new"]


def test_nothing_launched_in_a_later_session_is_no_record(process, tmp_path):
    session = opened()
    launch(process, trace("gemm"))
    session.close()
    session = opened()
    with pytest.raises(AutostampError, match="AS5003"):
        session.write(tmp_path / "run")
    session.close()


def test_a_target_that_an_earlier_session_imported_is_not_missing(process):
    opened().close()
    session = opened()
    assert session.findings() == []
    assert [file.module for file in session.files()] == [MODULE]
    session.close()


def test_a_target_imported_without_the_hook_is_refused(process):
    __import__(MODULE)
    with pytest.raises(AutostampError, match="AS5002"):
        Session([MODULE], options=OPTIONS).open()


def test_made_up_addresses_are_never_given_to_a_kernel_that_runs(process):
    session = opened(compile_only=True)
    dry = trace("gemm")
    session.close()
    session = opened()
    real = trace("gemm")
    addresses = {item.number: (item.address, item.is_real) for item in sessions.RECORDER.regions()}
    assert addresses[dry.region][1] is False
    assert addresses[real.region] == (next(iter(process.arrays)), True)
    assert [made.region for made in session.manifest().traces] == [real.region]
    session.close()


def test_stamped_files_outlive_their_session(process):
    session = opened()
    session.close()
    del session
    assert Path(sys.modules[MODULE].helper.__code__.co_filename).is_file()


def test_a_session_of_many_ctas_writes_a_region_for_each_that_ran(process, tmp_path):
    several = RecordOptions(CAPACITY, blocks=Blocks(0, 4), repeat=2)
    session = Session([MODULE], options=several)
    session.open()
    __import__(MODULE)
    made = trace("gemm")
    (region,) = sessions.RECORDER.regions()
    # Four CTAs in two launches, and a count of launches for each of their 32 warps.
    assert region.size == 8 * region_bytes(CAPACITY) + 4 * 32 * 4
    for cta, begin in enumerate((100, 40)):
        log = WarpLog(0, begin, begin + 800, [Stamp(200, 1), Stamp(300, 2)], entry_ns=1 + cta, exit_ns=900)
        written = write_region(CAPACITY, [log], made.signature).copy()
        written[32 * lane_bytes(CAPACITY) + 8 :][:12] = np.array([2, 1, 1], "<u4").view(np.uint8)
        process.arrays[region.address][cta * written.size :][: written.size] = written
    session.write(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert [(found.block, found.grid, found.launch) for found in run.recorded] == [
        ((0, 0, 0), (2, 1, 1), 0),
        ((1, 0, 0), (2, 1, 1), 0),
    ]
    assert [finding.code for finding in session.findings()] == ["AS5022"]
    session.close()


def test_another_choice_of_ctas_gets_memory_of_its_own(process):
    for options in (OPTIONS, RecordOptions(CAPACITY, blocks=Blocks(0, 2)), RecordOptions(CAPACITY, repeat=2)):
        session = Session([MODULE], options=options)
        session.open()
        __import__(MODULE)
        trace("gemm")
        session.close()
    sizes = [region.size // region_bytes(CAPACITY) for region in sessions.RECORDER.regions()]
    assert sizes == [1, 2, 2]
