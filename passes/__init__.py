# SPDX-License-Identifier: Apache-2.0
"""The compiler side: find sync ops, plan stamps, edit the source, check the result."""
