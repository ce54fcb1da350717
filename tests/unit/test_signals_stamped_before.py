# SPDX-License-Identifier: Apache-2.0
"""Signals whose stamps stand before them: where an arrow may start, and what it says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.analysis.flow import explain
from autostamp.analysis.timeline import analyse
from autostamp.model.manifest import Manifest
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.placement import Form, site_key
from autostamp.model.trace import Trace
from autostamp.passes.cuda.instrument import CudaOptions, instrument
from autostamp.passes.edits import strip
from autostamp.runtime.cuda.instances import UnitTable, table_of
from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run

RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "fa4_forward_one_cta"


def stamped_before(trace: Trace, number: int) -> tuple[Trace, dict[tuple[int, int], tuple[int, int]]]:
    """The trace as it would be with the stamps of one signal before it, and by (warp, visit) the old and the new clock.

    The clock moves back by half of what lies between it and the warp's record before.
    """
    rows = tuple(replace(row, form="before") if row.number == number else row for row in trace.kernel.instances)
    moved: dict[tuple[int, int], tuple[int, int]] = {}
    lanes = []
    for lane in trace.lanes:
        events = list(lane.events)
        for at, event in enumerate(events):
            if event.instance == number and at:
                early = event.cycles - (event.cycles - events[at - 1].cycles) // 2
                moved[lane.warp, event.visit] = (event.cycles, early)
                events[at] = replace(event, cycles=early)
        lanes.append(replace(lane, events=tuple(events)))
    return replace(trace, kernel=replace(trace.kernel, instances=rows), lanes=tuple(lanes)), moved


@pytest.mark.parametrize("side", ["full", "empty"])
def test_the_true_time_lies_within_the_error_of_every_arrow(side):
    (trace,) = load_run(RUN).traces.values()
    whole = explain(trace, analyse(trace))
    kinds = {row.number: row for row in trace.kernel.instances}
    starts = [
        arrow.signal.instance
        for arrow in whole.arrows
        if kinds[arrow.signal.instance].kind == "signal" and not arrow.is_async and arrow.side == side
    ]
    if side == "full" and not starts:
        starts = [each.signal.instance for each in whole.arrows if kinds[each.signal.instance].kind == "signal"]
    chosen = max(set(starts), key=starts.count)
    early, moved = stamped_before(trace, chosen)
    assert moved
    assert check(early) == []
    flow = explain(early, analyse(early))
    # The same waits have arrows: which use a record belongs to does not hang on where its stamp stands.
    assert {(each.wait.warp, each.wait.instance, each.wait.visit) for each in flow.arrows} == {
        (each.wait.warp, each.wait.instance, each.wait.visit) for each in whole.arrows
    }
    concerned = [each for each in flow.arrows if each.signal.instance == chosen]
    assert concerned
    for arrow in concerned:
        old, new = moved.get((arrow.signal.warp, arrow.signal.visit), (arrow.signal.cycles, arrow.signal.cycles))
        assert arrow.signal.cycles == new
        # It ended the wait: after that end it cannot have come, wherever a stamp behind it stood.
        assert new <= min(old, max(arrow.wait.cycles, new)) <= new + arrow.error
    assert all(each.error == 0 for each in flow.arrows if each.signal.instance != chosen)
    assert any("stamps that stand before their signals" in note for note in flow.notes)


CUDA = b"""\
__global__ void k(unsigned long long* bar, unsigned a) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(a) : "memory");
  __syncthreads();
}
"""


def test_cuda_cpp_has_the_stamp_before_the_signal_and_says_so():
    path = Path("/src/k.cu")
    whole = instrument({path: CUDA}, {}, CudaOptions()).changed[path].file
    (signal,) = (site for site in whole.sites if site.kind.value == "signal")
    placed = ((site_key(whole, signal), Form.BEFORE),)
    project = instrument({path: CUDA}, {}, CudaOptions(InstrumentOptions(Selection(placed=placed))))
    item = project.changed[path]
    text = item.text.decode()
    assert text.index("SIGNAL") < text.index("mbarrier.arrive")
    assert strip(item.text, str(path)) == CUDA
    assert dict(item.file.forms) == {signal.number: "before"}
    table = UnitTable.of(Manifest(1, "t", (item.file,), unit=project.unit))
    (kernel,) = table.kernels()
    (row,) = (row for row in table_of(table, kernel.definition, ()).instances if row.kind == "signal")
    assert row.form == "before"
    assert row.signal == project.unit.files[0].events + 2 * signal.number - 1
