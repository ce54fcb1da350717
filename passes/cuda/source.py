# SPDX-License-Identifier: Apache-2.0
"""A parsed CUDA C++ source. The tree is that of a masked copy of equal length, so its byte offsets are the original's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node, Tree

from autostamp.passes.cuda.draft import Span
from autostamp.passes.cuda.macros import BUILTIN, Macros, definitions, learn
from autostamp.passes.cuda.mask import mask
from autostamp.passes.cuda.repair import LANGUAGE, repaired
from autostamp.passes.cuda.views import Views, views, without

__all__ = ["LANGUAGE", "MacroBody", "Source", "parse"]
Blanked = tuple[int, int, str]
_HOLDS_CODE = re.compile(rb"[;{(]|\b(?:asm|__asm__|while|for|do|if)\b")
_NAME = re.compile(r"[A-Za-z_]\w*+")
_WRAPPERS = frozenset({"template_declaration", "linkage_specification"})


@dataclass(frozen=True, slots=True)
class MacroBody:
    """A `#define` whose replacement list holds code: the byte span of the replacement in the original.

    `text` is as long as the span and can be parsed as a fragment: comments and the backslashes that join lines are blank.
    """

    name: str
    start: int
    end: int
    text: bytes
    parameters: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One source with its tree. Where the copy has a `;` that the original lacks, a statement ends with a blank of the original.

    `code` is the original without comments and literals (blanks of equal length, newlines kept; preprocessor lines stay);
    `uncommented` still has the literals. `masked` is what was parsed. `blanked` are the spans of the original that were
    blanked because they hold qualifiers or attributes, with their text, sorted; `erased` are those of whole macro calls and
    branches of conditionals that the tree lacks. `macros` are the names that were known.
    """

    original: bytes
    code: bytes
    masked: bytes
    tree: Tree
    blanked: tuple[Blanked, ...]
    macro_bodies: tuple[MacroBody, ...]
    error_count: int
    uncommented: bytes
    macros: Macros
    erased: tuple[Blanked, ...]

    def text(self, node: Node) -> str:
        """The original text of a node: UTF-8, other bytes as surrogates (`errors="surrogateescape"`)."""
        return self.original[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def qualifiers_before(self, node: Node) -> str:
        """What stands between the end of the declaration before `node` and the declarator of `node`, in the original.

        `node` is a function_definition or a declaration. Blanked macros are included, each followed by the qualifiers
        it hides; comments, preprocessor lines, template parameters and macro calls that were erased are not. Inside an
        `extern "C"` block the text starts with `extern "C"`.
        """
        outer = node
        cuts = []
        while outer.parent is not None and outer.parent.type in _WRAPPERS:
            outer = outer.parent
            if (parameters := outer.child_by_field_name("parameters")) is not None:
                cuts.append((parameters.start_byte, parameters.end_byte))
        declarator = node.child_by_field_name("declarator")
        end = node.end_byte if declarator is None else declarator.start_byte
        start = _end_of_previous(outer)
        cuts += ((first, last) for first, last, _ in self.erased if start < last and first < end)
        text = bytearray(self.uncommented[start:end])
        for cut_start, cut_end in cuts:
            first, last = max(cut_start - start, 0), min(cut_end - start, len(text))
            text[first:last] = b" " * (last - first)
        cut = bytes(text)
        words = without(cut, views(cut).directives).decode("utf-8", "surrogateescape").split()
        if _is_in_linkage_block(outer):
            words.insert(0, 'extern "C"')
        return _NAME.sub(lambda match: " ".join((match[0], *self.macros.hidden(match[0]))), " ".join(words))


def parse(data: bytes, macros: Macros = BUILTIN) -> Source:
    """Parse a source, any bytes at all. `macros` is what the project taught; the source's own `#define`s are added."""
    view = views(data)
    known = learn([data], macros)
    result = repaired(mask(data, view, known), view, known)
    return Source(
        original=data,
        code=view.code,
        masked=result.masked,
        tree=result.tree,
        blanked=_with_text(data, result.blanked),
        macro_bodies=tuple(_bodies(view)),
        error_count=len(result.errors),
        uncommented=view.uncommented,
        macros=known,
        erased=_with_text(data, result.erased),
    )


def _with_text(data: bytes, spans: Iterable[Span]) -> tuple[Blanked, ...]:
    return tuple((start, end, data[start:end].decode("utf-8", "surrogateescape")) for start, end in sorted(spans))


def _bodies(view: Views) -> list[MacroBody]:
    found = []
    for directive in view.directives:
        if directive.keyword != b"define":
            continue
        for each in definitions(view.uncommented[directive.start : directive.end]):
            if _HOLDS_CODE.search(each.body):
                start = directive.start + each.start
                found.append(MacroBody(each.name, start, start + len(each.body), each.body, each.parameters))
    return found


def _end_of_previous(node: Node) -> int:
    previous = node.prev_sibling
    while previous is not None and previous.type == "comment":
        previous = previous.prev_sibling
    if previous is not None:
        return previous.end_byte
    return 0 if node.parent is None else node.parent.start_byte


def _is_in_linkage_block(node: Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type != "linkage_specification":
        parent = parent.parent
    return parent is not None
