# SPDX-License-Identifier: Apache-2.0
"""Every function of a project with the calls and inline asm that it holds, found by tree queries.

Device code is followed by name: neither types nor overloads are resolved here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tree_sitter import Node, Parser, Query, QueryCursor

from autostamp.passes.cuda.asm_text import asm_parts
from autostamp.passes.cuda.source import LANGUAGE, MacroBody, Source

_QUERY = Query(
    LANGUAGE,
    """
    (function_definition body: (compound_statement)) @function
    (function_definition (try_statement)) @function
    (class_specifier name: (_) body: (_)) @type
    (struct_specifier name: (_) body: (_)) @type
    (union_specifier name: (_) body: (_)) @type
    (namespace_definition body: (_)) @namespace
    (template_declaration) @template
    (call_expression function: (_)) @call
    (gnu_asm_expression) @asm
    """,
)
_PARSER = Parser(LANGUAGE)
_WORD = re.compile(r"[A-Za-z_]\w*+")
_SPACES = re.compile(r"\s+")
_QUALIFIERS = frozenset(
    (
        *("__global__", "__device__", "__host__", "__forceinline__", "__noinline__", "inline", "static", "extern"),
        *("constexpr", "consteval", "virtual", "explicit", "friend", "__launch_bounds__", "__cluster_dims__"),
        *("always_inline", "noinline"),
    )
)
_DECLARATORS = frozenset(
    {"pointer_declarator", "reference_declarator", "parenthesized_declarator", "attributed_declarator", "ERROR"}
)
_MANY = 1 << 16
_FRAGMENT = b"void autostamp_macro(){"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: `name` is empty where it has none, `type` its text without name and default value.

    A pack's type ends in `...`.
    """

    name: str
    type: str
    has_default: bool = False


class Call:
    """A call expression by name. Bytes [start, end) of the original hold it, texts have runs of blanks made one.

    `name` is the last identifier, `qualifier` what stands before `::` (`NamedBarrier` of `NamedBarrier::sync`), `receiver` the
    object before `.` or `->` (`is_arrow` tells which), `template` the explicit template arguments with their angle brackets.
    """

    __slots__ = ("__dict__", "end", "is_arrow", "name", "node", "qualifier", "receiver", "source", "start", "template")

    def __init__(
        self,
        source: Source,
        node: Node,
        name: str,
        qualifier: str = "",
        receiver: str = "",
        template: str = "",
        *,
        is_arrow: bool = False,
        shift: int = 0,
    ) -> None:
        self.source = source
        self.node = node
        self.start = node.start_byte + shift
        self.end = node.end_byte + shift
        self.name = name
        self.qualifier = qualifier
        self.receiver = receiver
        self.template = template
        self.is_arrow = is_arrow

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The arguments' texts, in order."""
        arguments = self.node.child_by_field_name("arguments")
        if arguments is None:
            return ()
        shift = self.start - self.node.start_byte
        return tuple(
            text_of(self.source, child.start_byte + shift, child.end_byte + shift)
            for child in arguments.named_children
            if child.type != "comment"
        )

    def __repr__(self) -> str:
        return f"Call({self.qualifier}|{self.receiver}|{self.name}{self.template}{self.arguments})"


@dataclass(frozen=True, slots=True)
class Asm:
    """An inline asm expression: its literals joined, a gap mark where a macro is spliced in.

    `operands` are the expressions in constraint order, of which the first `outputs` are outputs; `names` are their symbolic
    names, empty where they have none.
    """

    start: int
    end: int
    text: str
    operands: tuple[str, ...]
    outputs: int
    names: tuple[str, ...]
    node: Node


@dataclass(eq=False, slots=True)
class Function:
    """A function definition. `body` spans its braces; `owner` is the last class it is a member of, with no template arguments.

    `qualifiers` are the declaration's specifiers, those that macros hide included. `is_macro` marks a function-like macro
    whose replacement holds code: its nodes are those of a fragment, so only the byte offsets are the file's.
    """

    file: Path
    name: str
    qualified: str
    owner: str
    start: int
    end: int
    body: tuple[int, int]
    parameters: tuple[Parameter, ...]
    qualifiers: frozenset[str]
    is_template: bool
    node: Node
    source: Source
    calls: tuple[Call, ...] = ()
    asms: tuple[Asm, ...] = ()
    template_parameters: tuple[str, ...] = ()
    is_macro: bool = False
    is_called_from_device: bool = False
    _arity: tuple[int, int] | None = None

    @property
    def is_kernel(self) -> bool:
        """True for a `__global__` function."""
        return "__global__" in self.qualifiers

    @property
    def is_device(self) -> bool:
        """True when the body is compiled for the device, as far as names can tell."""
        return (
            "__device__" in self.qualifiers
            or "__global__" in self.qualifiers
            or (self.is_called_from_device and "__host__" not in self.qualifiers)
        )

    @property
    def lines(self) -> int:
        """Lines from the first to the last of the definition."""
        return self.node.end_point.row - self.node.start_point.row + 1

    def accepts(self, count: int) -> bool:
        """True when a call with `count` arguments can mean this function."""
        if self._arity is None:
            is_pack = any(each.type.endswith("...") for each in self.parameters)
            needed = sum(not each.has_default for each in self.parameters)
            self._arity = (0, _MANY) if is_pack else (needed, len(self.parameters))
        return self._arity[0] <= count <= self._arity[1]


