# SPDX-License-Identifier: Apache-2.0
"""Which sites the user wants stamped: `--only` and `--skip`."""

from __future__ import annotations

from fnmatch import fnmatchcase

from autostamp.diagnostics import AutostampError
from autostamp.model.options import Selection
from autostamp.model.placement import key_at
from autostamp.model.site import Site

FIELDS = ("kind", "side", "role", "barrier", "method", "function", "file")


def _matches(term: str, site: Site, path: str) -> bool:
    values = {
        "kind": site.kind.value,
        "side": site.side.value,
        "role": site.role,
        "barrier": site.barrier,
        "method": site.method,
        "function": site.function,
        "file": path,
    }
    for condition in term.split(","):
        field, _, pattern = condition.partition("=")
        if not fnmatchcase(values[field.strip()], pattern.strip()):
            return False
    return True


def check(selection: Selection) -> None:
    """Raise AS9001 for a term that names no known field."""
    for term in (*selection.only, *selection.skip):
        for condition in term.split(","):
            field, separator, _ = condition.partition("=")
            if not separator or field.strip() not in FIELDS:
                raise AutostampError.of(
                    "AS9001", detail=f"selection {term!r}: write FIELD=PATTERN with {', '.join(FIELDS)}"
                )


def is_selected(site: Site, selection: Selection, path: str, key: str = "") -> bool:
    """True when the site matches a term of `only` (or there is none) and no term of `skip`; or is placed, where sites are.

    `key` is the manifest's key of the file at `path`.
    """
    if selection.placed is not None:
        return any(key_at(path, key, site) == name for name, _ in selection.placed)
    wanted = not selection.only or any(_matches(term, site, path) for term in selection.only)
    return wanted and not any(_matches(term, site, path) for term in selection.skip)
