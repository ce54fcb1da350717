# SPDX-License-Identifier: Apache-2.0
"""What the `#define`s of a project teach about names that a parser without a preprocessor would trip over.

Such a parser takes `X_DEVICE void f()` for two types in a row. Names whose replacement holds nothing but qualifiers and
attributes are therefore learnt, over all branches of conditionals, until nothing more is. Learnt besides: which macros end
a statement themselves, and how many arguments stand before the last, which may be code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autostamp.passes.cuda.views import closing, views

# Function-like attributes of CUDA C++, GNU, C++11 and MSVC, which a declaration's meaning to us does not depend on.
ATTRIBUTE_CALLS = frozenset(
    (
        *("__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__builtin_align__"),
        *("__align__", "alignas", "__attribute__", "__attribute", "__declspec", "_Pragma", "__pragma"),
    )
)
QUALIFIERS = frozenset(
    (
        *("__host__", "__device__", "__global__", "__forceinline__", "__noinline__", "__inline__", "__inline"),
        *("inline", "static", "constexpr", "consteval", "constinit", "extern", "virtual", "explicit", "friend"),
        *("const", "volatile", "noexcept", "mutable", "register", "thread_local", "__constant__", "__shared__"),
        *("__managed__", "__restrict__", "__restrict", "restrict", "__grid_constant__", "__nv_pure__"),
        *("__forceinline", "__cdecl", "__stdcall", "__extension__", "__volatile__", "override", "final"),
    )
)
_TOKEN = re.compile(rb'\s*+(?:(\[\[.*?\]\])|(extern\s*+"C"|[A-Za-z_]\w*+))', re.DOTALL)
_DEFINE = re.compile(
    rb"^[ \t]*+\#[ \t]*+define[ \t]++([A-Za-z_]\w*+)(\([^)]*+\))?+([^\n\\]*+(?:\\(?:\r?\n|.)?[^\n\\]*+)*+)",
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(r"\.\.\.|[A-Za-z_]\w*+")
# Replacements that are no whole statement, expression or declaration: further parameters, a further branch, a namespace's end.
_FRAGMENT = re.compile(rb",|else\b|[\w\s:]+::\Z|(?:inline\s++)?+(?:namespace\b[\w\s:]*+\{[\s}]*+\Z|[{}\s]++\Z)")
# How each kind of hidden word is spelt in a replacement, and how it is written back. The keys are fields of `Macros`.
_HIDDEN: Mapping[str, tuple[str, frozenset[str]]] = {
    "globals": ("__global__", frozenset({"__global__"})),
    "devices": ("__device__", frozenset({"__device__"})),
    "inlines": (
        "__forceinline__",
        frozenset({"__forceinline__", "__forceinline", "always_inline", "__always_inline__"}),
    ),
    "noinlines": ("__noinline__", frozenset({"__noinline__", "noinline"})),
    "statics": ("static", frozenset({"static"})),
    "externs": ('extern "C"', frozenset({"extern"})),
}


@dataclass(frozen=True, slots=True)
class Macros:
    """What `#define`s taught. Names of qualifiers and attributes first, then of other macros.

    `qualifiers` are object-like and `calls` function-like (blanked with their arguments). `globals`, `devices`, `inlines`,
    `noinlines`, `statics` and `externs` are those which hold, directly or through other macros, the qualifier named.
    `empties` are object-like with no replacement, qualifiers only where a name follows. `statements` need no `;` after
    them. `fragments` are replaced by no whole construct. `leading` tells of function-like macros how many arguments
    stand before the last one or before `...`.
    """

    qualifiers: frozenset[str]
    calls: frozenset[str]
    globals: frozenset[str]
    devices: frozenset[str]
    inlines: frozenset[str]
    noinlines: frozenset[str] = frozenset()
    statics: frozenset[str] = frozenset()
    externs: frozenset[str] = frozenset()
    empties: frozenset[str] = frozenset()
    statements: frozenset[str] = frozenset()
    fragments: frozenset[str] = frozenset()
    leading: Mapping[str, int] = field(default_factory=dict)

    def hidden(self, name: str) -> tuple[str, ...]:
        """The qualifiers that macro `name` hides, as they would be written."""
        return tuple(word for key, (word, _) in _HIDDEN.items() if name in getattr(self, key))


@dataclass(frozen=True, slots=True)
class Definition:
    """One `#define`: `parameters` is None for an object-like macro; the body has comments and continuations blanked.

    `start` and `end` are the byte span of the body in the text that was searched.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: bytes
    start: int
    end: int