@dataclass(frozen=True, slots=True)
class Type:
    """A class, struct or union with a body: `bases` are the last identifiers of its base classes."""

    name: str
    file: Path
    start: int
    end: int
    bases: tuple[str, ...]
    node: Node
    template_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """All functions in file and source order, and by name. Macros are apart: they are called like functions, not stamped.

    `outside` are calls and asm that no function definition holds: in initialisers, or where the parser lost the function.
    """

    functions: tuple[Function, ...]
    by_name: Mapping[str, tuple[Function, ...]]
    macros: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    types: Mapping[str, tuple[Type, ...]] = field(default_factory=dict)
    outside: Mapping[Path, tuple[Call | Asm, ...]] = field(default_factory=dict)


def index(sources: Mapping[Path, Source]) -> Index:
    """Find the functions of all files, and which unqualified ones are device code because of what they hold or who calls them."""
    functions: list[Function] = []
    macros: dict[str, list[Function]] = {}
    types: dict[str, list[Type]] = {}
    outside: dict[Path, tuple[Call | Asm, ...]] = {}
    for path, source in sources.items():
        found = _FileFunctions(path, source)
        functions += found.functions
        for each in found.types:
            types.setdefault(each.name, []).append(each)
        if found.outside:
            outside[path] = tuple(found.outside)
        for macro in _macros(path, source):
            macros.setdefault(macro.name, []).append(macro)
    by_name: dict[str, list[Function]] = {}
    for function in functions:
        by_name.setdefault(function.name, []).append(function)
    frozen = {name: tuple(group) for name, group in by_name.items()}
    _spread_device(functions, frozen)
    return Index(
        tuple(functions),
        frozen,
        {name: tuple(group) for name, group in macros.items()},
        {name: tuple(group) for name, group in types.items()},
        outside,
    )


def text_of(source: Source, start: int, end: int) -> str:
    """Bytes [start, end) of the original without comments, every run of blanks made one."""
    text = source.uncommented[start:end].decode("utf-8", "surrogateescape")
    return " ".join(text.split()) if "\n" in text or "  " in text or "\t" in text else text.strip()


@dataclass(frozen=True, slots=True)
class _Scope:
    end: int
    kind: str
    name: str
    node: Node


