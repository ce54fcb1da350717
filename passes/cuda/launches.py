# SPDX-License-Identifier: Apache-2.0
"""Kernel launches in host code, by triple angle brackets, by the runtime's and the driver's calls, and through launchers.

Every `<<<` of the text counts, whether or not the parser made a launch of it. CUDA C++ Programming Guide, "Execution
Configuration": grid, block, shared-memory bytes, stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tree_sitter import Node

from autostamp.passes.cuda.functions import Call, Function, bare, text_of
from autostamp.passes.cuda.nodes import LOOPS, chain_to, inner_start, is_list
from autostamp.passes.cuda.source import Source
from autostamp.passes.cuda.views import closing

FunctionAt = Callable[[int], Function | None]


class LaunchForm(StrEnum):
    """CHEVRON: `k<<<…>>>(…)`. TYPED: cudaLaunchKernelEx, whose arguments keep their types. POINTER: by `void*`, or a launcher."""

    CHEVRON = "<<<>>>"
    TYPED = "cudaLaunchKernelEx"
    POINTER = "a pointer"


@dataclass(frozen=True, slots=True)
class Hook:
    """Where the host's part of a launch goes: before the statement [start, end), in braces where `is_braced`; or, if
    `is_around`, around the grid expression or the call. `is_launcher` marks a call of a function that launches, whose own text
    may have that part.
    """

    start: int
    end: int
    is_braced: bool = False
    is_around: bool = False
    is_launcher: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch at bytes [start, end). `kernel` is the last identifier of what is launched, `closing` the offset of the `)` that
    ends the arguments (-1: none in sight), `count` how many they are (-1: a pack is among them), `stream` an expression that
    is safe to evaluate once more ("": not known). `hook` is None in device code, where the host has no part.
    """

    path: Path
    start: int
    end: int
    line: int
    form: LaunchForm
    kernel: str
    stream: str
    closing: int
    count: int
    hook: Hook | None
    host: str
    is_device: bool


