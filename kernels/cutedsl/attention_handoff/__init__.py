# SPDX-License-Identifier: Apache-2.0
"""A small attention forward in CuTe-DSL whose softmax hands its result back in two parts."""
