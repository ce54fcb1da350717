# SPDX-License-Identifier: Apache-2.0
"""The texts of operands: whether one may be evaluated a second time, what it names, and how a reader would write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from autostamp.passes.cuda.functions import Function, Index
from autostamp.passes.cuda.macros import Definition

_TOKEN = re.compile(
    r"""
      (?P<name>[A-Za-z_]\w*+)
    | (?P<number>\.?\d(?:['\w.]|(?<=[eEpP])[+-])*+)
    | (?P<bad>\+\+|--|(?:<<|>>|[-+*/%&|^])=|(?<![=!<>])=(?!=)|["'\#;@\\$`]|<<<|>>>)
    | (?P<op>->\*?|\.\.\.|\.\*?|::|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:,\[\](){}])
    """,
    re.VERBOSE,
)
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "bit_cast", "__builtin_bit_cast", "dynamic_cast"})
_NEVER = frozenset(
    (
        *("new", "delete", "throw", "co_await", "co_yield", "asm", "move", "forward", "exchange", "getAndFlip"),
        *("return", "goto", "if", "while", "for", "typeid"),
    )
)
# Functions of CUDA, CUTLASS and CuTe that only compute: the state's and the tensors' accessors, address conversions, and
# reads of special registers (cutlass/include/cutlass/pipeline/sm90_pipeline.hpp, cute/arch, cute/pointer.hpp).
_PURE = frozenset(
    (
        *("index", "phase", "count", "data", "get", "begin", "size", "raw", "offset", "value", "ptr", "address"),
        *("__cvta_generic_to_shared", "cast_smem_ptr_to_uint", "cast_smem_ptr_to_uint32", "smem_u32addr", "smem_u32"),
        *("smem_ptr", "smem_ptr_to_uint", "get_smem_ptr", "raw_pointer_cast", "addressof", "native_handle"),
        *("barrier_native_handle", "producer_get_barrier", "recast_ptr", "make_smem_ptr", "elem", "at"),
        *("uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t", "size_t"),
        *("uintptr_t", "int", "unsigned", "bool", "char", "long", "short", "auto", "sizeof", "alignof"),
        *("threadIdx", "blockIdx", "min", "max", "canonical_warp_idx", "canonical_warp_idx_sync", "canonical_lane_idx"),
        *("canonical_warp_group_idx", "warpid", "laneid", "groupid", "Int", "get_lane_id", "get_warp_id"),
    )
)
_TYPE = re.compile(
    r"\(\s*(?:const\s+|volatile\s+|unsigned\s+|signed\s+)*[\w:]+\s*(?:<[^()]*>)?\s*(?:const\s*)?[*&\s]*\)"
)
_PLAIN_TYPE = re.compile(r"\b(?:u?int\w*|unsigned|size_t|char|bool|long|short|void|float|double|\w+_t)\b|[*&]\s*\)")
_FREE_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_TIGHT = re.compile(r"\s*(\.(?!\d)|->|::)\s*|(?<=[\[(])\s+|\s+(?=[\])\[])|(?<=\w)\s+(?=\()")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def one_line(text: str) -> str:
    """The text without comments and line breaks."""
    return " ".join(_COMMENTS.sub(" ", text).split())


def names_in(text: str) -> set[str]:
    """Identifiers of an expression that are not members of something that stands before them."""
    return set(_FREE_NAME.findall(_squeezed(text)))


@dataclass(slots=True)
class Purity:
    """Decides whether evaluating an expression once more can be seen. `macros` are the function-like ones that are known.

    Overloaded operators count as computing only: what a kernel indexes barriers with does.
    """

    index: Index
    macros: Mapping[str, tuple[Definition, ...]] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)

    def is_pure(self, text: str) -> bool:
        """True for names, members, subscripts, arithmetic, casts, literals, and calls that are known only to compute."""
        return bool(text) and _check(text, self._is_pure_call)

    def _is_pure_call(self, name: str) -> bool:
        if name in _CASTS or name in _PURE:
            return True
        if name not in self._known:
            self._known[name] = False  # what calls itself is not pure
            self._known[name] = self._computes(name)
        return self._known[name]

    def _computes(self, name: str) -> bool:
        if name in self.macros:
            return all(self.is_pure(each.body.decode("utf-8", "replace")) for each in self.macros[name])
        functions = self.index.by_name.get(name, ())
        return bool(functions) and all(self._returns_pure(function) for function in functions)

    def _returns_pure(self, function: Function) -> bool:
        if function.asms:
            return False
        start, end = function.body
        body = one_line(function.source.uncommented[start + 1 : end - 1].decode("utf-8", "replace"))
        match = re.fullmatch(r"return\b(?P<value>[^;{}]+);", body)
        return match is not None and self.is_pure(match["value"].strip())


def _check(text: str, is_pure_call: Callable[[str], bool]) -> bool:
    """Walk the tokens of an expression; template arguments of a call are passed over, they are never evaluated."""
    kind, token, position = "", "", 0
    callee = ""
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            return False
        previous_kind, previous, end = kind, token, match.end()
        kind, token = match.lastgroup or "op", match[0]
        if kind == "bad" or token in _NEVER or token == "...":
            return False
        if token == "[" and not _ends_value(previous_kind, previous) and previous != ">":
            return False  # a lambda
        if token == "(" and previous == ")":
            group = text[_opening(text, text.rindex(")", 0, position)) : position].rstrip()
            if not (_TYPE.fullmatch(group) and _PLAIN_TYPE.search(group)):
                return False
        elif token in ("(", "{") and not _is_pure_group(text, position, previous_kind, previous, callee, is_pure_call):
            return False
        callee = ""
        if kind == "name":
            callee = token
            closed = _template_end(text, end)
            if closed > 0:
                kind, token, end = "op", ">", closed
        position = end
    return True


def _is_pure_group(
    text: str, position: int, previous_kind: str, previous: str, callee: str, is_pure_call: Callable[[str], bool]
) -> bool:
    """True for parentheses or braces that group, or that are the arguments of something which only computes."""
    is_braces = text[position] == "{"
    if callee and (previous_kind == "name" or previous == ">"):
        is_empty = is_braces and text[position + 1 :].lstrip().startswith("}")
        return is_empty or is_pure_call(callee)
    return not is_braces and not _ends_value(previous_kind, previous)


def _ends_value(kind: str, token: str) -> bool:
    return kind in ("name", "number") or token in ("]", ")", "}")


def _template_end(text: str, position: int) -> int:
    """The end of template arguments that a call or a braced initialiser follows; -1 where `<` compares."""
    rest = text[position:]
    if not rest.lstrip().startswith("<"):
        return -1
    depth = 0
    for at in range(position + len(rest) - len(rest.lstrip()), len(text)):
        depth += (text[at] == "<") - (text[at] == ">" and text[at - 1] != "-")
        if depth == 0:
            return at + 1 if text[at + 1 :].lstrip().startswith(("(", "{")) else -1
        if text[at] in ";{":
            break
    return -1


def _opening(text: str, closing: int) -> int:
    depth = 0
    for at in range(closing, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    return 0


_CAST_CALL = re.compile(
    r"^(?:\w+::)*(?:(?:static|reinterpret|const)_cast\s*<.*?>|__cvta_generic_to_shared|cast_smem_ptr_to_uint(?:32)?"
    r"|smem_u32addr|smem_u32|smem_ptr_to_uint|raw_pointer_cast|make_smem_ptr|u?int(?:32|64)_t|int|unsigned)\s*(?=\()"
)
_INNER_CAST = re.compile(r"\b(?:static|reinterpret|const)_cast\s*<[^()]*>\s*\(([^()]*)\)")
_C_CAST = re.compile(
    r"^\(\s*(?:const\s+|volatile\s+|unsigned\s+|signed\s+|long\s+)*[\w:]+(?:\s*<[^()]*>)?(?:\s*[*&])*\s*\)\s*(?=[\w(&*])"
)


def peeled(text: str) -> str:
    """The expression without casts, address conversions, `&`, `*`, `this->` and parentheses around the whole."""
    text = text.strip()
    while True:
        shorter = text.lstrip("&*").strip().removeprefix("this->").strip()
        if (match := _CAST_CALL.match(shorter)) and _spans(shorter, match.end()):
            shorter = shorter[match.end() :]
        elif (cast := _C_CAST.match(shorter)) and _PLAIN_TYPE.search(cast[0]):
            shorter = shorter[cast.end() :]
        if shorter.startswith("(") and _spans(shorter, 0):
            shorter = shorter[1:-1].strip()
        if shorter == text:
            return text
        text = shorter


def _spans(text: str, opening: int) -> bool:
    """True when the bracket at `opening` is closed by the last character."""
    return text.endswith(")") and _opening(text, len(text) - 1) == opening


def _mark(match: re.Match[str]) -> str:
    return match[1] or ""


def _squeezed(text: str) -> str:
    return _TIGHT.sub(_mark, one_line(text))


def label(text: str) -> str:
    """How a report names a barrier operand: without casts and addresses, on one line."""
    short = peeled(one_line(text))
    while (plain := _INNER_CAST.sub(r"\1", short)) != short:
        short = plain
    return _TIGHT.sub(_mark, peeled(short))