class _FileFunctions:
    """One pass over a file: nested scopes by their spans, then each call and asm to its innermost function."""

    def __init__(self, path: Path, source: Source) -> None:
        self.path = path
        self.source = source
        self.functions: list[Function] = []
        self.types: list[Type] = []
        self.outside: list[Call | Asm] = []
        captures = QueryCursor(_QUERY).captures(source.tree.root_node)
        self._scopes(captures)
        self._contents(captures)

    def _scopes(self, captures: Mapping[str, list[Node]]) -> None:
        scopes = [(node.start_byte, -node.end_byte, kind, node) for kind in _SCOPES for node in captures.get(kind, ())]
        scopes.sort(key=lambda scope: scope[:2])
        stack: list[_Scope] = []
        for start, minus_end, kind, node in scopes:
            while stack and stack[-1].end <= start:
                stack.pop()
            name = ""
            if kind == "function":
                function = self._function(node, stack)
                if function is not None:
                    self.functions.append(function)
                    name = function.name
            elif kind != "template":
                named = node.child_by_field_name("name")
                name = "" if named is None else bare(self._text(named))
                if kind == "type":
                    above = self._declared_by(stack)
                    self.types.append(Type(name, self.path, start, -minus_end, self._bases(node), node, above))
            stack.append(_Scope(-minus_end, kind, name, node))

    def _bases(self, node: Node) -> tuple[str, ...]:
        for child in node.named_children:
            if child.type == "base_class_clause":
                bases = (each for each in child.named_children if each.type not in ("access_specifier", "comment"))
                return tuple(bare(self._text(each)).split("::")[-1] for each in bases)
        return ()

    def _function(self, node: Node, stack: list[_Scope]) -> Function | None:
        body = node.child_by_field_name("body")
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type in _DECLARATORS:
            declarator = declarator.child_by_field_name("declarator") or (
                declarator.named_children[-1] if declarator.named_children else None
            )
        if declarator is None or declarator.type != "function_declarator":
            return None
        named = declarator.child_by_field_name("declarator")
        if named is None:
            return None
        path = [part for part in bare(self._text(named)).split("::") if part]
        if not path:
            return None
        scopes = [each.name for each in stack if each.kind in ("namespace", "type") and each.name]
        # A definition outside its class: what stands last before the name may be the class, or only a namespace.
        inner = next((each.name for each in reversed(stack) if each.kind == "type" and each.name), "")
        owner = path[-2] if len(path) > 1 else inner
        parameters = declarator.child_by_field_name("parameters")
        words = _WORD.findall(self.source.qualifiers_before(node))
        span = (node.start_byte, node.end_byte) if body is None else (body.start_byte, body.end_byte)
        return Function(
            file=self.path,
            name=path[-1],
            qualified="::".join((*scopes, *path)),
            owner=owner,
            start=node.start_byte,
            end=node.end_byte,
            body=span,
            parameters=() if parameters is None else tuple(self._parameters(parameters)),
            qualifiers=_QUALIFIERS.intersection(words),
            is_template=any(each.kind == "template" for each in stack),
            node=node,
            source=self.source,
            template_parameters=self._declared_by(stack),
        )

    def _declared_by(self, stack: list[_Scope]) -> tuple[str, ...]:
        """The parameters of the template that is declared right here."""
        if not stack or stack[-1].kind != "template":
            return ()
        parameters = stack[-1].node.child_by_field_name("parameters")
        names = []
        for child in () if parameters is None else parameters.named_children:
            if child.type == "comment":
                continue
            words = _WORD.findall(text_of(self.source, child.start_byte, child.end_byte).split("=")[0])
            names.append(words[-1] if words else "")
        return tuple(names)

    def _parameters(self, node: Node) -> Iterator[Parameter]:
        for child in node.named_children:
            if child.type not in _PARAMETERS:
                continue
            inner = child.child_by_field_name("declarator")
            start, end = child.start_byte, child.end_byte
            default = child.child_by_field_name("default_value")
            if default is not None:
                end = default.start_byte
            while inner is not None and inner.type not in ("identifier", "field_identifier"):
                following = inner.child_by_field_name("declarator")
                if following is None:
                    following = next((each for each in inner.named_children if each.type in _NAMED), None)
                inner = following
            if inner is None:
                text = text_of(self.source, start, end)
            else:
                rest = self.source.uncommented[inner.end_byte : end].decode("utf-8", "surrogateescape")
                text = text_of(self.source, start, inner.start_byte) + " ".join(rest.split())
            text = text.rstrip("= ")
            if child.type == "variadic_parameter_declaration":
                text = text.replace("...", "").strip() + "..."
            name = "" if inner is None else self._text(inner)
            if text == "void" and not name:
                continue
            yield Parameter(name, text, default is not None)

    def _contents(self, captures: Mapping[str, list[Node]]) -> None:
        calls: dict[int, list[Call]] = {}
        asms: dict[int, list[Asm]] = {}
        starts = [function.start for function in self.functions]
        parents = _parents(self.functions)
        for node in captures.get("call", ()):
            call = _call(self.source, node)
            if call is None:
                continue
            at = _innermost(self.functions, starts, parents, node.start_byte)
            if at < 0:
                self.outside.append(call)
            else:
                calls.setdefault(at, []).append(call)
        for node in captures.get("asm", ()):
            asm = _asm(self.source, node)
            at = _innermost(self.functions, starts, parents, node.start_byte)
            if at < 0:
                self.outside.append(asm)
            else:
                asms.setdefault(at, []).append(asm)
        for at, group in calls.items():
            self.functions[at].calls = tuple(sorted(group, key=lambda each: each.start))
        for at, found in asms.items():
            self.functions[at].asms = tuple(sorted(found, key=lambda each: each.start))

    def _text(self, node: Node) -> str:
        return self.source.text(node)


_SCOPES = ("namespace", "template", "type", "function")
_PARAMETERS = frozenset({"parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration"})
_NAMED = frozenset(
    (
        *("identifier", "pointer_declarator", "reference_declarator", "array_declarator", "function_declarator"),
        *("parenthesized_declarator", "variadic_declarator"),
    )
)


def bare(text: str) -> str:
    """A name without blanks and template arguments: `a :: B<T>::f` gives `a::B::f`; operators keep their spelling."""
    if "operator" in text and (match := re.search(r"\boperator\b", text)):
        head = text[: match.start()]
        return (bare(head) if head else "") + "".join(text[match.start() :].split())
    text = _SPACES.sub("", text.replace("template ", ""))
    while "<" in text:
        # Parentheses first: they may hold a comparison.
        shorter = re.sub(r"\([^()]*\)|<[^<>()]*>", "", text)
        if shorter == text:
            return text.split("<")[0]
        text = shorter
    return text


