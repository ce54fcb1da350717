# SPDX-License-Identifier: Apache-2.0
"""Our sample kernels, compiled clean, off and stamped for two architectures, with no GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

from autostamp.model.manifest import Barrier, Instance, KernelTrace, Payload
from autostamp.model.site import Shape, Site
from autostamp.passes.stamp_check import ptx_stamps
from autostamp.runtime import layout
from autostamp.runtime.manifest_file import read_manifest
from tests.builds import build_once
from tests.compile import ptx_text
from tests.compile.compile_kernels import FIXTURES, MODES

ARCHS = ("sm_90a", "sm_100a")
NAMES = sorted({file.stem for file in FIXTURES.glob("*.py")} - {"failing"})
KERNELS = [*((arch, name) for arch in ARCHS for name in NAMES), ("sm_90a", "gemm_ws")]
each_kernel = pytest.mark.parametrize(("arch", "name"), KERNELS, ids=[f"{arch}-{name}" for arch, name in KERNELS])
each_arch = pytest.mark.parametrize("arch", ARCHS)


@dataclass(frozen=True)
class Built:
    """One architecture in three modes. Names are those of the built functions; `traces` are by source module."""

    folders: dict[str, Path]

    @cached_property
    def _builds(self) -> dict[str, dict[str, object]]:
        return json.loads((self.folders["stamped"] / "builds.json").read_text())

    @cached_property
    def manifest(self):
        return read_manifest(self.folders["stamped"] / "manifest.json")

    def traces(self, name: str) -> list[KernelTrace]:
        numbers = self._builds["traces"][name]
        return [trace for trace in self.manifest.traces if trace.number in numbers]

    def address(self, trace: KernelTrace) -> int:
        return self._builds["regions"][str(trace.region)]

    def site(self, instance: Instance) -> Site:
        file = next(file for file in self.manifest.files if file.key == instance.file)
        return next(site for site in file.sites if site.number == instance.site)

    def ptx(self, name: str, trace: KernelTrace, mode: str = "stamped") -> str:
        """PTX of the file of `name` that holds the trace's kernel."""
        texts = [file.read_text() for file in sorted(self.folders[mode].glob(f"{name}*.ptx"))]
        return ptx_text.body(next(text for text in texts if f".entry {trace.symbol}(" in text), trace.symbol)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    return {
        arch: Built(
            {
                mode: build_once(
                    tmp_path_factory, f"kernels-{arch}-{mode}", "tests.compile.compile_kernels", arch, mode
                )
                for mode in MODES
            }
        )
        for arch in ARCHS
    }


def events(trace: KernelTrace) -> list[int]:
    return [event for row in trace.instances for event in (row.enter, row.exit, row.signal) if event]


def barrier_of(trace: KernelTrace, instance: Instance) -> Barrier:
    return trace.barriers[instance.barrier - 1]


def by_method(built: Built, trace: KernelTrace, method: str) -> list[Instance]:
    return [row for row in trace.instances if built.site(row).method == method]


@pytest.mark.parametrize("suffix", ["ptx", "cubin"])
@each_arch
def test_off_is_the_clean_build(builds, arch, suffix):
    clean, off = (
        {file.name: file.read_bytes() for file in builds[arch].folders[mode].glob(f"*.{suffix}")}
        for mode in ("clean", "off")
    )
    assert len(clean) == len(NAMES) + 1 + (arch == "sm_90a")  # two_kernels is built in two ways
    assert off == clean


@each_kernel
def test_every_event_is_written_in_the_ptx(builds, arch, name):
    built = builds[arch]
    for trace in built.traces(name):
        text = built.ptx(name, trace)
        written = ptx_stamps(text, trace.symbol)
        assert set(written.events) == set(events(trace)) == set(range(1, len(events(trace)) + 1))
        assert written.total == text.count("%clock;")


@each_kernel
def test_waits_have_two_stamps_and_signals_one(builds, arch, name):
    traces = builds[arch].traces(name)
    assert traces
    for trace in traces:
        shapes = {(row.kind, bool(row.enter), bool(row.exit), bool(row.signal)) for row in trace.instances}
        assert shapes <= {("wait", True, True, False), ("signal", False, False, True)}


