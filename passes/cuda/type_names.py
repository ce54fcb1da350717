# SPDX-License-Identifier: Apache-2.0
"""What the names of a kernel's signature stand for: declarations looked up as C++ does, read by pycparser, laid out.

pycparser reads C, and only single declarations are given to it: C++'s qualifiers are taken out, qualified names replaced by
plain ones, and every name of a type declared to it as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from autostamp.model.prototype import Array, CType, Pointer, Scalar, Struct, TensorMap
from autostamp.passes.cuda import c_types
from autostamp.passes.cuda.constants import evaluate
from autostamp.passes.cuda.declarations import Declaration, Scope, Sort, close_of, split, without_attributes
from autostamp.passes.cuda.directives import expand
from autostamp.passes.cuda.members import UnclearError, data_members

_DROPPED: Final = re.compile(
    r"\b(?:__restrict__|__restrict|__grid_constant__|__device__|__host__|__constant__|typename|constexpr|inline|static)\b"
    r"|\[\[.*?\]\]",
    re.DOTALL,
)
_ALIGNED: Final = re.compile(
    r"\b(?:alignas|__align__)\s*(?=\()|\b__attribute__\s*\(\s*\(\s*(?:__)?aligned(?:__)?\s*(?=\()"
)
_QUALIFIED: Final = re.compile(
    r"(?:::\s*|\b)(?!(?:const|volatile|struct|enum)\b)[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+|::\s*[A-Za-z_]\w*"
)
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*\b")
_STANDARD: Final = re.compile(r"(?:::)?(?:cuda::)?std::")
_KEYWORDS: Final = frozenset({
    "_Alignas", "_Bool", "char", "const", "double", "enum", "extern", "float", "int", "long", "short", "signed", "sizeof",
    "struct", "union", "unsigned", "void", "volatile",
})  # fmt: skip
"""Words of C that can stand in a declaration; no name of a type can be one of them."""
_STAND_IN: Final = "autostamp_name_"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Qualified:
    """A type with its qualifiers; `kind` is None for void."""

    kind: CType | None
    is_const: bool = False
    is_volatile: bool = False


class TypeNames:
    """Types and constants by name, for the declarations of one kernel's files. Every method raises UnclearError."""

    def __init__(
        self, found: Sequence[Declaration], macros: Mapping[str, str | None], tensor_map_alignment: int
    ) -> None:
        self._macros = macros
        self._tensor_map = TensorMap(tensor_map_alignment)
        self._parser = CParser()
        self._types: dict[Scope, list[Declaration]] = {}
        self._constants: dict[Scope, list[Declaration]] = {}
        self._structs: dict[Scope, Struct | None] = {}
        for item in found:
            if item.sort is Sort.ENUM:
                self._enter_enumerators(item)
            if item.sort is not Sort.KERNEL and item.name:
                table = self._constants if item.sort is Sort.CONSTANT else self._types
                table.setdefault((*item.scope, item.name), []).append(item)

    def parameter(self, text: str, scope: Scope) -> tuple[str, CType]:
        """(name, empty without one; type) of one parameter. Top-level qualifiers are not kept: they are the callee's affair."""
        (node,) = self._declared("void f({});", lambda tree: tree.type.args.params, text, scope)
        if isinstance(node.type, c_ast.ArrayDecl):  # as in C, an array parameter is a pointer
            element = self._convert(node.type.type, scope)
            return node.name or "", self._pointer(element)
        kind = self._convert(node.type, scope).kind
        if kind is None:
            raise UnclearError("AS1022", text=text.strip(), detail="a parameter cannot be void")
        return node.name or "", kind

    def constant(self, text: str, scope: Scope) -> int:
        """The value of an integer constant expression."""
        text = re.sub(r"(?<=\w)'(?=\w)", "", text)
        return self._value(self._parse("int x = {};", lambda tree: tree.init, text, scope), scope)

    def _declared(
        self, frame: str, pick: Callable[[c_ast.Node], list[c_ast.Node]], text: str, scope: Scope
    ) -> list[c_ast.Node]:
        """The declarations that `pick` finds in the frame around `text`: at least one, each with a type."""
        found = self._parse(frame, pick, text, scope)
        if not found or not all(isinstance(each, c_ast.Decl | c_ast.Typename) for each in found):
            unknown = self._unknown_type(text.strip(), {}, scope)
            if unknown:
                raise UnclearError("AS1026", type=unknown)
            raise UnclearError("AS1022", text=" ".join(text.split()), detail="it declares nothing")
        return found

    def _parse(self, frame: str, pick: Callable[[c_ast.Node], T], text: str, scope: Scope) -> T:
        """What `pick` takes from the syntax tree of `frame` around `text`. Stand-ins are replaced in it by their names."""
        plain, names = self._as_c(text)
        if "=" not in frame:
            _refuse(text)
        words = [word for word in dict.fromkeys(_NAME.findall(plain)) if word not in _KEYWORDS]
        known = "".join(f"typedef int {word};\n" for word in words if self._is_type(names.get(word, word), scope))
        try:
            node = self._parser.parse(f"{known}{frame.format(plain)}").ext[-1]
            _rename(node, names)
            return pick(node)
        except (ParseError, AssertionError, AttributeError) as error:  # the latter two: text that closes the frame
            unknown = self._unknown_type(plain, names, scope)
            if unknown:
                raise UnclearError("AS1026", type=unknown) from error
            shown, expanded = " ".join(text.split()), " ".join(expand(text, self._macros).split())
            detail = (
                "it is not plain C" if shown == expanded else f"with its macros it is {expanded}, which is not plain C"
            )
            raise UnclearError("AS1022", text=shown, detail=detail) from error

    def _as_c(self, text: str) -> tuple[str, dict[str, str]]:
        """(the text as C, with stand-ins for qualified names; what they stand for)."""
        text = _DROPPED.sub(" ", expand(text, self._macros))
        text, alignments = _take_alignments(text)
        names: dict[str, str] = {}

        def stand_in(match: re.Match[str]) -> str:
            name = _STANDARD.sub("", re.sub(r"\s+", "", match[0]))
            if "::" not in name:
                return name
            return names.setdefault(name, f"{_STAND_IN}{len(names)}")

        text = _QUALIFIED.sub(stand_in, text)
        words = [*(f"_Alignas({each})" for each in alignments), *text.split()]  # one line: C knows no carriage return
        return " ".join(words), {v: k for k, v in names.items()}

    def _is_type(self, name: str, scope: Scope) -> bool:
        if self._find(self._types, name, scope) is not None or name in c_types.BUILTIN or name in c_types.HANDLES:
            return True
        return name.removeprefix("::") in c_types.TENSOR_MAPS

    def _unknown_type(self, text: str, names: Mapping[str, str], scope: Scope) -> str:
        """The name that ought to be a type: one that another name follows and that nothing declares."""
        alone = re.fullmatch(r"(?:(?:const|volatile)\b\s*)*([A-Za-z_]\w*)", text)
        followed = re.findall(r"\b([A-Za-z_]\w*)(?=[\s*]+(?:const\b[\s*]*)?[A-Za-z_]|\s*\*)", text)
        for found in [alone[1]] if alone else followed:
            name = names.get(found, found)
            if name not in _KEYWORDS and not self._is_type(name, scope):
                return name
        return ""

    @staticmethod
    def _find(table: Mapping[Scope, list[Declaration]], name: str, scope: Scope) -> Declaration | None:
        """The declaration that a name means inside `scope`: the innermost one."""
        parts = tuple(name.removeprefix("::").split("::"))
        outer = [()] if name.startswith("::") else [scope[:depth] for depth in range(len(scope), -1, -1)]
        for each in outer:
            found = table.get((*each, *parts))
            if not found:
                continue
            if len({(item.sort, " ".join(item.text.split())) for item in found}) > 1:
                places = " and ".join(f"{item.source.path}:{item.line}" for item in found)
                raise UnclearError("AS1021", name=name, places=places)
            return found[-1]
        return None

    def _convert(self, node: c_ast.Node, scope: Scope) -> Qualified:
        quals = getattr(node, "quals", None) or []
        if isinstance(node, c_ast.TypeDecl):
            inner = self._specifier(node.type, scope)
        elif isinstance(node, c_ast.PtrDecl):
            inner = Qualified(self._pointer(self._convert(node.type, scope)))
        elif isinstance(node, c_ast.ArrayDecl):
            inner = self._array(node, scope)
        else:
            raise UnclearError("AS1024", name="a function", detail="a pointer to a function is made by host code")
        return replace(
            inner, is_const=inner.is_const or "const" in quals, is_volatile=inner.is_volatile or "volatile" in quals
        )

    def _array(self, node: c_ast.Node, scope: Scope) -> Qualified:
        element = self._convert(node.type, scope)
        if node.dim is None or element.kind is None:
            raise UnclearError("AS1022", text="[]", detail="an array needs its length")
        return replace(element, kind=Array(element.kind, self._value(node.dim, scope)))

    @staticmethod
    def _pointer(pointee: Qualified) -> Pointer:
        if isinstance(pointee.kind, Array):
            raise UnclearError("AS1024", name="a pointer to an array", detail="give a pointer to its elements")
        if isinstance(pointee.kind, TensorMap):
            raise UnclearError("AS1024", name="a pointer to a tensor map", detail="a map can be given by value alone")
        return Pointer(pointee.kind, pointee.is_const, pointee.is_volatile)

    def _specifier(self, node: c_ast.Node, scope: Scope) -> Qualified:
        if isinstance(node, c_ast.IdentifierType):
            if node.names == ["void"]:
                return Qualified(None)
            return Qualified(kind) if (kind := c_types.of_words(node.names)) else self.named(node.names[0], scope)
        if isinstance(node, c_ast.Struct) and node.decls is not None:
            return Qualified(self._members("", node.decls, scope, 1))
        if isinstance(node, c_ast.Struct | c_ast.Enum) and node.name:
            return self.named(node.name, scope)
        raise UnclearError("AS1024", name="a union or an enumeration in place", detail="declare it by itself")

    def named(self, name: str, scope: Scope) -> Qualified:
        """The type that a name means inside `scope`."""
        found = self._find(self._types, name, scope)
        if name.removeprefix("::") in c_types.TENSOR_MAPS and (found is None or not found.scope):
            return Qualified(self._tensor_map)  # also where cuda.h was read: what a map holds is the driver's affair
        if found is None:
            if name in c_types.HANDLES:
                raise UnclearError("AS1024", name=name, detail=c_types.HANDLES[name])
            if name not in c_types.BUILTIN:
                raise UnclearError("AS1026", type=name)
            return Qualified(c_types.BUILTIN[name])
        if found.template is not None:
            raise UnclearError("AS1024", name=name, detail="class templates are not laid out")
        if found.sort is Sort.ENUM:
            return Qualified(self._enumeration(found))
        if found.sort is Sort.STRUCT:
            return Qualified(self._struct(found))
        return self._alias(found)

    def _alias(self, found: Declaration) -> Qualified:
        """What a typedef or a using-declaration stands for."""
        text = re.sub(r"^\s*typedef\b", "", found.text)
        if match := re.match(r"\s*using\s+(\w+)\s*=(.*)", found.text, re.DOTALL):
            text = f"{match[2]} {match[1]}"
        # As a member, because an alias may be declared again under its own name.
        node = self._members_of(text, found.scope)[0]
        return self._convert(node.type, found.scope)

    def _members_of(self, text: str, scope: Scope) -> list[c_ast.Node]:
        return self._declared("struct s {{ {}; }};", lambda tree: tree.type.decls, text, scope)

    def _struct(self, found: Declaration) -> Struct | None:
        """A struct laid out; None for one that is being laid out, which only a pointer can mean."""
        path = (*found.scope, found.name)
        if path not in self._structs:
            self._structs[path] = None
            head = expand(found.head, self._macros)
            self._check_head(found.path, head)
            inside = (*found.scope, found.name)
            texts = data_members(found.path, expand(found.text, self._macros), is_class=" class " in f" {head} ")
            decls = [decl for text in texts for decl in self._members_of(text, inside)]
            _, alignments = _take_alignments(head)
            asked = max((self.constant(each, found.scope) for each in alignments), default=1)
            self._structs[path] = self._members(found.path, decls, inside, asked)
        return self._structs[path]

    @staticmethod
    def _check_head(struct: str, head: str) -> None:
        bare = without_attributes(head)
        reasons = (
            (r"\bunion\b", bare, "it is a union"),
            (r"(?<!:):(?!:)", bare, "it has base classes"),
            (r"\bpacked\b", head, "it is packed"),
        )
        for pattern, text, reason in reasons:
            if re.search(pattern, text):
                raise UnclearError("AS1025", struct=struct, detail=reason)

    def _members(self, spelling: str, decls: Sequence[c_ast.Node], scope: Scope, alignment: int) -> Struct:
        members: list[tuple[str, CType, int]] = []
        for decl in decls:
            kind = self._convert(decl.type, scope).kind
            if kind is None or decl.name is None:
                raise UnclearError(
                    "AS1025", struct=spelling, detail="it has a member without a type or name of its own"
                )
            asked = [self._value(each.alignment, scope) for each in getattr(decl, "align", None) or []]
            members.append((decl.name, kind, max(asked, default=0)))
        return c_types.lay_out(spelling, members, alignment)

    def _enumeration(self, found: Declaration) -> Scalar:
        values = tuple((name, self._enumerator(found, name)) for name, _ in _enumerators(found.text))
        base = re.search(r"(?<!:):(?!:)\s*(?P<type>.+)", without_attributes(found.head), re.DOTALL)
        kind = self.parameter(base["type"], found.scope)[1] if base else c_types.scalar("int")
        if not isinstance(kind, Scalar):
            raise UnclearError("AS1025", struct=found.path, detail="its base is no integer type")
        return Scalar(f"::{found.path}", kind.number, kind.size, values)

    def _enter_enumerators(self, found: Declaration) -> None:
        """Enumerators are constants of the enumeration's scope, or of the enumeration itself."""
        is_scoped = re.search(r"\benum\s+(?:class|struct)\b", found.head)
        scope = (*found.scope, found.name) if is_scoped else found.scope
        for name, _ in _enumerators(found.text):
            item = replace(found, sort=Sort.CONSTANT, name=name, scope=scope, text=f"{name}\0{found.text}")
            self._constants.setdefault((*scope, name), []).append(item)

    def _enumerator(self, found: Declaration, wanted: str) -> int:
        value = -1
        for name, text in _enumerators(found.text):
            value = self.constant(text, found.scope) if text else value + 1
            if name == wanted:
                break
        return value

    def _known(self, name: str, scope: Scope) -> int:
        """The value of a named constant."""
        found = self._find(self._constants, name, scope)
        if found is None or found.template is not None:
            raise UnclearError("AS1027", name=name)
        if "\0" in found.text:
            wanted, _, text = found.text.partition("\0")
            return self._enumerator(replace(found, text=text), wanted)
        return self.constant(found.text, found.scope)

    def _value(self, node: c_ast.Node, scope: Scope) -> int:
        return evaluate(node, lambda name: self._known(name, scope), lambda each: self._size_of(each, scope))

    def _size_of(self, node: c_ast.Node, scope: Scope) -> int:
        kind = self._convert(node.type, scope).kind
        if kind is None:
            raise UnclearError("AS1022", text="sizeof(void)", detail="void has no size")
        return kind.size


