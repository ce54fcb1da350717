# SPDX-License-Identifier: Apache-2.0
"""Waits with one stamp: a mark in time. Never a stall, no finding, and nothing else of the trace changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.analysis.flow import explain
from autostamp.analysis.timeline import analyse
from autostamp.model.manifest import EventKind, Manifest, Payload
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.placement import Form, site_key
from autostamp.model.trace import Event, Lane, Trace
from autostamp.passes.cuda.instrument import CudaOptions, instrument
from autostamp.runtime.cuda.instances import UnitTable, table_of
from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run
from tests.simulator.tables import kernel_trace, signal_row, wait_row

RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "fa4_forward_one_cta"
ENTER, EXIT, SIGNAL = EventKind.ENTER, EventKind.EXIT, EventKind.SIGNAL


def without(trace: Trace, number: int, kind: EventKind) -> Trace:
    """The trace as it would be had one stamp of an instance been left out."""
    gone = "enter" if kind is ENTER else "exit"
    rows = tuple(replace(row, **{gone: 0}) if row.number == number else row for row in trace.kernel.instances)
    lanes = tuple(
        replace(lane, events=tuple(each for each in lane.events if (each.instance, each.kind) != (number, kind)))
        for lane in trace.lanes
    )
    return replace(trace, kernel=replace(trace.kernel, instances=rows), lanes=lanes)


@pytest.mark.parametrize(("kind", "stamps"), [(ENTER, (0, 2)), (EXIT, (1, 0))])
def test_one_stamp_is_no_wait(kind, stamps):
    other = EXIT if kind is ENTER else ENTER
    kernel = kernel_trace((wait_row(1, *stamps), wait_row(2, 3, 4), signal_row(3, 5)))
    events = (
        Event(10, other, 1, 0, 0),
        Event(20, ENTER, 2, 0, 0),
        Event(900, other, 1, 0, 1),
        Event(950, EXIT, 2, 0, 0),
        Event(990, SIGNAL, 3, 0, 0),
    )
    trace = Trace(kernel, (Lane(0, 0, events, 0, 0, 1000, 0, 0),), 0.0)
    assert check(trace) == []
    (warp,) = analyse(trace).warps
    assert {part.instance for part in warp.slices} == {2}
    assert warp.stall == 950 - 20
    assert warp.open_waits == ()
    assert warp.span == 1000


@pytest.mark.parametrize("kind", [ENTER, EXIT])
def test_a_recorded_run_with_a_stamp_left_out(kind):
    (trace,) = load_run(RUN).traces.values()
    whole = analyse(trace)
    # The wait with the longest stalls of the run: were a stall drawn from one stamp, it would show.
    chosen = max(whole.sites, key=lambda each: each.spread.total).instance
    cut = without(trace, chosen, kind)
    assert check(cut) == []
    timeline = analyse(cut)
    assert chosen not in {part.instance for warp in timeline.warps for part in warp.slices}
    assert chosen not in {each.instance for each in timeline.sites}
    assert timeline.never_visited == whole.never_visited
    for before, after in zip(whole.warps, timeline.warps, strict=True):
        kept = [part for part in before.slices if part.instance != chosen and part.state.value != "active"]
        assert [part for part in after.slices if part.state.value != "active"] == kept
    flow = explain(cut, timeline)
    assert chosen not in {each.wait.instance for each in flow.arrows}


CUDA = b"""\
__device__ bool poll(int* flag);
__global__ void k(unsigned long long* bar, int* flag) {
  __syncthreads();
  if (threadIdx.x == 0) while (!poll(flag)) { }
  asm volatile("bar.sync 1, 64;" ::: "memory");
}
"""


def test_the_table_of_a_kernel_of_cuda_cpp_has_the_stamps_that_are_there():
    path = Path("/src/k.cu")
    whole = instrument({path: CUDA}, {}, CudaOptions()).changed[path].file
    forms = {3: Form.ENTER, 5: Form.EXIT}
    placed = tuple((site_key(whole, site), forms[site.span.line]) for site in whole.sites if site.span.line in forms)
    project = instrument({path: CUDA}, {}, CudaOptions(InstrumentOptions(Selection(placed=placed))))
    item = project.changed[path]
    text = item.text.decode()
    first, last = (site.number for site in item.file.sites)
    key = item.file.key
    # A whole block passes __syncthreads; bar.sync may be some threads' own, so its exit looks which are there.
    assert text.count("ENTER") == 1
    assert f"ENTER({key},{first}) __syncthreads();" in text
    assert f"EXIT({key},{last})" in text or f"AUTOSTAMP_ALONE({key},{last})" in text
    assert dict(item.file.forms) == {first: "enter", last: "exit"}
    table = UnitTable.of(Manifest(1, "t", (item.file,), unit=project.unit))
    (kernel,) = table.kernels()
    rows = table_of(table, kernel.definition, ()).instances
    begin = project.unit.files[0].events
    assert [(row.enter, row.exit) for row in rows] == [(begin + 2 * first - 1, 0), (0, begin + 2 * last)]
    assert rows[1].payload is Payload.NONE