def definitions(view: bytes) -> Iterator[Definition]:
    """The `#define`s of a text."""
    for match in _DEFINE.finditer(view):
        body = match[3]
        if b"/" in body:
            body = views(body).uncommented
        body = body.replace(b"\\\r\n", b" \r\n").replace(b"\\\n", b" \n")
        parameters = None if match[2] is None else tuple(_WORD.findall(match[2].decode("latin-1")))
        lead = len(body) - len(body.lstrip())
        text = body.strip()
        start = match.start(3) + lead
        yield Definition(match[1].decode("ascii"), parameters, text, start, start + len(text))


def learn(sources: Iterable[bytes], base: Macros | None = None) -> Macros:
    """`base` (by default the built-in table) with what the `#define`s of `sources` add, all branches of `#if` included.

    A name is learnt when all its definitions that were seen agree: for a qualifier, each holds nothing but qualifiers,
    attributes, `[[…]]`, `_Pragma` and other learnt names. Names of `base` stay.
    """
    found: dict[str, list[Definition]] = {}
    for source in sources:
        for definition in definitions(source):
            if definition.name not in QUALIFIERS and definition.name not in ATTRIBUTE_CALLS:
                found.setdefault(definition.name, []).append(definition)
    macros = BUILTIN if base is None else base
    if not found:
        return macros
    while True:
        extended = _with_qualifiers(macros, found)
        if extended == macros:
            return _with_statements(macros, found)
        macros = extended


def _with_qualifiers(macros: Macros, found: Mapping[str, list[Definition]]) -> Macros:
    new = {key: set(getattr(macros, key)) for key in ("qualifiers", "calls", "empties", *_HIDDEN)}
    for name, candidates in found.items():
        if not _is_one_kind(candidates) or not all(_is_attribute(each.body, macros) for each in candidates):
            continue
        is_object = candidates[0].parameters is None
        if not any(each.body for each in candidates):
            if is_object:
                new["empties"].add(name)
            continue
        new["qualifiers" if is_object else "calls"].add(name)
        words = {word for each in candidates for word in _WORD.findall(each.body.decode("latin-1"))}
        for key, (_, spellings) in _HIDDEN.items():
            if words & spellings or words & new[key]:
                new[key].add(name)
    fields: dict[str, Any] = {key: frozenset(names) for key, names in new.items()}
    return replace(macros, **fields)


def _with_statements(macros: Macros, found: Mapping[str, list[Definition]]) -> Macros:
    statements, fragments, leading = set(macros.statements), set(macros.fragments), dict(macros.leading)
    for name, candidates in found.items():
        if not _is_one_kind(candidates) or name in macros.qualifiers or name in macros.calls:
            continue
        bodies = [each.body for each in candidates if each.body]
        if bodies and all(_FRAGMENT.match(body) for body in bodies):
            fragments.add(name)
        elif bodies and all(body.endswith((b";", b"}")) for body in bodies):
            statements.add(name)
        counts = {len(each.parameters) for each in candidates if each.parameters is not None}
        if len(counts) == 1:
            leading[name] = max(0, counts.pop() - 1)
    return replace(
        macros,
        statements=frozenset(statements),
        fragments=frozenset(fragments),
        leading=leading,
    )


def _is_one_kind(candidates: list[Definition]) -> bool:
    return len({each.parameters is None for each in candidates}) == 1


