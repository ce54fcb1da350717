# SPDX-License-Identifier: Apache-2.0
"""Sample kernels, one package per kernel language."""
