# SPDX-License-Identifier: Apache-2.0
"""Which definitions of the project a call can mean, by name, class, scope and number of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autostamp.passes.cuda.functions import Call, Function, Index, Type, bare
from autostamp.passes.cuda.receivers import Receivers
from autostamp.passes.cuda.source import Source

# Classes of libraries that a project need not hold: an object of one is no object of a class of its own.
_FOREIGN = frozenset(
    (
        *("thread_block", "thread_block_tile", "grid_group", "cluster_group", "coalesced_group"),
        *("this_thread_block", "this_grid", "this_cluster", "tiled_partition", "coalesced_threads"),
    )
)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Candidates of a call. `is_certain` says that its class or scope was found, or that there is none to find; otherwise
    they are whatever has that name.
    """

    candidates: tuple[Function, ...]
    is_certain: bool


_NONE = Resolved((), True)


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolution over one project."""

    index: Index
    receivers: Receivers
    sources: Mapping[Path, Source]

    def resolve(self, call: Call, function: Function) -> Resolved:
        """The device functions and macros that `call`, standing in `function`, can mean."""
        count = len(call.arguments)
        named = (*self.index.by_name.get(call.name, ()), *self.index.macros.get(call.name, ()))
        fitting = [each for each in named if each.accepts(count) and (each.is_device or each.is_macro)]
        if not fitting:
            return _NONE
        if call.qualifier:
            return self._qualified(call, function, fitting)
        if call.receiver:
            return self._method(call, function, fitting)
        family = self.receivers.family(function.owner, function.file) if function.owner else set()
        if own := [each for each in fitting if each.owner and each.owner in family]:
            return _nearest(own, function)
        return _nearest([each for each in fitting if not each.owner or self.is_namespace(each)], function)

    def by_types(self, call: Call, function: Function, candidates: Sequence[Function]) -> tuple[Function, ...]:
        """Those of overloaded candidates of which a parameter has the class of its argument."""
        classes = [self.receivers.classes(argument, function) for argument in call.arguments]
        return tuple(
            each
            for each in candidates
            if any(
                bare(parameter.type.strip(" &*[]")).split("::")[-1] in known
                for parameter, known in zip(each.parameters, classes, strict=False)
            )
        )

    def is_namespace(self, function: Function) -> bool:
        """True when what a function is a member of is no class: a definition outside its namespace looks like a method."""
        return function.owner not in self.index.types

    def _qualified(self, call: Call, function: Function, fitting: list[Function]) -> Resolved:
        path = bare(call.qualifier).strip(":")
        last = path.split("::")[-1]
        if whole := [each for each in fitting if f"::{each.qualified}".endswith(f"::{path}::{each.name}")]:
            return _nearest(whole, function)
        names = self.receivers.family(last, function.file)
        exact = [each for each in fitting if each.owner in names or f"::{last}::" in f"::{each.qualified}"]
        # What a class or namespace takes in by `#include` stands at the top of its file.
        loose = [each for each in fitting if each.qualified == each.name]
        if exact or last in self.index.types:
            includes = any(self._includes(each) for name in names for each in self.index.types.get(name, ()))
            return _nearest([*exact, *loose] if includes else exact, function)
        if last in self._parameters_around(function):
            static = [each for each in fitting if "static" in each.qualifiers and not self.is_namespace(each)]
            return Resolved(tuple(static), False)
        return Resolved(tuple(loose), False)

    def _includes(self, each: Type) -> bool:
        source = self.sources.get(each.file)
        return source is not None and b"#include" in source.code[each.start : each.end]

    def _method(self, call: Call, function: Function, fitting: list[Function]) -> Resolved:
        methods = [each for each in fitting if each.owner and not self.is_namespace(each)]
        if call.receiver in ("this", "(*this)"):
            owners = self.receivers.family(function.owner, function.file)
        else:
            owners = self.receivers.classes(call.receiver, function)
        exact = [each for each in methods if each.owner in owners]
        if exact or any(name in self.index.types for name in owners):
            return _nearest(exact, function)
        return _NONE if owners & _FOREIGN else Resolved(tuple(methods), False)

    def _parameters_around(self, function: Function) -> set[str]:
        """Template parameters in scope: a call qualified by one can mean any class's static function."""
        types = self.index.types.get(function.owner, ()) if function.owner else ()
        return {*function.template_parameters, *(name for each in types for name in each.template_parameters)}


def _nearest(found: list[Function], function: Function) -> Resolved:
    """Those of the same file when there are any, else of the nearest namespace: projects repeat small functions."""
    if near := tuple(each for each in found if each.file == function.file):
        return Resolved(near, True)
    scope = function.qualified.split("::")
    shared = [_shared(each.qualified.split("::"), scope) for each in found]
    return Resolved(tuple(each for each, depth in zip(found, shared, strict=True) if depth == max(shared)), True)


def _shared(one: list[str], two: list[str]) -> int:
    return next(
        (at for at, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]), min(len(one), len(two))
    )
