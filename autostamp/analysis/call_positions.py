# SPDX-License-Identifier: Apache-2.0
"""Where calls stand in a whole kernel: the positions in its functions, put together along the paths by which they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from autostamp.model.manifest import Instance, KernelTrace, Manifest
from autostamp.model.program_order import Enters, Function, Position, Step

_DEEPEST: Final = 4
"""Calls that are followed by their name."""


@dataclass(frozen=True)
class CallPositions:
    """Positions by `functions` of the source and `lines` of the sites: line and column by key of the file and number."""

    functions: Sequence[Function]
    lines: dict[tuple[str, int], tuple[int, int]]
    _entered: dict[tuple[str, str], list[Position]] = field(default_factory=dict)
    _reached: list[Position] = field(default_factory=list)

    @classmethod
    def of_kernel(cls, kernel: KernelTrace, manifest: Manifest, functions: Sequence[Function]) -> CallPositions:
        """Positions in a kernel, with all paths into functions that its instances name."""
        lines = {
            (file.key, site.number): (site.span.line, site.span.column)
            for file in manifest.files
            for site in file.sites
        }
        found = cls(functions, lines)
        for row in kernel.instances:
            found._learn(row)
        return found

    def of_instance(self, row: Instance) -> Position | None:
        """Where an instance stands; None where its source or its path is not known."""
        path = self._path(row)
        return path[-1][1] if path else None

    def of(self, file: str, line: int, column: int) -> tuple[Position, ...]:
        """Where the call at a line and column of a file stands, once for each path on which the kernel can get there."""
        function = self._holding(file, line)
        if function is None:
            return ()
        found = dict.fromkeys(self._at(function, (line, column), _DEEPEST))
        return tuple(position for position in found if not any(_excludes(each, position) for each in self._reached))

    def _learn(self, row: Instance) -> None:
        for function, position, into in self._path(row):
            known = self._entered.setdefault((function.file, function.name), [])
            if into not in known:
                known.append(into)
            self._reached.append(position)

    def _path(self, row: Instance) -> list[tuple[Function, Position, Position]]:
        """Of each function on an instance's path: the position there, and how the function was entered."""
        line, column = self.lines.get((row.file, row.site), (0, 0))
        frames = [_frame(text) for text in row.call_path]
        if not frames:  # CUDA C++: how functions call each other is not recorded, so each is a root of its own
            function = self._holding(row.file, line)
            frames = [(function.short, line)] if function is not None else []
        found: list[tuple[Function, Position, Position]] = []
        into: Position = ()
        for at, (name, of_line) in enumerate(frames):
            is_last = at == len(frames) - 1
            function = self._named(name, line if is_last else of_line, row.file if is_last else "")
            if function is None:
                return []
            local = function.position(line, column) if is_last else function.position(of_line)
            if local is None:
                return []
            into = into or (Step(0, Enters.ALWAYS, self.functions.index(function)),)
            found.append((function, (*into, *local), into))
            into = (*into, *local)
        return found

    def _named(self, name: str, line: int, file: str) -> Function | None:
        """The innermost function of that name around a line; None where files disagree."""
        held = [
            each
            for each in self.functions
            if each.short == name and each.first <= line <= each.last and file in ("", each.file)
        ]
        if len({each.file for each in held}) != 1:
            return None
        return min(held, key=lambda each: each.last - each.first)

    def _holding(self, file: str, line: int) -> Function | None:
        held = [each for each in self.functions if each.file == file and each.first <= line <= each.last]
        return min(held, key=lambda each: each.last - each.first, default=None)

    def _at(self, function: Function, place: tuple[int, int], depth: int) -> Iterator[Position]:
        local = function.position(*place)
        if local is not None:
            for into in self._into(function, depth):
                yield (*into, *local)

    def _into(self, function: Function, depth: int) -> Iterator[Position]:
        """How a function is entered: as records show it, else by the calls of its name in functions that are entered so."""
        known = self._entered.get((function.file, function.name))
        if known is not None:
            yield from known
        elif depth:
            for caller in self.functions:
                for statement in caller.statements:
                    if any(self._means(caller, name, function) for name in statement.calls):
                        for into in self._into(caller, depth - 1):
                            yield (*into, *statement.position)

    def _means(self, caller: Function, name: str, function: Function) -> bool:
        """True where a call by that name can only be of `function`."""
        short = name.removeprefix("self.")
        if short != function.short:
            return False
        if name != short:
            return caller.owner == function.owner and caller.file == function.file
        alike = [each for each in self.functions if each.short == short and self._sees(caller, each)]
        return alike == [function]

    def _sees(self, caller: Function, function: Function) -> bool:
        """True where a bare name can be `function`'s: one of a module, or one that a function around the caller holds."""
        if not function.owner:
            return True
        is_around = caller.file == function.file and f"{caller.name}.".startswith(f"{function.owner}.")
        return is_around and any(each.file == function.file and each.name == function.owner for each in self.functions)


def _excludes(reached: Position, position: Position) -> bool:
    """True where both lie in different arms of one decision that was made while tracing: then only the one was compiled."""
    for depth, (one, two) in enumerate(zip(reached, position, strict=False)):
        if one != two:
            if depth == 0:  # two functions of CUDA C++, each a root
                return False
            is_decided = one.enters is two.enters is Enters.ALWAYS
            return one.at == two.at and one.arm != two.arm and is_decided
    return False


def _frame(text: str) -> tuple[str, int]:
    name, _, line = text.rpartition(":")
    return name, int(line) if line.isdigit() else 0