def _is_attribute(body: bytes, macros: Macros) -> bool:
    position = 0
    while position < len(body):
        match = _TOKEN.match(body, position)
        if match is None:
            return False
        position = match.end()
        word = "" if match[2] is None else match[2].decode("ascii").removesuffix('"C"').rstrip()
        if word in ATTRIBUTE_CALLS or word in macros.calls:
            opening = position + len(body[position:]) - len(body[position:].lstrip())
            if body[opening : opening + 1] != b"(":
                return False
            position = closing(views(body).code, opening)
            if position < 0:
                return False
            continue
        if word and not any(word in names for names in (QUALIFIERS, macros.qualifiers, macros.empties)):
            return False
    return True


def _builtin(table: Mapping[str, str], calls: Iterable[str]) -> Macros:
    text = "\n".join(f"#define {name} {body}" for name, body in table.items())
    empty: frozenset[str] = frozenset()
    return learn([text.encode()], Macros(empty, frozenset(calls), empty, empty, empty))


_HD = "__host__ __device__"
_VISIBLE = '__attribute__((visibility("default")))'
# Names that projects use without defining them: cutlass/include/cutlass/cutlass.h, cutlass/include/cute/config.hpp,
# pytorch/c10/macros/Macros.h, cccl/libcudacxx/include/cuda/std/__cccl, and host_defines.h and driver_types.h of the toolkit.
BUILTIN = _builtin(
    {
        "CUTLASS_HOST_DEVICE": f"__forceinline__ {_HD}",
        "CUTLASS_DEVICE": "__forceinline__ __device__",
        "CUTLASS_HOST": "__host__",
        "CUTLASS_GLOBAL": "__global__ static",
        "CUTLASS_PRAGMA_UNROLL": '_Pragma("unroll")',
        "CUTLASS_PRAGMA_NO_UNROLL": '_Pragma("unroll 1")',
        "CUTLASS_GEMM_LOOP": '_Pragma("unroll 1")',
        "CUTLASS_GRID_CONSTANT": "__grid_constant__",
        "CUTLASS_LAMBDA_FUNC_INLINE": "__attribute__((always_inline))",
        "CUTLASS_CONSTEXPR_IF_CXX17": "constexpr",
        "CUTE_HOST_DEVICE": f"__forceinline__ {_HD}",
        "CUTE_DEVICE": "__forceinline__ __device__",
        "CUTE_HOST": "__forceinline__ __host__",
        "CUTE_UNROLL": '_Pragma("unroll")',
        "CUTE_NO_UNROLL": '_Pragma("unroll 1")',
        "CUTE_INLINE_CONSTANT": "static const __device__",
        "CUTE_GRID_CONSTANT": "__grid_constant__",
        "C10_HOST_DEVICE": _HD,
        "C10_DEVICE": "__device__",
        "C10_HOST": "__host__",
        "C10_ALWAYS_INLINE": "__attribute__((always_inline)) inline",
        "C10_NOINLINE": "__attribute__((noinline))",
        "C10_UNUSED": "__attribute__((unused))",
        "C10_NODISCARD": "[[nodiscard]]",
        "C10_API": _VISIBLE,
        "TORCH_API": _VISIBLE,
        "_CCCL_HOST_DEVICE": _HD,
        "_CCCL_DEVICE": "__device__",
        "_CCCL_HOST": "__host__",
        "_CCCL_FORCEINLINE": "__forceinline__",
        "_CCCL_API": f"inline {_HD}",
        "_CCCL_DEVICE_API": "inline __device__",
        "_CCCL_HOST_API": "inline __host__",
        "_CCCL_TRIVIAL_API": f"__forceinline__ {_HD}",
        "_CCCL_KERNEL_ATTRIBUTES": "__global__ static",
        "CUDART_CB": "__stdcall",
        "CUDARTAPI": "__stdcall",
        "CUDA_CB": "__stdcall",
        "CUDAAPI": "__stdcall",
        "CURANDAPI": "__stdcall",
    },
    (
        "CUTLASS_ALIGN",
        "CUTE_ALIGNAS",
        "C10_LAUNCH_BOUNDS_0",
        "C10_LAUNCH_BOUNDS_1",
        "C10_LAUNCH_BOUNDS_2",
        "__CUDA_ALIGN__",
    ),
)
