# SPDX-License-Identifier: Apache-2.0
"""The gallery's CuTe-DSL kernels on a GPU, on fresh random inputs: right against float64, and stamped bits are clean bits."""

from __future__ import annotations

import pytest

from tests.builds import run_module

pytestmark = pytest.mark.gpu

pytest.importorskip("torch", reason="references are torch's")

GEMM = "autostamp.kernels.cutedsl.gemm_gallery.reference"
ATTENTION = "autostamp.kernels.cutedsl.attention_handoff.reference"


@pytest.mark.parametrize("variant", ["plain", "pingpong", "cooperative"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (256, 256, 64),  # one K tile: nothing is released in the loop
        (2560, 1792, 192),  # more tiles than CTAs, an odd number of them for some
        (1280, 768, 1088),  # 17 K tiles: rings of 4 and 6 stages end in the middle
    ],
)
def test_gemm_is_the_rounded_exact_product(variant, dtype, m, n, k):
    shape = ("--m", m, "--n", n, "--k", k)
    done = run_module(GEMM, "--variant", variant, "--dtype", dtype, *shape, "--repeat", 2)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("order", ["ahead", "serial"])
@pytest.mark.parametrize(("length_q", "length_k"), [(128, 128), (256, 384), (384, 1024)])
def test_attention_is_right_however_p_is_split(halves, order, length_q, length_k):
    knobs = ("--split", 1, 2, 3, 4, 6, 8, "--halves", halves, "--order", order)
    shape = ("--heads", 3, "--length-q", length_q, "--length-k", length_k)
    done = run_module(ATTENTION, *knobs, *shape, "--repeat", 2)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stamped_bits_are_clean_bits():
    done = run_module("benchmarks.overhead", "--case", "gallery", "--rounds", 1)
    assert done.returncode == 0, done.stdout + done.stderr