def _enumerators(text: str) -> list[tuple[str, str]]:
    """(name, text of its value or empty) of each enumerator."""
    parts = [part.strip() for _, part in split(text)]
    pairs = [without_attributes(part).partition("=") for part in parts if part]
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _refuse(text: str) -> None:
    """Raise UnclearError for a declaration of what the command line has no words for."""
    shown = " ".join(text.split())
    reasons = (
        (r"\.\.\.", "a pack of arguments cannot be given"),
        (r"&", "a reference needs an object of the host's"),
        (r"\w\s*<", "class templates are not laid out"),
    )
    for pattern, reason in reasons:
        if re.search(pattern, text):
            raise UnclearError("AS1024", name=shown, detail=reason)


def _take_alignments(text: str) -> tuple[str, list[str]]:
    """(the text without alignment specifiers, what they ask for)."""
    found: list[str] = []
    while match := _ALIGNED.search(text):
        closed = close_of(text, match.end())
        found.append(text[match.end() + 1 : closed])
        end = closed + 1
        if "__attribute__" in match[0]:
            end = close_of(text, text.index("(", match.start())) + 1
        text = f"{text[: match.start()]} {text[end:]}"
    return text, found


def _rename(node: c_ast.Node, names: Mapping[str, str]) -> None:
    """Put qualified names back for their stand-ins."""
    if isinstance(node, c_ast.IdentifierType):
        node.names = [names.get(name, name) for name in node.names]
    elif isinstance(node, c_ast.ID | c_ast.Struct | c_ast.Enum) and node.name:
        node.name = names.get(node.name, node.name)
    for _, child in node.children():
        _rename(child, names)
