# SPDX-License-Identifier: Apache-2.0
"""Safety's figures on kernels that CuTe-DSL compiles here for sm_90a, with no GPU, against counts made another way.

The stamps are written by hand in this file: one block of inline PTX around an mbarrier wait, around two CTA barriers (one in
a loop), and after an arrive.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass._mlir.dialects import llvm
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream
from cutlass.cutlass_dsl import dsl_user_op

from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.model.manifest import Instance, KernelTrace, Payload
from autostamp.passes import safety
from autostamp.runtime import cubin, toolchain

LANE_BYTES = 4096
OPTIONS = "--gpu-arch sm_90a --keep-ptx --keep-cubin --dump-dir {}"


class Lane:
    """What a stamp needs while a kernel is traced: the cursor (bytes up to 0) and the lane's end, or nothing."""

    cursor = None
    end = None


@dsl_user_op
def block(name, cursor, end, word, *, loc=None, ip=None):
    llvm.inline_asm(
        None,
        [value.ir_value(loc=loc, ip=ip) for value in (Int32(cursor), Int64(end), Int32(word))],
        "{ .reg .pred p; .reg .u32 c; .reg .s64 a;\n"
        f"// autostamp {name}\n"
        "mov.u32 c, %clock;\n"
        "setp.lt.s32 p, $0, 0;\n"
        "cvt.s64.s32 a, $0; add.s64 a, a, $1;\n"
        "@p st.global.v2.b32 [a], {c, $2}; }",
        "r,l,r",
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


@dsl_user_op
def lane_clock(name, address, *, loc=None, ip=None):
    llvm.inline_asm(
        None,
        [Int64(address).ir_value(loc=loc, ip=ip)],
        f"{{ .reg .u32 c;\n// autostamp {name}\nmov.u32 c, %clock;\nst.global.u32 [$0], c; }}",
        "l",
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


def bind(buffer):
    Lane.cursor = Lane.end = None
    if buffer is None:
        return
    end = buffer.iterator.toint() + (Int64(cute.arch.make_warp_uniform(cute.arch.warp_idx())) + 1) * LANE_BYTES
    is_writer = Int32(cute.arch.lane_idx() == 0)
    Lane.cursor, Lane.end = cute.make_rmem_tensor(1, Int32), end
    Lane.cursor[0] = is_writer * Int32(-LANE_BYTES + 64)
    lane_clock("bind", end - LANE_BYTES)


def stamp(event, payload=None):
    if Lane.cursor is None:
        return
    word = Int32(event) if payload is None else Int32(payload) * 65536 + event
    cursor = Lane.cursor[0]
    block(event, cursor, Lane.end, word)
    Lane.cursor[0] = cursor + 8


def release():
    if Lane.cursor is not None:
        lane_clock("release", Lane.end - LANE_BYTES + 4)


@cute.kernel
def kernel(x: cute.Tensor, n: Int32, records=None):
    bind(records)
    thread, _, _ = cute.arch.thread_idx()
    barrier = cute.arch.alloc_smem(cutlass.Int64, 1)
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 128)
    cute.arch.mbarrier_init_fence()
    stamp(1)
    cute.arch.sync_threads()
    stamp(2)
    total = cutlass.Float32(0.0)
    for i in cutlass.range(n, unroll=1):
        phase = i & 1
        cute.arch.mbarrier_arrive(barrier)
        stamp(3, phase)
        stamp(4, phase)
        cute.arch.mbarrier_wait(barrier, phase)
        stamp(5, phase)
        total = total + cute.math.exp(x[thread + i * 128])
        stamp(6)
        cute.arch.sync_threads()
        stamp(7)
    x[thread] = total
    release()


@cute.jit
def host(x: cute.Tensor, n: Int32, stream, records=None):
    kernel(x, n, records).launch(grid=(1, 1, 1), block=(128, 1, 1), stream=stream)


def wait(number, side, enter, exit):
    return Instance(
        number=number, file="f", site=number, role="", call_path=(), kind="wait", side=side, barrier=number,
        payload=Payload.NONE, enter=enter, exit=exit,
    )  # fmt: skip


def signal(number, event):
    return Instance(
        number=number, file="f", site=number, role="", call_path=(), kind="signal", side="mbarrier", barrier=1,
        payload=Payload.STAGE, signal=event,
    )  # fmt: skip


TRACE = KernelTrace(
    number=1, kernel="kernel", file="f", capacity=1, block=(0, 0, 0), region=1, signature=0, barriers=(),
    instances=(wait(1, "cta", 1, 2), signal(2, 3), wait(3, "mbarrier", 4, 5), wait(4, "cta", 6, 7)),
)  # fmt: skip


class Build:
    """One compiled kernel: PTX, cubin, our facts, and nvdisasm's plain text, which our reader does not use."""

    def __init__(self, folder: Path, is_stamped: bool) -> None:
        x = make_fake_compact_tensor(cutlass.Float32, (65536,))
        records = make_fake_compact_tensor(Int32, (LANE_BYTES,), assumed_align=8) if is_stamped else None
        compiled = cute.compile(host, x, Int32(8), make_fake_stream(), records, options=OPTIONS.format(folder))
        self.ptx: str = compiled.__ptx__
        self.cubin: bytes = compiled.__cubin__
        file = folder / "kernel.cubin"
        file.write_bytes(self.cubin)
        self.text = subprocess.run(
            [toolchain.find("nvdisasm"), "-c", file], capture_output=True, text=True, check=True
        ).stdout
        facts = cubin.read(self.cubin)
        assert len(facts) == 1
        self.facts: CubinFacts = facts[0]

    def lines(self) -> list[str]:
        return re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", self.text, re.MULTILINE)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    try:
        toolchain.find("nvdisasm"), toolchain.find("cuobjdump")
    except AutostampError as error:
        pytest.skip(str(error))
    return {
        "clean": Build(tmp_path_factory.mktemp("clean"), is_stamped=False),
        "stamped": Build(tmp_path_factory.mktemp("stamped"), is_stamped=True),
    }


@pytest.mark.parametrize("which", ["clean", "stamped"])
def test_facts_agree_with_the_text_listing(builds: dict[str, Build], which: str) -> None:
    build = builds[which]
    lines = build.lines()
    assert len(build.facts.instructions) == len(lines)
    assert [each.opcode for each in build.facts.instructions] == [
        re.sub(r"^@!?U?P\d\s+", "", line).split()[0] for line in lines
    ]
    addresses = [int(each, 16) for each in re.findall(r"^\s+/\*([0-9a-f]{4,})\*/", build.text, re.MULTILINE)]
    assert [each.address for each in build.facts.instructions] == addresses
    assert build.facts.clock_reads == build.text.count("SR_CLOCK")


def test_clock_reads_are_those_written_in_the_ptx(builds: dict[str, Build]) -> None:
    assert builds["clean"].facts.clock_reads == builds["clean"].ptx.count("%clock") == 0
    assert builds["stamped"].facts.clock_reads == builds["stamped"].ptx.count("%clock;") == 7 + 2


def test_shared_memory_and_registers_are_in_the_elf(builds: dict[str, Build]) -> None:
    for build in builds.values():
        assert 0 < build.facts.registers <= 255
        assert (build.facts.stack_bytes, build.facts.spill_store_bytes, build.facts.spill_load_bytes) == (0, 0, 0)
    assert builds["clean"].facts.shared_bytes == builds["stamped"].facts.shared_bytes


def test_every_stamp_is_there_and_on_its_side(builds: dict[str, Build]) -> None:
    report = safety.compare(builds["clean"].facts, builds["stamped"].facts, builds["stamped"].ptx, TRACE)
    stamps = report.stamps
    assert stamps is not None
    assert (stamps.expected, stamps.ptx_comments, stamps.clock_reads, stamps.identified) == (7, 9, 9, 7)
    assert (stamps.missing, stamps.unnamed) == ((), 0)
    assert (stamps.around, stamps.misplaced, stamps.unplaced) == ((1, 3, 4), (), ())
    sizes = {each.name: each for each in report.resources}
    assert sizes["clock reads"].change == 9
    assert sizes["instructions"].stamped - sizes["instructions"].clean >= 9 * 2  # a clock read and a store at the least


def test_sync_instructions_are_counted_as_grep_does(builds: dict[str, Build]) -> None:
    report = safety.compare(builds["clean"].facts, builds["stamped"].facts)
    counted = {each.name: (each.clean, each.stamped) for each in report.syncs}
    for name in ("BAR.SYNC", "SYNCS.ARRIVE", "SYNCS.EXCH", "MUFU"):
        grepped = tuple(
            len(re.findall(rf"(?:^|\s){re.escape(name)}[.\s]", builds[which].text)) for which in ("clean", "stamped")
        )
        assert counted[name] == grepped, name
        assert grepped[0] == grepped[1] > 0, name


def test_mbarrier_waits_are_those_of_the_ptx(builds: dict[str, Build]) -> None:
    # In SASS each is a try and its retries, in one of two forms.
    report = safety.compare(builds["clean"].facts, builds["stamped"].facts)
    counted = {each.name: (each.clean, each.stamped) for each in report.syncs}["SYNCS.PHASECHK"]
    assert counted == tuple(builds[which].ptx.count("mbarrier.try_wait") for which in ("clean", "stamped")) == (1, 1)


def test_a_wait_taken_for_another_is_noticed(builds: dict[str, Build]) -> None:
    # The stamps of the arrive and of the wait after it have no barrier between them.
    wrong = KernelTrace(
        number=1, kernel="kernel", file="f", capacity=1, block=(0, 0, 0), region=1, signature=0, barriers=(),
        instances=(wait(1, "cta", 3, 4), wait(2, "mbarrier", 6, 7)),
    )  # fmt: skip
    report = safety.compare(builds["clean"].facts, builds["stamped"].facts, None, wrong)
    assert report.stamps is not None
    assert report.stamps.misplaced == (1, 2)


def test_a_clock_taken_out_of_the_ptx_is_missed(builds: dict[str, Build]) -> None:
    ptx = builds["stamped"].ptx.replace("// autostamp 5\n", "// gone\n")
    report = safety.compare(builds["clean"].facts, builds["stamped"].facts, ptx, TRACE)
    assert [each.message for each in safety.findings(report) if each.code == "AS3102"] == [
        "stamp of instance 3 is missing in the compiled kernel"
    ]
