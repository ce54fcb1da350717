# SPDX-License-Identifier: Apache-2.0
"""What the finder hands to the emitter: sites with the places where their stamps go, kernels, launches and role branches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from autostamp.model.edit import Edit
from autostamp.model.site import KernelDef, Site, Skip, Span


class Form(StrEnum):
    """How a site is stamped: statements or an expression around the call, statements around a polling loop, or a wrapped
    reference to the function that is called elsewhere.
    """

    STATEMENT = "statement"
    EXPRESSION = "expression"
    LOOP = "loop"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class OperandText:
    """An operand of the call that the stamp needs: keyword of `Stamper.enter`, byte span, text.

    `is_pure` says that its text may be evaluated a second time without emitting an instruction or calling anything.
    """

    keyword: str
    start: int
    end: int
    text: str
    is_pure: bool


@dataclass(frozen=True, slots=True)
class FoundSite:
    """A site and its geometry. `outer` spans the statement (STATEMENT) or the call (EXPRESSION); `edits` are those of a LOOP.

    `depth` is the nesting depth of the call within its statement: it orders insertions that meet at one offset; `group`
    is what the op waits on when it has no operand; `is_chained` says that the receiver makes a sync call of its own.
    """

    site: Site
    form: Form
    outer: tuple[int, int]
    operands: tuple[OperandText, ...]
    depth: int = 0
    group: str = ""
    loop_places: tuple[Edit, ...] = ()
    is_chained: bool = False


@dataclass
class Found:
    """Everything found in one file. `frame_edits` thread the buffer, bind and release lanes, and mark role branches. `muted` are
    calls that have no stamp, and behind which a clock that an earlier wait carried is written.
    """

    sites: list[FoundSite] = field(default_factory=list)
    muted: list[FoundSite] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    kernels: list[KernelDef] = field(default_factory=list)
    frame_edits: list[Edit] = field(default_factory=list)
    import_edit: Edit | None = None

    def shifted(self, by: int) -> Found:
        """The same with every byte offset moved by `by`: what was found in a text that had a byte-order mark before it."""

        def edit(old: Edit) -> Edit:
            return replace(old, start=old.start + by, end=old.end + by)

        def span(old: Span) -> Span:
            return replace(old, start=old.start + by, end=old.end + by)

        def found_site(old: FoundSite) -> FoundSite:
            return replace(
                old,
                site=replace(old.site, span=span(old.site.span)),
                outer=(old.outer[0] + by, old.outer[1] + by),
                operands=tuple(replace(item, start=item.start + by, end=item.end + by) for item in old.operands),
                loop_places=tuple(edit(item) for item in old.loop_places),
            )

        return Found(
            [found_site(item) for item in self.sites],
            [found_site(item) for item in self.muted],
            [replace(item, span=span(item.span)) for item in self.skips],
            self.kernels,
            [edit(item) for item in self.frame_edits],
            edit(self.import_edit) if self.import_edit is not None else None,
        )
