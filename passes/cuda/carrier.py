# SPDX-License-Identifier: Apache-2.0
"""How each kernel gets its slot of the buffer: as a last parameter where every use of the kernel is in sight, else by a symbol.

A use is any place that names the kernel. Its definition, its forward declarations, its direct launches and calls that only ask
about it (cudaFuncSetAttribute and the like) agree with a further parameter; whatever else there is does not, or can't be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tree_sitter import Node

from autostamp.passes.cuda.functions import Index
from autostamp.passes.cuda.includes import PROGRAMS
from autostamp.passes.cuda.kernels import Kernel, ParameterList, parameter_list
from autostamp.passes.cuda.launches import QUERIES, Launch, LaunchForm, directive_spans
from autostamp.passes.cuda.reach import declared
from autostamp.passes.cuda.source import Source


class Carrier(StrEnum):
    """What the user asks for."""

    AUTO = "auto"
    PARAM = "param"
    SYMBOL = "symbol"


@dataclass(slots=True)
class Choice:
    """The carrier of one kernel, why it is not the parameter, and what must be edited where it is.

    `position` is a (file, offset) that the reason is about, where there is one.
    """

    kernel: Kernel
    is_param: bool
    reason: str
    declarations: list[tuple[Path, ParameterList]] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    position: tuple[Path, int] | None = None


class _RefusedError(Exception):
    """The parameter cannot be added; what is raised inside `choose` ends there."""

    def __init__(self, reason: str, position: tuple[Path, int] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Chooser:
    """Decides for the kernels of one set of files. `outside` are sources that are read but not stamped, `included` the names
    of files with the ending of a program that some file includes all the same.
    """

    def __init__(
        self,
        sources: Mapping[Path, Source],
        outside: Mapping[Path, Source],
        index: Index,
        kernels: Sequence[Kernel],
        launches: Sequence[Launch],
        included: frozenset[str] = frozenset(),
    ) -> None:
        self._sources = sources
        self._outside = outside
        self._index = index
        self._same: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            self._same.setdefault(kernel.name, []).append(kernel)
        self._launches: dict[str, list[Launch]] = {}
        self._at: dict[tuple[Path, int], Launch] = {}
        for launch in launches:
            self._launches.setdefault(launch.kernel, []).append(launch)
        self._included = included
        self._directives: dict[Path, list[tuple[int, int]]] = {}
        self._mentions = self._find_mentions()

    def choose(self, kernel: Kernel, wanted: Carrier, *, is_lean: bool = False) -> Choice:
        """The carrier of one kernel. With PARAM wanted the choice may still be the symbol: then `reason` says why it must be.

        Lean stamps read the slot from constant memory, where a kernel's parameters have no name.
        """
        if is_lean:
            return Choice(kernel, False, "its stamps are lean")
        if wanted is Carrier.SYMBOL:
            return Choice(kernel, False, "asked for")
        choice = Choice(kernel, True, "")
        try:
            self._require_own_shape(kernel)
            self._require_own_name(kernel)
            elsewhere = {each.path for each in self._same[kernel.name]} - {kernel.path}
            for path, at in self._mentions.get(kernel.name, ()):
                if path in elsewhere:
                    continue
                if elsewhere and path != kernel.path:
                    raise _RefusedError(
                        "another kernel has its name, and a launch does not say which it means", (path, at)
                    )
                self._use(kernel, path, at, choice)
            self._require_launches(kernel, choice)
        except _RefusedError as refused:
            return Choice(kernel, False, refused.reason, position=refused.position)
        return choice

    def is_launched(self, kernel: Kernel) -> bool:
        """True when some launch names it, or may: what a macro defines can be launched under a name that is not seen."""
        if kernel.made_by and any(name not in self._same for name in self._launches):
            return True
        return bool(self._own_launches(kernel))

    def host_of(self, kernel: Kernel) -> str:
        """The function with its first launch."""
        return next((launch.host for launch in self._own_launches(kernel)), "")

    def _own_launches(self, kernel: Kernel) -> list[Launch]:
        named = self._launches.get(kernel.name, [])
        elsewhere = {each.path for each in self._same[kernel.name]} - {kernel.path}
        return [launch for launch in named if launch.path not in elsewhere]

    def _require_own_shape(self, kernel: Kernel) -> None:
        if kernel.made_by:
            raise _RefusedError(f"macro {kernel.made_by} defines it")
        listed = kernel.parameters
        if listed is None:
            raise _RefusedError("its parameter list could not be read")
        if listed.is_void:
            raise _RefusedError("its parameter list is (void)")
        if listed.is_open:
            raise _RefusedError("its parameter list is open: nothing can follow a pack")
        if kernel.is_extern_c:
            raise _RefusedError('it is extern "C", so it may be loaded by its name')

    def _require_own_name(self, kernel: Kernel) -> None:
        """Programs that stand side by side in a project may have kernels of one name; within one program they may not."""
        same = self._same[kernel.name]
        paths = {each.path for each in same}
        is_apart = len(paths) == len(same) and all(self._is_program(path) for path in paths)
        if len(same) > 1 and not is_apart:
            raise _RefusedError("another kernel has its name, and a launch does not say which it means")
        for each in self._index.by_name.get(kernel.name, ()):
            if not each.is_kernel and (each.file == kernel.path or not self._is_program(each.file)):
                raise _RefusedError("a function has its name")

    def _is_program(self, path: Path) -> bool:
        """True for a file that is compiled by itself, and that no other one includes."""
        return path.suffix in PROGRAMS and path.name not in self._included

    def _require_launches(self, kernel: Kernel, choice: Choice) -> None:
        if not choice.launches:
            raise _RefusedError("it is launched nowhere in these files")
        assert kernel.parameters is not None
        for launch in choice.launches:
            where = (launch.path, launch.start)
            if launch.is_device:
                raise _RefusedError("device code launches it", where)
            if launch.closing < 0:
                raise _RefusedError("a launch of it has no argument list in sight", where)
            has_default = any(each.required < each.count for _, each in choice.declarations) or (
                kernel.parameters.required < kernel.parameters.count
            )
            if has_default and launch.count != kernel.parameters.count:
                raise _RefusedError("a launch of it leaves default arguments to the compiler", where)

    def _use(self, kernel: Kernel, path: Path, at: int, choice: Choice) -> None:
        """Judge one place that names the kernel."""
        source = self._sources.get(path)
        if source is None:
            raise _RefusedError("a file that is not stamped names it", (path, at))
        if any(start <= at < end for start, end in self._directives_of(path, source)):
            raise _RefusedError("a macro names it", (path, at))
        node = _outermost_name(source.tree.root_node.descendant_for_byte_range(at, at + len(kernel.name.encode())))
        if node is None or node.parent is None:
            raise _RefusedError("the parser did not understand a place that names it", (path, at))
        if node.parent.type == "function_declarator":
            self._declaration(kernel, path, source, node, at, choice)
            return
        launch = self._launch_at(path, node, kernel)
        if launch is not None:
            if self._is_shadowed(path, kernel, at):
                raise _RefusedError("a variable of a function that launches has its name", (path, at))
            choice.launches.append(launch)
        elif not _is_query(source, node):
            raise _RefusedError(self._reason(path, kernel, at), (path, at))

    def _reason(self, path: Path, kernel: Kernel, at: int) -> str:
        for launch in self._launches.get(kernel.name, ()):
            if launch.path == path and launch.form is LaunchForm.POINTER and launch.start <= at < launch.end:
                return "it is launched through a pointer"
        return "its address is taken"

    def _declaration(self, kernel: Kernel, path: Path, source: Source, node: Node, at: int, choice: Choice) -> None:
        if path == kernel.path and at == kernel.start:
            return
        outer: Node | None = node
        while outer is not None and outer.type not in _DECLARATIONS:
            outer = outer.parent
        if outer is None or outer.type == "template_instantiation":
            raise _RefusedError("it is instantiated explicitly", (path, at))
        if outer.parent is not None and outer.parent.type == "friend_declaration":
            raise _RefusedError("a class declares it a friend", (path, at))
        listed = parameter_list(source, outer)
        if listed is None or kernel.parameters is None or listed.count != kernel.parameters.count:
            raise _RefusedError("a declaration of it differs from the definition", (path, at))
        choice.declarations.append((path, listed))

    def _launch_at(self, path: Path, node: Node, kernel: Kernel) -> Launch | None:
        for launch in self._launches.get(kernel.name, ()):
            if launch.path != path or launch.form is LaunchForm.POINTER:
                continue
            if launch.form is LaunchForm.CHEVRON and launch.start == node.start_byte:
                return launch
            if launch.form is LaunchForm.TYPED and launch.start < node.start_byte < launch.end:
                arguments = _argument_list(node)
                given = (
                    [] if arguments is None else [each for each in arguments.named_children if each.type != "comment"]
                )
                if len(given) > 1 and given[1].start_byte <= node.start_byte < given[1].end_byte:
                    return launch if not _is_cast(given[1]) else None
        return None

    def _is_shadowed(self, path: Path, kernel: Kernel, at: int) -> bool:
        name = kernel.name.encode()
        for function in self._index.functions:
            if function.file == path and function.start <= at < function.end and not function.is_kernel:
                inner = function.source.code[function.body[0] : function.body[1]]
                if name in declared(inner) or any(each.name == kernel.name for each in function.parameters):
                    return True
        return False

    def _directives_of(self, path: Path, source: Source) -> list[tuple[int, int]]:
        if path not in self._directives:
            self._directives[path] = directive_spans(source.code)
        return self._directives[path]

    def _find_mentions(self) -> dict[str, list[tuple[Path, int]]]:
        """Every place that has the name of a kernel as a word, comments and literals apart."""
        found: dict[str, list[tuple[Path, int]]] = {}
        names = {name.encode("utf-8", "surrogateescape") for name in self._same}
        for path, source in (*self._sources.items(), *self._outside.items()):
            words = names & set(_WORD.findall(source.code))
            if not words:
                continue
            pattern = re.compile(rb"(?<!\w)(?:" + b"|".join(map(re.escape, sorted(words))) + rb")(?!\w)")
            for match in pattern.finditer(source.code):
                found.setdefault(match[0].decode("utf-8", "surrogateescape"), []).append((path, match.start()))
        return found


_WORD = re.compile(rb"[A-Za-z_]\w*+")
_DECLARATIONS = frozenset({"declaration", "field_declaration", "function_definition", "template_instantiation"})
_NAMES = frozenset({"template_function", "qualified_identifier", "dependent_name", "template_method", "template_type"})
_WRAPPERS = frozenset({"pointer_expression", "parenthesized_expression", "cast_expression"})


def _outermost_name(node: Node | None) -> Node | None:
    """The whole of `ns::kernel<T>` for its identifier, when that is its last part."""
    while node is not None and node.parent is not None and node.parent.type in _NAMES:
        parent = node.parent
        named = parent.child_by_field_name("name") or (parent.named_children[-1] if parent.named_children else None)
        if named != node:
            return node
        node = parent
    return node


def _argument_list(node: Node) -> Node | None:
    outer: Node | None = node.parent
    while outer is not None and outer.type != "argument_list":
        outer = outer.parent if outer.type in _WRAPPERS else None
    return outer


def _is_cast(node: Node) -> bool:
    return node.type in {"cast_expression", "call_expression"}


def _callers(source: Source, node: Node) -> Iterator[str]:
    """Names of the calls that `node` is an argument of, through casts."""
    outer: Node | None = node.parent
    while outer is not None and (outer.type in _WRAPPERS or outer.type in ("argument_list", "call_expression")):
        if outer.type == "call_expression":
            callee = outer.child_by_field_name("function")
            yield "" if callee is None else source.text(callee).split("<")[0].split("::")[-1].strip()
        outer = outer.parent


def _is_query(source: Source, node: Node) -> bool:
    for name in _callers(source, node):
        if name in QUERIES:
            return True
        if not name.endswith("_cast"):
            return False
    return False
