# SPDX-License-Identifier: Apache-2.0
"""CUDA C++: parse a masked copy, find the sync operations, edit the original."""
