# SPDX-License-Identifier: Apache-2.0
"""What is taken for granted of cuda.h's tensor maps, held against the cuda.h of the nvcc that there is, and launches compiled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.model.prototype import TENSOR_MAP_BYTES
from autostamp.runtime.cuda.nvcc import tensor_map_alignment
from autostamp.runtime.cuda.tensor_map import BYTES, FILLS, L2_PROMOTIONS, SWIZZLES, TYPES

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
ENUMERATORS = {
    **{
        f"CU_TENSOR_MAP_DATA_TYPE_{name}": TYPES[kind][0]
        for name, kind in {
            "UINT8": "u8", "UINT16": "u16", "UINT32": "u32", "INT32": "i32", "UINT64": "u64", "INT64": "i64", "FLOAT16": "f16",
            "FLOAT32": "f32", "FLOAT64": "f64", "BFLOAT16": "bf16", "FLOAT32_FTZ": "f32-ftz", "TFLOAT32": "tf32",
            "TFLOAT32_FTZ": "tf32-ftz",
        }.items()
    },
    "CU_TENSOR_MAP_INTERLEAVE_NONE": 0,
    **{f"CU_TENSOR_MAP_SWIZZLE_{name.upper()}": number for name, number in SWIZZLES.items()},
    **{
        f"CU_TENSOR_MAP_L2_PROMOTION_{name.upper() if name == 'none' else f'L2_{name}'}": number
        for name, number in L2_PROMOTIONS.items()
    },
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": FILLS["zeros"],
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA": FILLS["nan"],
}  # fmt: skip


def test_numbers_and_layout_are_those_of_cuda_h(tmp_path):
    lines = [f"static_assert({name} == {number});" for name, number in ENUMERATORS.items()]
    lines.append(f"static_assert(sizeof(CUtensorMap) == {BYTES} && alignof(CUtensorMap) == {tensor_map_alignment()});")
    source = tmp_path / "numbers.cu"
    source.write_text("#include <cuda.h>\n" + "\n".join(lines))
    subprocess.run(["nvcc", "-std=c++17", "-c", "-o", tmp_path / "numbers.o", source], check=True, timeout=300)
    assert BYTES == TENSOR_MAP_BYTES


def launched(tmp_path: Path, source: Path, kernel: str, *texts: str) -> None:
    arguments = [word for text in texts for word in ("--arg", text)]
    out = tmp_path / "RUN"
    shape = ["--grid", "4", "--block", "384", "--smem", "230400"]
    line = [
        "launch",
        str(source),
        "--kernel",
        kernel,
        *shape,
        *arguments,
        "--arch",
        "sm_90a",
        "--compile-only",
        "-o",
        str(out),
    ]
    done = subprocess.run([sys.executable, "-m", "autostamp", *line], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (out / "clean.cubin").is_file()
    assert (out / "stamped.cubin").is_file()


def test_a_struct_of_maps_is_laid_out_as_the_compiler_does(tmp_path):
    """A static_assert holds the layout that was read against the compiler's (AS1028)."""
    source = tmp_path / "both.cu"
    source.write_text(
        "#include <cuda.h>\n#include <cstdint>\n"
        "struct Both { int n; CUtensorMap maps[2]; float* out; };\n"
        "__global__ void both(const __grid_constant__ Both p) { __syncthreads(); p.out[threadIdx.x] = p.n; }\n"
    )
    maps = [f"p.maps[{at}]=map(p.out,box=[4])" for at in range(2)]
    launched(tmp_path, source, "both", "p.n=1", *maps, "p.out=[384]")


def test_headers_without_stamps_include_stamped_ones(tmp_path):
    """driver.cuh holds no stamp and includes tile.cuh, which does: `#pragma once` must see one file, not two."""
    maps = [f"map_{name}=map({number}[256,256],box=[{rows},32],swizzle=128B)" for name, number, rows in
            (("a", "f32", 128), ("b", "f32", 128), ("c", "f32", 16))]  # fmt: skip
    source = ROOT / "kernels" / "cuda" / "gemm" / "gemm_plain.cu"
    launched(tmp_path, source, "gemm_plain<float>", "shape={2,2,8}", *maps)
