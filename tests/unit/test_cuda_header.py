# SPDX-License-Identifier: Apache-2.0
"""The headers that stamped CUDA C++ includes: their constants are the record layout's, and off they are nothing."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from autostamp.passes.cuda import emit, includes
from autostamp.runtime import layout
from autostamp.runtime.cuda import header
from autostamp.runtime.cuda.collect import LIMIT

TEXT = header.header_files()[header.DEVICE_HEADER].decode("ascii")
HOST = header.header_files()[header.HOST_HEADER].decode("ascii")
FORMS = header.header_files()[header.FORMS_HEADER].decode("ascii")
OFF, ON = (
    first + "\n" + second
    for first, second in zip(TEXT.split("\n#else\n\n#include", 1), FORMS.split("\n#else\n", 1), strict=True)
)
MACRO = re.compile(r"^#define (AUTOSTAMP_[A-Z_]*[A-Z])(?!\w)(?:\(([^)]*)\))?(.*)$", re.MULTILINE)

STAMPED = """\
#include "autostamp.cuh"
#line 1
template <class T> AUTOSTAMP_INLINE void f(T& t AUTOSTAMP_PARAM) { AUTOSTAMP_BIND(aa,1) AUTOSTAMP_BIND_PARAM(aa,1)
  AUTOSTAMP_ENTER(aa,1) t.wait(0); AUTOSTAMP_EXIT(aa,1)
  if (t) AUTOSTAMP_OPEN AUTOSTAMP_ENTER_AT(aa,2,(t[g<1,2>()])) t.wait(1); AUTOSTAMP_EXIT(aa,2) AUTOSTAMP_CLOSE else {}
  AUTOSTAMP_ENTER_PIPE(aa,3,(t),(s)) t.wait(s); AUTOSTAMP_EXIT(aa,3) AUTOSTAMP_ENTER_ID(aa,4,(1+2)) bar(1+2); AUTOSTAMP_EXIT(aa,4)
  t.a(); AUTOSTAMP_SIGNAL(aa,5) t.a(); AUTOSTAMP_SIGNAL_AT(aa,6,(t))
  t.a(); AUTOSTAMP_SIGNAL_PIPE(aa,7,(t),(s)) t.a(); AUTOSTAMP_SIGNAL_ID(aa,8,(3))
  AUTOSTAMP_WARP_ENTER(aa,1) t.wait(0); AUTOSTAMP_WARP_EXIT(aa,1) AUTOSTAMP_WARP_ENTER_AT(aa,1,(t)) t.wait(0);
  AUTOSTAMP_WARP_ENTER_PIPE(aa,1,(t),(s)) t.wait(0); AUTOSTAMP_WARP_ENTER_ID(aa,1,(1)) t.wait(0); AUTOSTAMP_WARP_SIGNAL(aa,1)
  AUTOSTAMP_WARP_SIGNAL_AT(aa,1,(t)) AUTOSTAMP_WARP_SIGNAL_PIPE(aa,1,(t),(s)) AUTOSTAMP_WARP_SIGNAL_ID(aa,1,(1))
  return AUTOSTAMP_AROUND(aa,9) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_AROUND_AT(aa,9,(t)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_AROUND_PIPE(aa,9,(t),(s)) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_AROUND_ID(aa,9,(1)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_AFTER(aa,9) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_AFTER_AT(aa,9,(t)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_AFTER_PIPE(aa,9,(t),(s)) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_AFTER_ID(aa,9,(1)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_BEFORE(aa,9) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_BEFORE_AT(aa,9,(t)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_BEFORE_PIPE(aa,9,(t),(s)) w() AUTOSTAMP_AROUND_END, AUTOSTAMP_BEFORE_ID(aa,9,(1)) w() AUTOSTAMP_AROUND_END,
    AUTOSTAMP_BEHIND(aa,9) w() AUTOSTAMP_AROUND_END; t.b(); AUTOSTAMP_ALONE(aa,9) t.b();
}
AUTOSTAMP_ALWAYS_INLINE inline void g(AUTOSTAMP_PARAM_ONLY); void h(int x = 1 AUTOSTAMP_PARAM_DEFAULT);
void l() { AUTOSTAMP_PREPARE((0)) k(1 AUTOSTAMP_ARG(aa,1,(s))); k(AUTOSTAMP_ARG_ONLY(aa,1,(0)));
  k(AUTOSTAMP_PREPARE_AROUND((s)) 2 AUTOSTAMP_AROUND_END);
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) k(3); AUTOSTAMP_CLOSE k(AUTOSTAMP_LAUNCHER_AROUND((0)) 4 AUTOSTAMP_AROUND_END); }
"""
ORIGINAL = """\
template <class T>  void f(T& t ) {
   t.wait(0);
  if (t)   t.wait(1);   else {}
   t.wait(s);   bar(1+2);
  t.a();  t.a();  t.a();  t.a();
   t.wait(0);   t.wait(0);
   t.wait(0);  t.wait(0);
  return  w() ,  w() ,
     w() ,  w() ,
     w() ,  w() ,
     w() ,  w() ,
     w() ,  w() ,
     w() ,  w() ,
     w() ; t.b();  t.b();
}
 inline void g(); void h(int x = 1 );
void l() {  k(1 ); k(); k( 2 );   k(3);  k( 4 ); }
"""


def defined(text: str) -> dict[str, str]:
    """Macros by name: their last parameter, and what they expand to."""
    return {name: body.strip() for name, _, body in MACRO.findall(text.replace("\\\n", ""))}


def test_the_layout_section_is_the_record_layout():
    assert header.with_layout(TEXT) == TEXT
    found = {name: int(value) for name, value in re.findall(r"^constexpr unsigned (\w+) = (\d+);$", TEXT, re.MULTILINE)}
    assert {name: found[name] for name in layout.OFFSET} == layout.OFFSET
    assert (found["warps"], found["lanes"]) == (layout.WARPS, layout.LANES)
    assert (found["header_bytes"], found["record_bytes"]) == (layout.HEADER_BYTES, layout.RECORD_BYTES)
    assert (found["entered"], found["released"]) == (layout.ENTERED, layout.RELEASED)


def test_what_is_written_beside_the_layout_lies_in_spare_bytes():
    used = {byte for name, kind, at in layout.HEADER for byte in range(at, at + int(kind[2]))}
    extra = {
        *range(header.MAIN_EXTRA["binds"], header.MAIN_EXTRA["binds"] + 4),
        *range(header.MAIN_EXTRA["releases"], header.MAIN_EXTRA["releases"] + 4),
        *range(header.MAIN_EXTRA["overlap"], header.MAIN_EXTRA["overlap"] + 4),
    }
    assert not used & extra
    assert max(extra) < layout.HEADER_BYTES
    # The header of a single-thread lane holds `remaining` and `state` only (runtime/layout.py).
    single = {"name": 8, "grid": 12, "block": 12, "writers": 4}
    taken = [
        byte
        for name, size in single.items()
        for byte in range(header.SINGLE_EXTRA[name], header.SINGLE_EXTRA[name] + size)
    ]
    taken += range(layout.OFFSET["remaining"], layout.OFFSET["state"] + 4)
    assert len(taken) == len(set(taken))
    assert max(taken) < layout.HEADER_BYTES


def test_one_64_bit_word_counts_binds_and_releases():
    assert header.MAIN_EXTRA["binds"] % 8 == 0
    assert header.MAIN_EXTRA["releases"] == header.MAIN_EXTRA["binds"] + 4


def test_pairs_and_quads_are_aligned():
    # st.global.v2.u32 needs 8 bytes, st.global.v4.u32 16 (PTX ISA, "Vectors"); the second quad holds grid z and the block.
    assert header.SINGLE_EXTRA["grid"] % 8 == 0
    assert (header.SINGLE_EXTRA["grid"] + 8) % 16 == 0
    assert header.SINGLE_EXTRA["block"] == header.SINGLE_EXTRA["grid"] + 12
    for capacity in (1, 2, 3, 4096):
        assert layout.WARPS * layout.lane_bytes(capacity) % 16 == 0


def test_a_slot_is_what_the_device_reads():
    fields = re.search(r"struct Slot \{(.*?)\};", TEXT, re.DOTALL)
    assert fields is not None
    assert (
        " ".join(fields[1].split())
        == "unsigned long long region; unsigned capacity; unsigned block_x, block_y, block_z;"
    )
    data = header.slot_bytes(0x7F0012340000, 4096, (1, 2, 3))
    assert struct.unpack("<QIIII", data) == (0x7F0012340000, 4096, 1, 2, 3)
    assert len(data) % 8 == 0


def test_the_limit_of_launches_is_the_host_headers():
    assert f"constexpr unsigned most_launches = {LIMIT};" in HOST


def test_both_switches_define_the_same_macros():
    internal = {
        "AUTOSTAMP_IS_ON",
        "AUTOSTAMP_UNIT_LAUNCHES",
        "AUTOSTAMP_EVENT",
        "AUTOSTAMP_SLOT",
        "AUTOSTAMP_SIGNATURE",
    }
    internal |= {"AUTOSTAMP_BOTH", "AUTOSTAMP_UNCHECKED", "AUTOSTAMP_JOINED"}
    off, on = set(defined(OFF)) - internal, set(defined(ON)) | set(defined(HOST))
    internal |= {"AUTOSTAMP_TEXT", "AUTOSTAMP_PLACE", "AUTOSTAMP_UNIT_MANIFEST", "AUTOSTAMP_UNIT_SYMBOLS"}
    assert on - internal == off


def test_off_every_macro_is_empty():
    off = defined(OFF)
    assert {body for name, body in off.items() if name != "AUTOSTAMP_IS_ON"} == {""}


def test_every_macro_that_is_emitted_is_defined():
    source = Path(emit.__file__).read_text(encoding="utf-8")
    stems = set(re.findall(r"\{PREFIX\}([A-Z_]+[A-Z])", source)) - {
        "UNIT",
        "UNIT_SLOTS",
        "UNIT_LAUNCHES",
        "UNIT_DEFERRED",
        "UNIT_LEAN",
        "EVENTS",
        "KERNELS",
    }
    assert stems
    assert [stem for stem in stems if not any(name.startswith(f"AUTOSTAMP_{stem}") for name in defined(OFF))] == []


def test_the_device_header_needs_nothing_else():
    assert re.findall(r"^#include (\S+)", TEXT, re.MULTILINE) == [
        '"autostamp_unit.cuh"',
        *(f'"{part}"' for part in header.PARTS),
        '"autostamp_host.cuh"',
        '"autostamp_forms.cuh"',
    ]
    for part in header.PARTS:
        assert b"#include" not in header.header_files()[part]


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed")
@pytest.mark.parametrize("flags", [[], ["-DAUTOSTAMP=0"], ["-DAUTOSTAMP=1"], ["-DAUTOSTAMP"]])
def test_host_compilers_see_the_original(tmp_path, flags):
    # A host compiler defines none of __CUDACC__, __CUDACC_RTC__ and __CUDA__: there even -DAUTOSTAMP changes nothing.
    texts = []
    for name, text in (("stamped", STAMPED), ("original", ORIGINAL)):
        file = tmp_path / f"{name}.cpp"
        file.write_text(text, encoding="ascii")
        command = ["c++", "-std=c++17", "-E", "-P", *flags, f"-I{header.folder()}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        texts.append(done.stdout.split())
    assert texts[0] == texts[1]
    assert texts[0] == ORIGINAL.split()


def test_what_stamping_writes_beside_the_files_is_no_source_of_theirs():
    assert {*header.header_files(), header.UNIT_HEADER} == includes.GENERATED
