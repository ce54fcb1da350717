# SPDX-License-Identifier: Apache-2.0
"""Warp-specialized sample kernels written in CuTe-DSL."""
