# SPDX-License-Identifier: Apache-2.0
"""What a trace's instances learn from their sites and from the classes of their barriers."""

from __future__ import annotations

import pytest

from autostamp.hooks.complete import complete
from autostamp.model.manifest import Barrier, Instance, KernelTrace, Payload, SourceFile
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom


def completed(owner: str, method: str, kind: Kind, side: Side, barrier_type: str, label: str = "bar") -> KernelTrace:
    """A trace of one instance of one site after `complete`."""
    site = Site(
        number=1,
        span=Span(0, 1, 1, 1),
        text="call",
        method=method,
        owner=owner,
        kind=kind,
        side=side,
        stage_from=StageFrom.NONE,
        shape=Shape.STATEMENT,
        function="kernel",
        barrier="in the source",
        role="",
        loop_depth=0,
    )
    file = SourceFile("f", "f.py", "f", "", (site,), (), ())
    barriers = (Barrier(1, label, barrier_type, 0, False),) if barrier_type else ()
    row = Instance(1, "f", 1, "", (), kind.value, "", len(barriers), Payload.NONE)
    trace = KernelTrace(1, "kernel", "f", 16, (0, 0, 0), 1, 1, barriers, (row,))
    return complete(trace, (file,))


# A participant forwards to its pipeline, whose class decides: a TMA copy signals the full barrier itself, so acquire arms it
# and commit does nothing; tcgen05.commit arrives when the MMAs are done.
@pytest.mark.parametrize(
    ("owner", "method", "kind", "side", "barrier_type", "expected"),
    [
        ("PipelineProducer", "acquire", Kind.WAIT, Side.EMPTY, "PipelineTmaAsync", (("full",), False, False)),
        ("PipelineProducer", "acquire_and_advance", Kind.WAIT, Side.EMPTY, "PipelineAsync", ((), False, False)),
        ("PipelineProducer", "commit", Kind.SIGNAL, Side.FULL, "PipelineTmaAsync", ((), True, False)),
        ("PipelineProducer", "commit", Kind.SIGNAL, Side.FULL, "PipelineAsync", ((), False, False)),
        ("PipelineProducer", "commit", Kind.SIGNAL, Side.FULL, "PipelineUmmaAsync", ((), False, True)),
        ("PipelineConsumer", "release", Kind.SIGNAL, Side.EMPTY, "PipelineTmaUmma", ((), False, True)),
        ("PipelineTmaAsync", "producer_commit", Kind.SIGNAL, Side.FULL, "PipelineTmaAsync", ((), True, False)),
        ("cute.arch", "barrier", Kind.WAIT, Side.NAMED, "NamedBarrier", (("named",), False, False)),
        ("cute.arch", "sync_threads", Kind.WAIT, Side.CTA, "", (("cta",), False, False)),
        ("cute.nvgpu.tcgen05", "commit", Kind.SIGNAL, Side.MBARRIER, "mbarrier", ((), False, True)),
        ("PipelineAsync", "producer_commit", Kind.SIGNAL, Side.FULL, "RingOfTheProgram", ((), False, False)),
    ],
)
def test_facts_of_the_call(owner, method, kind, side, barrier_type, expected):
    (row,) = completed(owner, method, kind, side, barrier_type).instances
    assert (row.signals, row.is_noop, row.is_async) == expected
    assert (row.kind, row.side) == (kind.value, side.value)


@pytest.mark.parametrize(
    ("label", "short"),
    [
        ("pipeline_k", "pipeline_k"),
        ("int(Named.Full)", "Full"),
        ("int(Named.Full) + group", "Full+"),
        ("bars + stage", "bars + stage"),
        ("", "in the source"),
    ],
)
def test_label_of_a_barrier(label, short):
    (barrier,) = completed("cute.arch", "barrier", Kind.WAIT, Side.NAMED, "NamedBarrier", label).barriers
    assert barrier.label == short


def test_an_instance_of_an_unknown_file_stays_as_it_is():
    trace = completed("cute.arch", "sync_threads", Kind.WAIT, Side.CTA, "")
    assert complete(trace, ()) == trace
