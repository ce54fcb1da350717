# SPDX-License-Identifier: Apache-2.0
"""What `autostamp instrument` found in each file, as text and as an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autostamp.model.manifest import SourceFile
from autostamp.model.site import KernelDef
from autostamp.model.sync import Kind

_NOT_LAUNCHED = "it is launched nowhere in these files"
_SHOWN = 3
_ONLY_COUNTED = ("AS2101", "AS2102", "AS2103", "AS2104")
"""Polls, fences, forwarding wrappers, declarations: nobody waits at these lines, or their callers are stamped."""


def as_object(files: tuple[SourceFile, ...]) -> list[dict[str, Any]]:
    """One entry a file: kernels, sites by kind and role, skips by code."""
    return [
        {
            "path": file.path,
            "key": file.key,
            "language": file.language,
            "kernels": [_kernel(kernel) for kernel in file.kernels],
            "sites": len(file.sites),
            "by_kind": dict(Counter(site.kind.value for site in file.sites)),
            "by_role": dict(Counter(site.role or "(by caller)" for site in file.sites)),
            "skipped": dict(Counter(skip.code for skip in file.skips)),
            "skips": [
                {
                    "line": skip.span.line,
                    "column": skip.span.column,
                    "code": skip.code,
                    "call": skip.text,
                    "reason": skip.reason,
                }
                for skip in file.skips
            ],
        }
        for file in files
    ]


def _kernel(kernel: KernelDef) -> dict[str, Any]:
    value: dict[str, Any] = {"name": kernel.name, "line": kernel.line, "threaded": kernel.is_threaded}
    if kernel.number:
        value |= {"number": kernel.number, "carrier": kernel.carrier, "reason": kernel.reason}
    return value


def as_text(files: tuple[SourceFile, ...], outside: Mapping[Path, tuple[str, ...]] | None = None) -> str:
    """The table, the kernels, and every call that a user may have expected to be stamped; the others are only counted.

    `outside` names, for headers that were only read, the functions which hold sync ops and are not stamped.
    """
    rows: list[tuple[str, ...]] = [("file", "kernels", "waits", "signals", "roles", "skipped")]
    rows += [_row(file) for file in files]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for file in files:
        launch = _carrier if file.language == "cuda" else _launch
        lines += [f"kernel {kernel.name} at {file.path}:{kernel.line}{launch(kernel)}" for kernel in file.kernels]
        lines += [
            f"{file.path}:{skip.span.line}:{skip.span.column}: {skip.code} {skip.text} ({skip.reason})"
            for skip in file.skips
            if skip.code not in _ONLY_COUNTED
        ]
    if any(skip.code in _ONLY_COUNTED for file in files for skip in file.skips):
        lines.append(f"calls skipped for {', '.join(_ONLY_COUNTED)} are listed in the manifest and by --json")
    lines += [f"not stamped, outside: {_some(names)} in {path}" for path, names in (outside or {}).items()]
    return "\n".join(lines)


def _some(names: tuple[str, ...]) -> str:
    """The first names; `--json` has them all."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _carrier(kernel: KernelDef) -> str:
    """How a kernel of CUDA C++ gets its slot, and why it is not the parameter."""
    if not kernel.carrier:
        return f": no stamp, {kernel.reason}"
    if kernel.carrier == "param":
        return ": by parameter"
    code = "AS2113 " if kernel.reason == _NOT_LAUNCHED else ""
    return f": by symbol, {code}{kernel.reason}"


def _launch(kernel: KernelDef) -> str:
    """A kernel that this file does not launch gets its buffer from a session only."""
    return "" if kernel.is_threaded else ": AS2110 not launched in its file; a session records it all the same"


def _row(file: SourceFile) -> tuple[str, ...]:
    kinds = Counter(site.kind for site in file.sites)
    roles = Counter(site.role for site in file.sites)
    named = ", ".join(f"{role} {count}" for role, count in sorted(roles.items()) if role)
    rest = roles.get("", 0)
    by_caller = f"by caller {rest}" if rest else ""
    skipped = ", ".join(f"{code} {count}" for code, count in sorted(Counter(skip.code for skip in file.skips).items()))
    return (
        file.path,
        str(len(file.kernels)),
        str(kinds[Kind.WAIT]),
        str(kinds[Kind.SIGNAL]),
        ", ".join(text for text in (named, by_caller) if text) or "-",
        skipped or "-",
    )
