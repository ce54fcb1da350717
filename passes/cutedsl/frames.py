# SPDX-License-Identifier: Apache-2.0
"""The frame of a kernel: binding and releasing its lane, and threading the buffer from the host through the launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from autostamp.model.edit import Edit
from autostamp.passes.cutedsl import calls
from autostamp.passes.cutedsl.places import RANK_BIND, RANK_RELEASE, Block, Places
from autostamp.passes.cutedsl.spans import Spans

BUFFER = "mProf"
WHITESPACE = (cst.BaseParenthesizableWhitespace, cst.EmptyLine, cst.TrailingWhitespace, cst.Comment, cst.Newline)

_KERNEL = re.compile(r"^(?:cute|cutlass|cute_ext)[\w.]*\.kernel$|^kernel$")


class Frames:
    """Collects the edits around kernels and hosts of one module."""

    def __init__(self, data: bytes, spans: Spans, places: Places) -> None:
        self._data = data
        self._spans = spans
        self._places = places
        self._hosts: dict[int, cst.FunctionDef] = {}
        self.edits: list[Edit] = []
        self.threaded: set[str] = set()
        """Names of kernels whose launch passes the buffer on."""

    def imported(self, body: Sequence[cst.CSTNode], text: str) -> Edit | None:
        """Where the stamper is imported: after the docstring and the `__future__` imports."""
        index = 0
        while index < len(body) and _is_prologue(body[index]):
            index += 1
        block = Block(body, 0)  # type: ignore[arg-type]
        if index < len(body):
            return self._places.before(block, index, text, RANK_BIND)
        return self._places.after(block, index - 1, text, RANK_BIND) if body else None

    def open(self, node: cst.FunctionDef, block: Block, qualname: str) -> None:
        """Bind the lane as the kernel's first statement. A parameter of the buffer's name is the author's: it is left alone."""
        is_own = has_buffer(node)
        self._add_parameter(node)
        text = f'_as.bind({None if is_own else BUFFER}, "{qualname}")'
        first = block.statements[0]
        smalls = first.body if isinstance(first, cst.SimpleStatementLine) else ()
        is_docstring = bool(smalls) and _is_string(smalls[0])
        if is_docstring and (len(block.statements) == 1 or len(smalls) > 1):
            end = self._spans.of(smalls[0])[1]
            self.edits.append(Edit(end, end, f"; {text}", RANK_BIND))
        else:
            self.edits.append(self._places.before(block, 1 if is_docstring else 0, text, RANK_BIND))

    def close(self, block: Block) -> None:
        """Release the lane where the kernel's body ends; returns release it themselves."""
        last = block.statements[-1]
        smalls = last.body if isinstance(last, cst.SimpleStatementLine) else ()
        if not (smalls and isinstance(smalls[-1], (cst.Return, cst.Raise))):
            self.edits.append(self._places.after(block, len(block.statements) - 1, "_as.release()", RANK_RELEASE))

    def _add_parameter(self, node: cst.FunctionDef) -> None:
        """Append `mProf=None` to a signature, after the last parameter that may precede it."""
        if has_buffer(node):
            return
        params = node.params
        last = [parameter for parameter in parameters(params) if parameter is not params.star_kwarg][-1:]
        if last:
            end = self._parameter_end(last[0])
            if last[0] in params.posonly_params:
                end = self._spans.of(params.posonly_ind)[0] + 1  # type: ignore[arg-type]
            self.edits.append(Edit(end, end, f", {BUFFER}=None"))
            return
        opening = self._data.index(b"(", self._spans.of(node.name)[1]) + 1
        tail = ", " if params.star_kwarg is not None else ""
        self.edits.append(Edit(opening, opening, f"{BUFFER}=None{tail}"))

    def _parameter_end(self, parameter: cst.Param) -> int:
        """End of a parameter with its annotation and default; libcst's span of it is the name alone."""
        last: cst.BaseExpression = parameter.name
        if parameter.default is not None:
            last = parameter.default
        elif parameter.annotation is not None:
            last = parameter.annotation.annotation
        end = self._spans.of(last)[1]
        for _ in last.rpar:
            end = self._data.index(b")", end) + 1
        return end

    def launches(self, small: cst.BaseSmallStatement, function: cst.FunctionDef, kernels: dict[str, str]) -> None:
        """Kernel calls in this statement: the buffer is passed on by keyword, so mangled kernel names do not change."""
        for call in _kernel_calls(small, kernels):
            func = call.func
            name = func.attr.value if isinstance(func, cst.Attribute) else calls.dotted(func)
            if call.args:
                end, lead = self._spans.of(call.args[-1])[1], ", "
            else:
                end, lead = self._spans.of(call)[1] - 1, ""
            self.edits.append(Edit(end, end, f"{lead}**_as.hand({BUFFER})"))
            self.threaded.add(name)
            self._hosts[id(function)] = function

    def thread_hosts(self) -> None:
        """Give every function that launches a kernel the buffer as a parameter."""
        for host in self._hosts.values():
            self._add_parameter(host)


def decorators(function: cst.FunctionDef) -> list[str]:
    """Dotted names of a function's decorators, calls unwrapped."""
    nodes = (item.decorator for item in function.decorators)
    return [calls.dotted(node.func if isinstance(node, cst.Call) else node) for node in nodes]


def is_kernel(function: cst.FunctionDef) -> bool:
    """True for a function decorated as a kernel."""
    return any(_KERNEL.match(text) for text in decorators(function))


def has_buffer(function: cst.FunctionDef) -> bool:
    """True for a function with a parameter of the buffer's name: its author passes the buffer on."""
    return any(parameter.name.value == BUFFER for parameter in parameters(function.params))


def parameters(params: cst.Parameters) -> tuple[cst.Param, ...]:
    """All parameters in the order of the signature."""
    star = (params.star_arg,) if isinstance(params.star_arg, cst.Param) else ()
    rest = (params.star_kwarg,) if params.star_kwarg is not None else ()
    return (*params.posonly_params, *params.params, *star, *params.kwonly_params, *rest)


def _is_prologue(statement: cst.CSTNode) -> bool:
    """True for a docstring or a `__future__` import, which must stay first in a module."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    first = statement.body[0]
    if isinstance(first, cst.ImportFrom):
        return isinstance(first.module, cst.Name) and first.module.value == "__future__"
    return _is_string(first)


def _is_string(small: cst.BaseSmallStatement) -> bool:
    """True for a string that stands alone: a docstring, where it comes first."""
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def _kernel_calls(node: cst.CSTNode, kernels: dict[str, str]) -> Iterator[cst.Call]:
    """Calls of `self.<kernel>(...)` or `<kernel>(...)`, wherever they stand in a statement."""
    if isinstance(node, cst.Call):
        func = node.func
        is_method = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.attr.value in kernels
        if is_method or (isinstance(func, cst.Name) and func.value in kernels):
            yield node
    for child in node.children:
        if not isinstance(child, WHITESPACE):
            yield from _kernel_calls(child, kernels)
