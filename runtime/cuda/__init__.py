# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ at run time: the device header, the drained records, the compiler."""
