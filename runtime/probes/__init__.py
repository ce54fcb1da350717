# SPDX-License-Identifier: Apache-2.0
"""Microbenchmarks of the GPU: kernels/probes/*.cu compiled, their machine code checked, launched, and made into constants."""
