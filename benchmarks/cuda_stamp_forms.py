# SPDX-License-Identifier: Apache-2.0
"""What one stamp of CUDA C++ costs, by form: cycles on the GPU and instructions in the SASS.

    python benchmarks/cuda_stamp_forms.py [--json OUT] [--arch sm_90a] [--compile-only]

Needs nvcc and, unless --compile-only, a GPU; for the instruction counts nvdisasm and cuobjdump. Takes about a minute. A loop of
512 iterations holds two stamps and a chain of dependent multiply-adds; its time less that of the loop without stamps, over 1024,
is the cost of a stamp. Instructions are what a loop with six stamps has more than one with two, over four. One warp waits for its
chain, so issued instructions hide in it; sixteen warps fill the SM's issue slots.

Exit status: 0 done, 1 the program failed, 3 no nvcc.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if not __package__:  # run as a script: what it imports lies beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.diagnostics import AutostampError
from autostamp.runtime import cubin
from autostamp.runtime.cuda import header

SOURCE = Path(__file__).with_suffix(".cu")
STAMPS = 2 * 512
UNIT = """\
#define AUTOSTAMP_UNIT 0x1u
#define AUTOSTAMP_UNIT_SLOTS 1
#define AUTOSTAMP_UNIT_LAUNCHES 1
#define AUTOSTAMP_EVENTS_aa 0
#define AUTOSTAMP_KERNELS_aa 0
"""
FORMS = {
    "none": "no stamp",
    "append": "enter with barrier address, and exit: as emitted",
    "append_signal": "two signals with barrier address",
    "append_plain": "enter and exit without a payload",
    "append_warp": "the same where the whole warp is known to pass",
    "append_index": "cursor as an index, address by IMAD.WIDE, lane 0 alone",
    "append_wide": "64-bit clock, 16-byte record, lane 0 alone",
    "append_if": "C++: if (lane == 0 && n < capacity)",
    "append_globaltimer": "%globaltimer in place of %clock, lane 0 alone",
    "static_slot": "place by site and iteration, 4 bytes, lane 0 alone",
    "shared_append": "into shared memory, not flushed, lane 0 alone",
    "floor": "clock and an unconditional store",
    "clocks_dependent": "a clock read alone, each after the one before",
    "clocks_independent": "a clock read alone",
}


@dataclass
class Row:
    """One form: instructions a stamp, registers, spilled bytes, and cycles a stamp by the number of warps."""

    form: str
    meaning: str
    instructions: float | None
    registers: int | None
    spilled: int | None
    cycles: dict[int, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all forms; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--compile-only", action="store_true")
    options = parser.parse_args(arguments)
    if shutil.which("nvcc") is None:
        print("nvcc was not found", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = _compiled(folder, options.arch)
        if not options.compile_only:
            done = subprocess.run([folder / "program"], capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
            _add_cycles(rows, done.stdout)
    print(_table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0


def _compiled(folder: Path, arch: str) -> list[Row]:
    """Build program and cubin; the rows without cycles."""
    (folder / header.UNIT_HEADER).write_text(UNIT, encoding="ascii")
    common = ["nvcc", "-std=c++17", "-O3", f"-arch={arch}", "-DAUTOSTAMP", f"-I{header.folder()}", f"-I{folder}"]
    subprocess.run([*common, "-o", folder / "program", SOURCE], check=True)
    subprocess.run([*common, "-cubin", "-o", folder / "forms.cubin", SOURCE], check=True)
    try:
        facts = {_form(fact.kernel): fact for fact in cubin.read_file(folder / "forms.cubin")}
    except AutostampError as error:
        print(f"{error}: no instruction counts", file=sys.stderr)
        return [Row(form, meaning, None, None, None, {}) for form, meaning in FORMS.items()]
    more = {form: facts[form, 3].instruction_count - facts[form, 1].instruction_count for form in FORMS}
    return [
        Row(
            form,
            meaning,
            (more[form] - more["none"]) / 4,
            facts[form, 1].registers,
            facts[form, 1].local_bytes,
            {},
        )
        for form, meaning in FORMS.items()
    ]


def _form(kernel: str) -> tuple[str, int]:
    """Form and pairs of stamps of `_Z4loopILi3ELi1EEv...`."""
    found = re.search(r"loopILi(\d+)ELi(\d)E", kernel)
    assert found is not None, kernel
    return list(FORMS)[int(found[1])], int(found[2])


def _add_cycles(rows: list[Row], text: str) -> None:
    taken = {(form, int(warps)): int(cycles) for form, warps, cycles in (line.split() for line in text.splitlines())}
    for row in rows:
        for (form, warps), cycles in taken.items():
            if form == row.form:
                row.cycles[warps] = round((cycles - taken["none", warps]) / STAMPS, 2)


def _table(rows: list[Row]) -> str:
    warps = sorted({count for row in rows for count in row.cycles})
    lines = [
        "| form | SASS a stamp | registers | " + "".join(f"cycles, {count} warps | " for count in warps) + "what |"
    ]
    lines.append("|" + "---|" * (4 + len(warps)))
    for row in rows:
        cells = [row.form, row.instructions, row.registers, *(row.cycles.get(count) for count in warps), row.meaning]
        lines.append("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