@each_kernel
def test_stamps_add_no_election_and_no_barrier(builds, arch, name):
    built = builds[arch]
    for trace in built.traces(name):
        texts = [built.ptx(name, trace, mode) for mode in ("clean", "stamped")]
        for instruction in (
            "elect.sync",
            "bar.sync",
            "barrier.sync",
            "bar.warp.sync",
            "mbarrier.arrive",
            "mbarrier.init",
        ):
            assert texts[0].count(instruction) == texts[1].count(instruction), instruction


@each_arch
def test_one_helper_for_two_rings_is_one_site_with_two_instances(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("two_pipelines")
    assert [(barrier.label, barrier.type, barrier.stages) for barrier in trace.barriers] == [
        ("ring_k", "PipelineAsync", 2),
        ("ring_v", "PipelineAsync", 3),
    ]
    for method, helper in (("producer_acquire", "fill"), ("consumer_wait", "drain"), ("consumer_release", "drain")):
        found = by_method(built, trace, method)
        assert len({row.site for row in found}) == 1
        assert [row.barrier for row in found] == [1, 2]
        assert {row.call_path[-1].split(":")[0] for row in found} == {helper}
        assert len({row.call_path for row in found}) == 2  # the calls stand on two lines of the kernel
        assert {row.payload for row in found} == {Payload.STAGE}


@each_arch
def test_call_path_names_the_lines_of_the_source(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("two_pipelines")
    lines = (FIXTURES / "two_pipelines.py").read_text().splitlines()
    for row in trace.instances:
        kernel, helper = (int(step.split(":")[1]) for step in row.call_path)
        assert lines[kernel - 1].strip().startswith(("load_k(", "fill(", "drain("))
        assert f".{built.site(row).method}(" in lines[helper - 1]


@each_arch
def test_participants_and_handles_lead_to_their_pipeline(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("participants")
    assert [(barrier.type, barrier.stages) for barrier in trace.barriers] == [("PipelineAsync", 2)]
    assert {row.barrier for row in trace.instances} == {1}
    sides = {built.site(row).method: row.side for row in trace.instances}
    assert sides == {
        "acquire_and_advance": "empty",
        "acquire": "empty",
        "commit": "full",
        "tail": "empty",
        "wait_and_advance": "full",
        "wait": "full",
        "release": "empty",
    }


@each_arch
def test_chained_calls_are_stamped_in_the_order_they_run(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("participants")
    for first, second in (("acquire", "commit"), ("wait", "release")):
        (wait,) = by_method(built, trace, first)
        signal = next(row for row in by_method(built, trace, second) if built.site(row).text.endswith(f".{second}()")
                      and f".{first}()" in built.site(row).text)  # fmt: skip
        assert (wait.exit - wait.enter, signal.signal - wait.exit) == (1, 1)


@each_arch
def test_bare_mbarriers_carry_their_address(builds, arch):
    (trace,) = builds[arch].traces("raw_mbarriers")
    mbarriers = [row for row in trace.instances if barrier_of(trace, row).type == "mbarrier"]
    assert {(barrier_of(trace, row).label, row.payload) for row in mbarriers} == {
        ("empty + stage", Payload.ADDRESS),
        ("full + stage", Payload.ADDRESS),
    }
    assert len(mbarriers) == 4


def lane_end(base: int, capacity: int, lane: int) -> int:
    """Low word of the address that ends `lane`: the limit of the cursors into it, up to the warp's own offset."""
    return (base + lane * layout.lane_bytes(capacity) + layout.lane_bytes(capacity)) & 0xFFFFFFFF


@each_kernel
def test_only_a_thread_that_may_not_be_lane_0_writes_the_second_lane(builds, arch, name):
    built = builds[arch]
    for trace in built.traces(name):
        text = built.ptx(name, trace)
        main = lane_end(built.address(trace), trace.capacity, 0)
        single = lane_end(built.address(trace), trace.capacity, layout.WARPS)
        of_elected = {
            row.signal
            for row in trace.instances
            if built.site(row).method == "mbarrier_arrive_and_expect_tx" or built.site(row).guard == "tidx == LAST"
        }
        for stamp in ptx_text.stamps(text):
            reached = {number & 0xFFFFFFFF for number in ptx_text.constants_behind(text, stamp.limit)}
            assert (main in reached, single in reached) == (stamp.event not in of_elected, stamp.event in of_elected)


@each_arch
def test_a_function_passed_on_is_stamped_where_it_is_called(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("one_thread")
    (row,) = by_method(built, trace, "sync_threads")
    assert built.site(row).shape is Shape.REFERENCE
    assert (row.kind, row.signals) == ("wait", ("cta",))
    assert 0 < row.enter < row.exit
    assert [step.split(":")[0] for step in row.call_path] == ["kernel", "meet"]


@each_arch
def test_a_branch_on_the_first_thread_uses_the_warps_own_lane(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("raw_mbarriers")
    (row,) = by_method(built, trace, "mbarrier_arrive")
    assert built.site(row).guard == "tidx == WARP"
    text = built.ptx("raw_mbarriers", trace)
    (stamp,) = [stamp for stamp in ptx_text.stamps(text) if stamp.event == row.signal]
    reached = {number & 0xFFFFFFFF for number in ptx_text.constants_behind(text, stamp.limit)}
    assert lane_end(built.address(trace), trace.capacity, 0) in reached


@each_arch
def test_a_polling_loop_is_one_wait(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("polling")
    (row,) = by_method(built, trace, "mbarrier_try_wait_parity")
    assert (row.kind, built.site(row).shape) == ("wait", Shape.WAIT_LOOP)
    text = built.ptx("polling", trace)
    enter, exit_ = (text.index(f"// autostamp {event}\n") for event in (row.enter, row.exit))
    assert enter < text.index("mbarrier.try_wait") < exit_


@each_arch
def test_named_barriers_known_while_tracing_and_at_run_time(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("named_barriers")
    (dynamic,) = by_method(built, trace, "barrier")
    (constant,) = by_method(built, trace, "arrive_and_wait")
    assert (barrier_of(trace, dynamic).label, dynamic.payload, dynamic.stage) == ("Group+", Payload.BARRIER_ID, -1)
    assert (barrier_of(trace, constant).label, constant.payload, constant.stage) == ("epilogue", Payload.NONE, 1)
    assert dynamic.signals == constant.signals == ("named",)  # who waits at a CTA's barrier arrives there too


@each_arch
def test_a_wait_in_a_lambda_is_stamped_where_it_is_called(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("named_barriers")
    (row,) = by_method(built, trace, "arrive_and_wait")
    assert built.site(row).shape is Shape.LAMBDA
    assert [step.split(":")[0] for step in row.call_path] == ["kernel", "<lambda>"]


@each_arch
def test_waits_in_a_loop_condition_and_in_an_argument(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("conditions")
    shapes = {built.site(row).method: built.site(row).shape for row in trace.instances if row.kind == "wait"}
    assert shapes == {"acquire_and_advance": Shape.ARGUMENT, "wait": Shape.CONDITION}


@each_arch
def test_a_wrapper_is_stamped_once(builds, arch):
    built = builds[arch]
    (trace,) = built.traces("wrappers")
    assert [built.site(row).method for row in trace.instances] == [
        "producer_acquire",
        "producer_commit",
        "consumer_wait",
        "consumer_release",
    ]
    assert {built.site(row).function for row in trace.instances} == {"kernel"}
    # One forwarder is known from its name. The other wait was stamped in its helper, and kept quiet while tracing.
    file = next(file for file in built.manifest.files if file.path.endswith("wrappers.py"))
    assert [(skip.function, skip.code) for skip in file.skips] == [("Ring.producer_acquire", "AS2103")]
    assert "await_stage" in {site.function for site in file.sites}


@each_arch
def test_two_kernels_of_one_host_have_a_trace_each(builds, arch):
    built = builds[arch]
    traces = built.traces("two_kernels")
    assert [(trace.kernel, len(trace.instances)) for trace in traces] == [("scale", 1), ("shift", 2), ("shift", 1)]
    assert len({trace.region for trace in traces}) == 3


@each_arch
def test_a_kernel_that_ends_early_releases_its_lane_once(builds, arch):
    built = builds[arch]
    *_, short = built.traces("two_kernels")
    text = (built.folders["stamped"] / "two_kernels_short.ptx").read_text()
    assert ptx_text.body(text, short.symbol).count("// autostamp release\n") == 1
    assert events(short) == [1, 2]
