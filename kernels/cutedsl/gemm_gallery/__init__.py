# SPDX-License-Identifier: Apache-2.0
"""One GEMM in CuTe-DSL, three ways to split its roles: plain, pingpong and cooperative."""
