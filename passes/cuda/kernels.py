# SPDX-License-Identifier: Apache-2.0
"""The kernels of a file: every `__global__` definition, numbered from 1 in source order, those in macro bodies included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tree_sitter import Node

from autostamp.passes.cuda.functions import Function
from autostamp.passes.cuda.macros import Definition, definitions
from autostamp.passes.cuda.source import MacroBody, Source
from autostamp.passes.cuda.views import closing

_NAME_BEFORE = re.compile(rb"([A-Za-z_][\w#\s]*?)(?:\s*<[^<>;{}]*>)?\s*\Z")
_AFTER_LIST = re.compile(rb"\s*+(?:[A-Za-z_]\w*+\s*+)*+\{")
_LISTS = re.compile(rb"\s*+(?:\([^(){};]*+(?:\([^(){};]*+\)[^(){};]*+)*+\)\s*+)?\{")
_HEAD_NAME = re.compile(rb"([A-Za-z_]\w*+)\s*+\([^()]*+\)?\s*+\Z|([A-Za-z_]\w*+)\s*+\Z")
_VOID = re.compile(rb"\s*+void\s*+\Z")


@dataclass(frozen=True, slots=True)
class ParameterList:
    """The parameters of a kernel: `closing` is the offset of the `)`, `required` counts those without a default value.

    `is_void` marks `(void)`, `is_open` a list that ends in a pack or in `...`.
    """

    closing: int
    count: int
    required: int
    is_void: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """One definition. `body` is the offset behind the opening brace.

    `made_by` is the macro that spells out its head, if one does. `function` is None where the parser saw none; `text` is then
    what its body holds.
    """

    path: Path
    number: int
    name: str
    qualified: str
    start: int
    body: int
    parameters: ParameterList | None
    function: Function | None
    made_by: str = ""
    text: bytes = b""
    is_extern_c: bool = False


def kernels(
    path: Path, source: Source, functions: Sequence[Function], heads: Mapping[str, Definition]
) -> tuple[Kernel, ...]:
    """All kernels that `source` defines. `functions` are those of the file, `heads` the macros that begin a kernel."""
    found: list[Kernel] = []
    for function in functions:
        if function.is_kernel:
            name = _name_node(function.node)
            found.append(
                Kernel(
                    path,
                    0,
                    function.name,
                    function.qualified,
                    function.start if name is None else name.start_byte,
                    function.body[0] + 1,
                    parameter_list(source, function.node),
                    function,
                    is_extern_c=is_extern_c(source, function.node),
                )
            )
    for macro in source.macro_bodies:
        found += _in_macro(path, source, macro)
    if heads:
        known = {kernel.body for kernel in found}
        found += [each for each in _behind_heads(path, source, functions, heads) if each.body not in known]
    found.sort(key=lambda each: each.start)
    return tuple(replace(each, number=number) for number, each in enumerate(found, 1))


def kernel_heads(sources: Iterable[Source]) -> dict[str, Definition]:
    """Function-like macros that stand for the head of a kernel without its body: `#define DEF(name) __global__ void name(…)`."""
    found = {}
    for source in sources:
        words = _globals(source)
        for definition in definitions(source.uncommented):
            if definition.parameters is not None and b"{" not in definition.body and words.search(definition.body):
                found[definition.name] = definition
    return found


def _globals(source: Source) -> re.Pattern[bytes]:
    words = [b"__global__", *(name.encode() for name in sorted(source.macros.globals))]
    return re.compile(rb"(?<!\w)(?:" + b"|".join(map(re.escape, words)) + rb")(?!\w)")


def _behind_heads(
    path: Path, source: Source, functions: Sequence[Function], heads: Mapping[str, Definition]
) -> Iterable[Kernel]:
    """Kernels whose head a macro spells out: `DEFINE(name, …) {` and `DEFINE(name)(…) {`."""
    pattern = re.compile(rb"(?<!\w)(" + b"|".join(re.escape(name.encode()) for name in sorted(heads)) + rb")\s*+\(")
    bodies = {function.body[0]: function for function in functions}
    for match in pattern.finditer(source.masked):
        end = closing(source.code, match.end() - 1)
        arguments = source.code[match.end() : end - 1].split(b",") if end > 0 else []
        following = _LISTS.match(source.code, end) if end > 0 else None
        if following is None:
            continue
        brace = following.end() - 1
        name = _named_by(heads[match[1].decode()], arguments)
        function = bodies.get(brace)
        last = closing(source.code, brace)
        text = b"" if function is not None else source.code[brace : last if last > 0 else None]
        yield Kernel(
            path, 0, name, name, match.start(), brace + 1, None, function, made_by=match[1].decode(), text=text
        )


def _named_by(head: Definition, arguments: Sequence[bytes]) -> str:
    """The kernel's name: the argument that stands before the parameter list in the macro, else its first one."""
    names = [each.decode("utf-8", "surrogateescape").strip() for each in arguments]
    match = _HEAD_NAME.search(head.body)
    parameters = head.parameters or ()
    word = (match[1] or match[2]).decode() if match is not None else ""
    if word in parameters and parameters.index(word) < len(names):
        return names[parameters.index(word)]
    return names[0] if names else ""


