# SPDX-License-Identifier: Apache-2.0
"""What the user says of a kernel that its code does not show, as types. `budget_file` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autostamp.model.budget import Dependency, ResourceRow, Step


@dataclass(frozen=True, slots=True)
class GivenRole:
    """One role. Zero and -1 are unsaid.

    `warps` run its main loop, which begins at byte address `loop`, and `trips` through it are one iteration. In an iteration TMA
    brings `tma_bytes` into this CTA's shared memory, for which `l2_bytes` come out of L2 and `hbm_bytes` out of device memory.
    """

    warps: int = 0
    trips: float = 0.0
    loop: int = -1
    tma_bytes: float = 0.0
    l2_bytes: float = 0.0
    hbm_bytes: float = 0.0
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class GivenRing:
    """One ring. None, 0 and "" are unsaid; an empty tuple is no time at all."""

    stages: int = 0
    producer: str = ""
    consumer: str = ""
    fill: tuple[Step, ...] | None = None
    consume: tuple[Step, ...] | None = None
    hand_off: tuple[Step, ...] | None = None
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class GivenRow:
    """A row by hand. With `replaces`, it stands for all that was found for its role and resource."""

    row: ResourceRow
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """A budget file. `path` is "" and the rest is unsaid where there is none.

    `active_sms` run at once (0: all): they share L2 and device memory. `smem_write_share` -1: unsaid. `has_chains`: chains
    that the loops show count.
    """

    path: str = ""
    iteration: str = ""
    active_sms: int = 0
    smem_write_share: float = -1.0
    roles: Mapping[str, GivenRole] = field(default_factory=dict)
    rows: tuple[GivenRow, ...] = ()
    rings: Mapping[str, GivenRing] = field(default_factory=dict)
    dependencies: tuple[Dependency, ...] = ()
    has_chains: bool = True

    def named_roles(self) -> dict[str, str]:
        """Roles that it speaks of, each with the key where it does so first."""
        found: dict[str, str] = {name: f"roles.{name}" for name in self.roles}
        for index, each in enumerate(self.rows):
            found.setdefault(each.row.role, f"rows[{index}]")
        for name, ring in self.rings.items():
            for role in filter(None, (ring.producer, ring.consumer)):
                found.setdefault(role, f"rings.{name}")
        return found
