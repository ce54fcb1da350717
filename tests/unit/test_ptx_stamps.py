# SPDX-License-Identifier: Apache-2.0
"""Which stamps a unit's PTX holds."""

from __future__ import annotations

from autostamp.runtime.cuda.ptx_stamps import events_of

# As nvcc 13.0 writes it: a function that is declared and defined, a kernel of a template, and one without stamps.
PTX = """\
.version 9.0
.target sm_90a
.func  (.param .b32 func_retval0) _Z5helpfi
(
\t.param .b32 _Z5helpfi_param_0
)
;
.weak .func _Z5helpfi(
\t.param .b32 _Z5helpfi_param_0
)
{
\t// begin inline asm
\t{ .reg .u32 c, s, lo, hi; .reg .b64 t;
\t// autostamp 7
\tmov.u32 c, %clock;
}
.visible .entry _Z3pipIfEvPT_(
\t.param .u64 _Z3pipIfEvPT__param_0
)
.maxntid 128
{
\t{ .reg .pred p;
\t// autostamp bind
\t// autostamp 12
\t// autostamp 13
\t// autostamp 12
\t// autostamp release
}
.entry plain()
{
\tret;
}
"""


def test_events_are_those_of_the_kernel_and_of_called_functions() -> None:
    assert events_of(PTX) == {"_Z3pipIfEvPT_": {7, 12, 13}, "plain": {7}}


def test_no_ptx_has_no_kernels() -> None:
    assert events_of("") == {}
