# SPDX-License-Identifier: Apache-2.0
"""Stands in for autostamp's stamps in stamped text: a range of IKET's around each wait, a mark after each signal."""

# ruff: noqa: ANN401 - what the packages give is untyped

from __future__ import annotations

from typing import Any

from cutlass.cute.experimental import iket


class Stamps:
    """The calls that `autostamp instrument` writes."""

    def enter(self, site: int, *_: Any, **__: Any) -> None:
        iket.range_push(f"wait {site}")

    def exit(self, _site: int) -> None:
        iket.range_pop()

    def signal(self, site: int) -> None:
        iket.mark(f"signal {site}")

    def hand(self, _profile: Any) -> dict[str, Any]:
        return {}

    def __getattr__(self, _name: str) -> Any:
        return _nothing


def _nothing(*_: Any, **__: Any) -> None:
    """What only autostamp needs: roles, and lanes that are bound and released."""


def stamper() -> Stamps:
    """One for a module."""
    return Stamps()