# Of the calls that launch: which argument is the stream, or has it (as a member of that name) behind a pointer.
_STREAM_ARGUMENT = {
    "cudaLaunchKernel": 5,
    "cudaLaunchCooperativeKernel": 5,
    "cuLaunchKernel": 8,
    "cuLaunchCooperativeKernel": 8,
}
_STREAM_MEMBER = {"cudaLaunchKernelEx": "stream", "cudaLaunchKernelExC": "stream", "cuLaunchKernelEx": "hStream"}
# cutlass/include/cutlass/cluster_launch.hpp, cutlass/include/cutlass/kernel_launch.h
LAUNCHERS = frozenset({"launch_kernel_on_cluster", "kernel_launch", "launch_kernel_with_pdl"})
LAUNCHER_CLASSES = frozenset({"ClusterLauncher"})
# Calls that name a kernel only to ask about it or to set an attribute; they take its type as it is.
QUERIES = frozenset(
    (
        *("cudaFuncSetAttribute", "cudaFuncGetAttributes", "cudaFuncSetCacheConfig", "cudaFuncSetSharedMemConfig"),
        *("cudaFuncGetName", "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaOccupancyMaxActiveClusters"),
        *("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "cudaOccupancyMaxPotentialBlockSize"),
        *("cudaOccupancyMaxPotentialBlockSizeWithFlags", "cudaOccupancyMaxPotentialBlockSizeVariableSMem"),
        *("cudaOccupancyMaxPotentialClusterSize", "cudaOccupancyAvailableDynamicSMemPerBlock"),
        *("cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags",),
    )
)
_CHEVRON = re.compile(rb"<<<(?!<)")
_TEMPLATE_NAME = re.compile(rb"[A-Za-z_]\w*+\s*+\Z")
_CALLEE = re.compile(rb"(?:[A-Za-z_]\w*\s*(?:::|\.|->)\s*)*(?:template\s+)?([A-Za-z_]\w*)\s*\Z")
_EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|\b(?:new|delete|throw|co_await)\b|[{}\[\]]\s*\(")
_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\(")
_GETTER = re.compile(r"(?i)get|current|stream|raw|handle|value|data|ptr|static_cast|reinterpret_cast|cast|move_stream")
_WORD = re.compile(r"[A-Za-z_]\w*+")
_BODY_OWNERS = LOOPS | {"if_statement", "else_clause"}


def launches(
    path: Path, source: Source, calls: Iterable[Call], function_at: FunctionAt, kernel_names: frozenset[str]
) -> tuple[Launch, ...]:
    """All launches of a file in source order. `calls` are those of its functions, `kernel_names` the kernels that are known."""
    found = [
        *_chevrons(path, source, function_at),
        *(
            each
            for call in calls
            if (each := _call(path, source, call, function_at, kernel_names)) is not None
        ),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: each.start))


def is_repeatable(text: str) -> bool:
    """True when evaluating a stream's expression once more than the author does changes nothing."""
    if not text or _EFFECT.search(text):
        return False
    return all(_GETTER.search(match[1]) for match in _CALL.finditer(text))


def directive_spans(code: bytes) -> list[tuple[int, int]]:
    """The preprocessor lines of a file, continuation lines included."""
    return [match.span() for match in _DIRECTIVE.finditer(code)]


_DIRECTIVE = re.compile(rb"^[ \t]*+\#[^\n\\]*+(?:\\(?:\r?\n)?[^\n\\]*+)*+", re.MULTILINE)


def _chevrons(path: Path, source: Source, function_at: FunctionAt) -> Iterable[Launch]:
    if b"<<<" not in source.code:
        return
    directives = directive_spans(source.code)
    for match in _CHEVRON.finditer(source.code):
        at = match.start()
        in_directive = next((span for span in directives if span[0] <= at < span[1]), None)
        if in_directive is not None:
            macro = next((body for body in source.macro_bodies if body.start <= at < body.end), None)
            if macro is None:
                continue
        node = None if in_directive is not None else _node_of(source, at)
        function = None if in_directive is not None else function_at(at)
        yield _chevron(path, source, at, node, function)


def _node_of(source: Source, at: int) -> Node | None:
    """The call whose execution configuration begins at `at`, when the parser found one."""
    node = source.tree.root_node.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type != "kernel_call_syntax":
        node = node.parent if node.start_byte >= at - 1 else None
    if node is None or node.start_byte != at or node.has_error:
        return None
    return node.parent if node.parent is not None and node.parent.type == "call_expression" else None


def _chevron(path: Path, source: Source, at: int, node: Node | None, function: Function | None) -> Launch:
    code = source.code
    configuration, behind = split(code, at + 3, b">>>")
    opened = behind + len(code[behind:]) - len(code[behind:].lstrip())
    arguments: list[tuple[int, int]] = []
    closed = -1
    if behind > 0 and code[opened : opened + 1] == b"(":
        closed = closing(code, opened) - 1
        arguments, _ = split(code, opened + 1, b")")
    if node is not None:
        syntax = next(child for child in node.children if child.type == "kernel_call_syntax")
        configuration = [(each.start_byte, each.end_byte) for each in syntax.named_children if each.type != "comment"]
        given = node.child_by_field_name("arguments")
        if given is not None:
            arguments = [(each.start_byte, each.end_byte) for each in given.named_children if each.type != "comment"]
            closed = given.end_byte - 1
    texts = [text_of(source, *span) for span in configuration]
    name, start = _callee(code, at)
    end = max(closed + 1, at + 3)
    is_device = function is not None and is_device_only(function)
    hook = None if is_device else _hook(source, node, configuration, texts)
    stream = texts[3] if len(texts) > 3 and is_repeatable(texts[3]) else ""
    return Launch(
        path, start, end, _line(source, start), LaunchForm.CHEVRON, name, stream, closed,
        _count([text_of(source, *span) for span in arguments]), hook, "" if function is None else function.qualified, is_device,
    )  # fmt: skip


def is_device_only(function: Function) -> bool:
    """True for a function that says so itself. What callers of its name are says nothing of one that launches: host code calls
    its functions `run` as device code does.
    """
    qualifiers = function.qualifiers
    return "__global__" in qualifiers or ("__device__" in qualifiers and "__host__" not in qualifiers)


def _count(texts: Sequence[str]) -> int:
    return -1 if any(text.endswith("...") or text == "__VA_ARGS__" for text in texts) else len(texts)


def _hook(source: Source, node: Node | None, configuration: list[tuple[int, int]], texts: list[str]) -> Hook | None:
    if node is not None and (hook := statement_of(source, node)) is not None:
        return hook
    if not configuration or texts[0].startswith("{") or "__VA_ARGS__" in texts[0] or len(texts) < 2:
        return None
    return Hook(*configuration[0], is_around=True)


def statement_of(source: Source, node: Node) -> Hook | None:
    """The innermost statement around an expression before which another statement can stand."""
    chain = chain_to(source.tree.root_node, node)
    for at in range(len(chain) - 1, inner_start(chain), -1):
        each, above = chain[at], chain[at - 1]
        if each.type in ("ERROR", "preproc_if", "preproc_ifdef"):
            return None
        if is_list(chain, at - 1) and each.type != "case_statement" and not _is_label(above, each):
            return Hook(each.start_byte, each.end_byte)
        if above.type in _BODY_OWNERS and each.type.endswith("_statement") and each.type != "compound_statement":
            return Hook(each.start_byte, each.end_byte, is_braced=True)
    return None


def _launcher(source: Source, call: Call, hook: Hook) -> Hook:
    """The part of a launcher lasts as long as its call: a declaration must not be put in braces, nor should whole bodies be."""
    statement = source.tree.root_node.descendant_for_byte_range(hook.start, hook.end)
    while statement is not None and (statement.start_byte, statement.end_byte) != (hook.start, hook.end):
        statement = statement.parent
    if statement is not None and statement.type in ("expression_statement", "return_statement"):
        return Hook(hook.start, hook.end, is_braced=True, is_launcher=True)
    node = call.node
    while (above := node.parent) is not None and above.type == "call_expression" and _is_function_of(node, above):
        node = above
    return Hook(node.start_byte, node.end_byte, is_around=True, is_launcher=True)


def _is_function_of(node: Node, call: Node) -> bool:
    """True for `launcher(k)` in `launcher(k)(arguments)`."""
    return call.child_by_field_name("function") == node


def _is_label(above: Node, node: Node) -> bool:
    """The value of `case value:` is a child of the case, but no statement."""
    return above.type == "case_statement" and above.child_by_field_name("value") == node


def _call(
    path: Path, source: Source, call: Call, function_at: FunctionAt, kernel_names: frozenset[str]
) -> Launch | None:
    owner = call.qualifier.split("::")[-1]
    named = ""
    if call.name in QUERIES or call.name.endswith("_cast") or source.code.find(b"<<<", call.start, call.end) >= 0:
        return None
    if call.name not in _STREAM_ARGUMENT and call.name not in _STREAM_MEMBER:
        named = next((name for text in call.arguments if (name := kernel_of(text)) in kernel_names), "")
        if not named and call.name not in LAUNCHERS and owner not in LAUNCHER_CLASSES:
            return None
    function = function_at(call.start)
    if function is not None and is_device_only(function):
        return None
    arguments = call.arguments
    form = LaunchForm.POINTER
    if call.name == "cudaLaunchKernelEx" and len(arguments) > 1:
        form, named = LaunchForm.TYPED, kernel_of(arguments[1])
    elif call.name in _STREAM_ARGUMENT and arguments:
        named = kernel_of(arguments[0])
    stream = _stream(call)
    inner = call.node.child_by_field_name("arguments")
    closed = -1 if inner is None else inner.end_byte - 1
    is_whole = source.tree.root_node.descendant_for_byte_range(call.start, call.end) is not None
    hook = statement_of(source, call.node) if is_whole and call.start == call.node.start_byte else None
    if hook is not None and call.name not in _STREAM_ARGUMENT and call.name not in _STREAM_MEMBER:
        hook = _launcher(source, call, hook)
    return Launch(
        path, call.start, call.end, _line(source, call.start), form, named, stream, closed,
        _count(arguments[2:]), hook, "" if function is None else function.qualified, is_device=False,
    )  # fmt: skip


def _stream(call: Call) -> str:
    text = ""
    if (at := _STREAM_ARGUMENT.get(call.name)) is not None and at < len(call.arguments):
        text = call.arguments[at]
    elif (member := _STREAM_MEMBER.get(call.name)) is not None and call.arguments:
        config = call.arguments[0]
        text = f"{config[1:].strip()}.{member}" if config.startswith("&") else f"({config})->{member}"
    return text if is_repeatable(text) else ""


def kernel_of(text: str) -> str:
    """The last identifier of `&ns::kernel<T>`, of `(void*)kernel` and of `reinterpret_cast<const void*>(&kernel)`."""
    text = text.strip()
    while (match := re.match(r"(?:\w+_cast\s*<[^()]*>\s*|\([^()]*\*\s*\))?\(?\s*&?\s*", text)) and match.end():
        text = text[match.end() :]
    name = bare(text.rstrip(") ")).split("::")[-1]
    return name if _WORD.fullmatch(name) else ""


def _callee(code: bytes, at: int) -> tuple[str, int]:
    """The last identifier of what stands before `<<<` at `at`, and where the expression begins."""
    end = at
    while end and code[end - 1 : end].isspace():
        end -= 1
    if code[end - 1 : end] == b">":
        end = _opening_angle(code, end)
    match = _CALLEE.search(code, max(0, end - 400), end)
    if match is None:
        return "", at
    return match[1].decode("utf-8", "surrogateescape"), match.start()


def _opening_angle(code: bytes, end: int) -> int:
    """Where the template arguments that end before `end` begin; `end` itself when they cannot be followed."""
    depth = 0
    inner = 0
    for position in range(end - 1, max(-1, end - 4000), -1):
        character = code[position]
        if character in b")]}":
            inner += 1
        elif character in b"([{":
            inner -= 1
            if inner < 0:
                return end
        elif inner == 0 and character == 0x3E and code[position - 1 : position] != b"-":
            depth += 1
        elif inner == 0 and character == 0x3C:
            depth -= 1
            if depth == 0:
                return position
        elif inner == 0 and character == 0x3B:
            return end
    return end


def split(code: bytes, start: int, closer: bytes) -> tuple[list[tuple[int, int]], int]:
    """Spans between top-level commas up to `closer`, and the offset behind it (0 when it is not found).

    A `<` opens template arguments where a name stands right before it and a `>` that is followed by `(`, `{`, `::`, `,` or the
    closer ends them.
    """
    spans: list[tuple[int, int]] = []
    depth = 0
    begin = at = start
    while at < len(code):
        character = code[at : at + 1]
        if depth == 0 and code.startswith(closer, at):
            if code[begin:at].strip():
                spans.append(_trimmed(code, begin, at))
            return spans, at + len(closer)
        if character in b"([{":
            depth += 1
        elif character in b")]}":
            depth -= 1
            if depth < 0:
                return spans, 0
        elif character == b"<" and (end := _template_end(code, start, at)):
            at = end
            continue
        elif character == b"," and depth == 0:
            spans.append(_trimmed(code, begin, at))
            begin = at + 1
        elif character == b";" and depth == 0:
            return spans, 0
        at += 1
    return spans, 0


_ANGLES = re.compile(rb"<(?:[^<>;{}]|<(?:[^<>;{}]|<[^<>;{}]*>)*>)*>(?=\s*(?:[({,)]|::|>>>))")


def _template_end(code: bytes, start: int, at: int) -> int:
    if not _TEMPLATE_NAME.search(code, max(start, at - 200), at):
        return 0
    match = _ANGLES.match(code, at)
    return match.end() if match else 0


def _trimmed(code: bytes, start: int, end: int) -> tuple[int, int]:
    text = code[start:end]
    return start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def _line(source: Source, at: int) -> int:
    return source.original.count(b"\n", 0, at) + 1
