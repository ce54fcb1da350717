# SPDX-License-Identifier: Apache-2.0
"""Trace to Timeline: pure functions over the types of `autostamp.model`."""

from autostamp.analysis.timeline import analyse

__all__ = ["analyse"]
