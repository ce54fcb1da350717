# SPDX-License-Identifier: Apache-2.0
"""Findings as text: `path:line:col: AS#### message`, the source line with a caret, and what to do."""

from __future__ import annotations

from autostamp.diagnostics.error import Diagnostic


def render(diagnostic: Diagnostic) -> str:
    """The finding as lines for a terminal, without colour."""
    position = diagnostic.position
    where = f"{position.path}:{position.line}:{position.column}: " if position else ""
    lines = [f"{where}{diagnostic.code} {diagnostic.message}"]
    if position and position.source:
        gutter = f"{position.line:>5} | "
        text = position.source.expandtabs(4)
        pad = len(position.source[: position.column - 1].expandtabs(4))
        lines += [f"{gutter}{text}", f"{'':>5} | {' ' * pad}{'^' * max(1, min(position.width, len(text) - pad))}"]
    lines.append(f"help: {diagnostic.help}  (autostamp explain {diagnostic.code})")
    return "\n".join(lines)
