# SPDX-License-Identifier: Apache-2.0
"""Which kernels get lean stamps: what the source says about registers, and whom they share functions with."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.functions import index
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument
from autostamp.passes.cuda.lean import LaneForm, kept_by, spread
from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.source import parse

PATH = Path("k.cu")
DEC = 'asm volatile("setmaxnreg.dec.sync.aligned.u32 {};\\n" {});'
NUMBER = ': : "n"({})'
GIVE = f"template <int N> __device__ void give() {{ {DEC.format('%0', NUMBER.format('N'))} }}"
CALL = "__device__ void f() {{ {} }}"
MEET = "__device__ int meet(int n) { __syncthreads(); for (int i = 0; i < n; ++i) n ^= i; __syncwarp(); return n; }\n"
"""No wrapper of a wait: its own calls are the sites."""

KERNEL = """\
__global__ void {name}(int* out) {{ {dec} {call} out[0] = 1; }}
void run_{name}(int* out) {{ {name}<<<1, 32>>>(out); }}
"""


def kept(text: str) -> set[tuple[int, ...]]:
    data = text.encode()
    functions = index({PATH: parse(data, learn((data,)))}).functions
    return {each.numbers for each in kept_by(functions) if each.numbers}


def stamped(*kernels: tuple[str, str, str], **options: object) -> Project:
    text = MEET + "".join(KERNEL.format(name=name, dec=dec, call=call) for name, dec, call in kernels)
    return instrument({PATH: text.encode()}, {}, CudaOptions(**options))  # type: ignore[arg-type]


def forms(project: Project) -> dict[str, tuple[bool, str]]:
    return {each.name: (each.is_lean, each.carrier) for each in project.stamped[PATH].file.kernels}


def lean_lines(project: Project) -> list[str]:
    return [line for line in project.unit_header.decode().splitlines() if "LEAN" in line]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"__device__ void f() {{ {DEC.format(24, '')} }}", {(24,)}),
        (f"__device__ void f() {{ {DEC.format('%0', NUMBER.format(40))} }}", {(40,)}),
        (
            GIVE + CALL.format("give<32>();"),
            {(32,)},
        ),
        # The wrapper of CUTLASS, whose header is not at hand.
        ("__device__ void f() { cutlass::arch::warpgroup_reg_dealloc<24>(); }", {(24,)}),
        ("#define FEW 24\n__device__ void f() { warpgroup_reg_dealloc<FEW>(); }", {(24,)}),
        ("constexpr int A = 1, FEW = 24, B = 3;\n__device__ void f() { warpgroup_reg_dealloc<FEW>(); }", {(24,)}),
        # Either may be it; what is compared is none of them.
        (
            "__device__ void f() { constexpr int n = (threads <= 128 ? 24 : 32); warpgroup_reg_dealloc<n>(); }",
            {(24, 32)},
        ),
        # Of two definitions in a function the one before the call counts.
        (
            "__device__ void f() { if (w) { const int n = 24; warpgroup_reg_dealloc<n>(); } else { const int n = 240; } }",
            {(24,)},
        ),
        ("template <int N> __device__ void f() { warpgroup_reg_dealloc<N>(); }", set()),
        ("__device__ void f() { warpgroup_reg_alloc<240>(); }", set()),
    ],
)
def test_what_a_role_keeps(text, expected):
    assert kept(text) == expected


@pytest.mark.parametrize(("registers", "is_lean"), [("24", True), ("32", True), ("40", False)])
def test_few_registers_make_a_kernel_lean(registers, is_lean):
    project = stamped(("work", DEC.format(registers, ""), "__syncthreads();"))
    assert forms(project) == {"work": (is_lean, "symbol" if is_lean else "param")}
    # meet(), which no kernel comes to, holds sites 1 and 2: slot 0, event 2 * 3 - 1.
    assert lean_lines(project) == (
        ["#define AUTOSTAMP_UNIT_LEAN_KERNELS 0", "#define AUTOSTAMP_UNIT_LEAN_EVENTS 5"] if is_lean else []
    )


def test_registers_that_are_not_known_change_nothing():
    conditional = "constexpr int n = big ? 24 : 40; warpgroup_reg_dealloc<n>();"
    assert forms(stamped(("work", conditional, "__syncthreads();"))) == {"work": (False, "param")}


def test_the_form_can_be_asked_for():
    plain, few = ("plain", "", "__syncthreads();"), ("few", DEC.format(24, ""), "__syncthreads();")
    assert forms(stamped(plain, few, form=LaneForm.USUAL)) == {"plain": (False, "param"), "few": (False, "param")}
    assert forms(stamped(plain, few)) == {"plain": (False, "param"), "few": (True, "symbol")}
    assert forms(stamped(plain, few, form=LaneForm.LEAN)) == {"plain": (True, "symbol"), "few": (True, "symbol")}


def test_a_stamp_has_one_form_in_all_kernels_that_come_to_it():
    project = stamped(
        ("few", DEC.format(24, ""), "meet(3);"), ("other", "", "meet(3);"), ("apart", "", "__syncthreads();")
    )
    assert forms(project) == {"few": (True, "symbol"), "other": (True, "symbol"), "apart": (False, "param")}
    # meet() holds sites 1 and 2, apart() site 3.
    assert lean_lines(project) == [
        "#define AUTOSTAMP_UNIT_LEAN_KERNELS 0, 1",
        "#define AUTOSTAMP_UNIT_LEAN_EVENTS 1, 3",
    ]


def test_a_parameter_that_is_asked_for_comes_first():
    few = ("few", DEC.format(24, ""), "__syncthreads();")
    assert forms(stamped(few, carrier=Carrier.PARAM)) == {"few": (False, "param")}
    refused = stamped(few, carrier=Carrier.PARAM, form=LaneForm.LEAN)
    assert [each.code for each in refused.findings] == ["AS1014"]
    assert "its stamps are lean" in refused.findings[0].message


def test_lean_spreads_over_what_is_shared():
    # Kernel 1 comes to functions 0 and 1, 2 to 1 and 2, 3 to 2, 4 to 3.
    reached = {1: 0b0011, 2: 0b0110, 3: 0b0100, 4: 0b1000}
    lean = {1}
    assert spread(lean, reached) == 0b0111
    assert lean == {1, 2, 3}
    nothing: set[int] = set()
    assert (spread(nothing, reached), nothing) == (0, set())
