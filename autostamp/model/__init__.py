# SPDX-License-Identifier: Apache-2.0
"""Frozen leaf types shared by every stage. Nothing here imports another part of autostamp."""