def parameter_list(source: Source, node: Node) -> ParameterList | None:
    """The parameters of a definition or declaration; None where the parser did not find the list whole."""
    declarator = function_declarator(node)
    listed = None if declarator is None else declarator.child_by_field_name("parameters")
    if listed is None or source.code[listed.end_byte - 1 : listed.end_byte] != b")" or listed.has_error:
        return None
    given = [child for child in listed.named_children if child.type != "comment"]
    text = source.code[listed.start_byte + 1 : listed.end_byte - 1]
    is_void = len(given) == 1 and _VOID.match(text) is not None
    is_open = any(child.type == "variadic_parameter_declaration" for child in given) or b"..." in text
    count = 0 if is_void else len(given)
    required = sum(child.type != "optional_parameter_declaration" for child in given[:count])
    if not count and text.strip() and not is_void:
        return None
    return ParameterList(listed.end_byte - 1, count, required, is_void, is_open)


def function_declarator(node: Node) -> Node | None:
    """The innermost declarator with a parameter list, on the way from a definition or declaration to its name."""
    found = None
    inner = node.child_by_field_name("declarator")
    while inner is not None:
        if inner.type == "function_declarator":
            found = inner
        inner = inner.child_by_field_name("declarator")
    return found


def is_extern_c(source: Source, node: Node) -> bool:
    """True inside `extern "C"`, so under the name by which a driver finds it."""
    outer = node.parent
    while outer is not None:
        if outer.type == "linkage_specification" and source.text(outer.children[1]) == '"C"':
            return True
        outer = outer.parent
    return 'extern "C"' in source.qualifiers_before(node)


def _name_node(node: Node) -> Node | None:
    declarator = function_declarator(node)
    return None if declarator is None else declarator.child_by_field_name("declarator")


def _in_macro(path: Path, source: Source, macro: MacroBody) -> Iterable[Kernel]:
    """Kernels that a macro's replacement defines, found as `__global__ … name(…) {`."""
    text = macro.text
    pattern = _globals(source)
    for match in pattern.finditer(text):
        at = match.end()
        while (opened := text.find(b"(", at)) >= 0:
            closed = closing(text, opened)
            if closed < 0:
                break
            body = _AFTER_LIST.match(text, closed)
            name = _NAME_BEFORE.search(text, match.end(), opened)
            if body is not None and name is not None:
                written = name[1].split()[-1].decode("utf-8", "surrogateescape")
                yield Kernel(
                    path,
                    0,
                    written,
                    f"{macro.name}({written})",
                    macro.start + name.start(1),
                    macro.start + body.end(),
                    None,
                    None,
                    made_by=macro.name,
                    text=macro.text,
                )
                break
            at = closed
