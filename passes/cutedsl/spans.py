# SPDX-License-Identifier: Apache-2.0
"""Byte spans of libcst nodes, measured while libcst writes the tree back out.

libcst's own ByteSpanPositionProvider does the same but adds up a position at every token and keeps every node, which costs
1.5 times the parse; here nodes remember token indices and the lengths are summed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState


@dataclass(frozen=False)
class _SpanState(CodegenState):
    """Token indices at which each node begins and ends."""

    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    stack: list[int] = field(default_factory=list)

    def before_codegen(self, node: cst.CSTNode) -> None:  # noqa: ARG002 - libcst's signature
        self.stack.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.stack.pop()
        # A span recorded by record_syntactic_position leaves out parentheses and whitespace: it wins.
        self.spans.setdefault(id(node), (start, len(self.tokens)))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = len(self.tokens)
        try:
            yield
        finally:
            if start_node is not None:
                start = self.spans[id(start_node)][0]
            end = self.spans[id(end_node)][1] if end_node is not None else len(self.tokens)
            self.spans[id(node)] = (start, end)


class Spans:
    """Byte spans of every node of `module`. Nodes are keyed by identity, so the module must stay alive."""

    def __init__(self, module: cst.Module) -> None:
        state: Any = _SpanState(default_indent=module.default_indent, default_newline=module.default_newline)
        module._codegen(state)
        self._module = module
        self._tokens: dict[int, tuple[int, int]] = state.spans
        lengths = (len(token) if token.isascii() else len(token.encode()) for token in state.tokens)
        self._offsets = [0, *accumulate(lengths)]

    def of(self, node: cst.CSTNode) -> tuple[int, int]:
        """Half-open byte span of `node`, without the whitespace it owns."""
        start, end = self._tokens[id(node)]
        return self._offsets[start], self._offsets[end]