def _parents(functions: list[Function]) -> list[int]:
    parents = []
    stack: list[int] = []
    for at, function in enumerate(functions):
        while stack and functions[stack[-1]].end <= function.start:
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        stack.append(at)
    return parents


def _innermost(functions: list[Function], starts: list[int], parents: list[int], position: int) -> int:
    at = bisect_right(starts, position) - 1
    while at >= 0 and functions[at].end <= position:
        at = parents[at]
    return at


def _call(source: Source, node: Node, shift: int = 0) -> Call | None:
    callee = node.child_by_field_name("function")
    if callee is None:
        return None
    qualifier = receiver = template = ""
    is_arrow = False
    if callee.type == "field_expression":
        argument = callee.child_by_field_name("argument")
        inner = callee.child_by_field_name("field")
        operator = callee.child_by_field_name("operator")
        if argument is None or inner is None:
            return None
        receiver = text_of(source, argument.start_byte + shift, argument.end_byte + shift)
        is_arrow = operator is not None and operator.type == "->"
        callee = inner
    first = callee.start_byte
    while callee.type not in _LEAVES:
        if callee.type == "dependent_name":
            following = callee.named_children[-1] if callee.named_children else None
        else:
            if callee.type in ("template_function", "template_method", "template_type"):
                arguments = callee.child_by_field_name("arguments")
                if arguments is not None:
                    template = text_of(source, arguments.start_byte + shift, arguments.end_byte + shift)
            following = callee.child_by_field_name("name")
        if following is None:
            return None
        callee = following
    if callee.start_byte > first:
        text = text_of(source, first + shift, callee.start_byte + shift)
        qualifier = text.removesuffix("template").rstrip().removesuffix("::").rstrip()
    name = source.original[callee.start_byte + shift : callee.end_byte + shift].decode("utf-8", "surrogateescape")
    return Call(source, node, name, qualifier, receiver, template, is_arrow=is_arrow, shift=shift)


_LEAVES = frozenset({"identifier", "field_identifier", "type_identifier", "namespace_identifier"})


def _asm(source: Source, node: Node, shift: int = 0) -> Asm:
    start, end = node.start_byte + shift, node.end_byte + shift
    text, operands, outputs, names = asm_parts(source.uncommented[start:end], source.code[start:end])
    return Asm(start, end, text, operands, outputs, names, node)


_MACRO_HOLDS = re.compile(rb"\basm\b|__asm|wait|arrive|sync|barrier|commit|acquire|release|fence|tail")


def _macros(path: Path, source: Source) -> Iterator[Function]:
    for body in source.macro_bodies:
        if _MACRO_HOLDS.search(body.text):
            yield _macro(path, source, body)


def _macro(path: Path, source: Source, body: MacroBody) -> Function:
    tree = _PARSER.parse(_FRAGMENT + body.text + b";}")
    shift = body.start - len(_FRAGMENT)
    captures = QueryCursor(_QUERY).captures(tree.root_node)
    calls = (_call(source, node, shift) for node in captures.get("call", ()))
    return Function(
        file=path,
        name=body.name,
        qualified=body.name,
        owner="",
        start=body.start,
        end=body.end,
        body=(body.start, body.end),
        parameters=tuple(Parameter(name, "") for name in body.parameters or ()),
        qualifiers=frozenset(),
        is_template=False,
        node=tree.root_node,
        source=source,
        calls=tuple(sorted((call for call in calls if call is not None), key=lambda each: each.start)),
        asms=tuple(_asm(source, node, shift) for node in captures.get("asm", ())),
        is_macro=True,
    )


_DEVICE_CALLS = frozenset(
    ("__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count", "__syncwarp", "__threadfence")
)


def _spread_device(functions: Iterable[Function], by_name: Mapping[str, tuple[Function, ...]]) -> None:
    """Mark unqualified functions that device code calls, when nothing of that name is meant for the host alone."""
    pending = []
    for function in functions:
        if not function.qualifiers & _SIDES and (
            function.asms or any(call.name in _DEVICE_CALLS for call in function.calls)
        ):
            function.is_called_from_device = True
        if function.is_device:
            pending.append(function)
    plain = {name: [each for each in group if not each.qualifiers & _SIDES] for name, group in by_name.items()}
    while pending:
        for call in pending.pop().calls:
            for callee in plain.get(call.name, ()):
                if not callee.is_called_from_device and callee.accepts(len(call.arguments)):
                    callee.is_called_from_device = True
                    pending.append(callee)


_SIDES = frozenset({"__host__", "__device__", "__global__"})
