# SPDX-License-Identifier: Apache-2.0
"""Every user-facing failure: its code, where it is, and what to do about it."""

from autostamp.diagnostics.codes import CODES, CodeInfo, ExitStatus
from autostamp.diagnostics.error import AutostampError, Diagnostic, Position
from autostamp.diagnostics.render import render

__all__ = ["CODES", "AutostampError", "CodeInfo", "Diagnostic", "ExitStatus", "Position", "render"]
