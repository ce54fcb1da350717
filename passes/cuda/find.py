# SPDX-License-Identifier: Apache-2.0
"""Find every sync op of a project's device code: a site with its place and its context, or a skip with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from autostamp.passes.cuda.catalogue import ROWS
from autostamp.passes.cuda.contexts import Contexts
from autostamp.passes.cuda.found import FoundFile
from autostamp.passes.cuda.functions import Function, Index
from autostamp.passes.cuda.macros import Definition, definitions
from autostamp.passes.cuda.recognise import Recognizer
from autostamp.passes.cuda.sorting import FileSorter, Project
from autostamp.passes.cuda.source import Source

_MACRO = re.compile(rb"^[ \t]*+#[ \t]*+define[ \t]++([A-Za-z_]\w*+)\(", re.MULTILINE)


def find(sources: Mapping[Path, Source], index: Index, recognizer: Recognizer) -> dict[Path, FoundFile]:
    """What there is in each file, in source order; sites are numbered from 1 in each.

    Every recognised call or asm is either a site or a skip. `findings` are calls that could not be read (AS1011, also among
    the skips) and places where text and tree disagree (AS1012).
    """
    macros = _macros(sources)
    project = Project(
        index, recognizer, Contexts(index, sources, recognizer, macros), macros, _names(index, recognizer)
    )
    functions: dict[Path, list[Function]] = {}
    for function in index.functions:
        functions.setdefault(function.file, []).append(function)
    macro_bodies: dict[Path, list[Function]] = {}
    for group in index.macros.values():
        for macro in group:
            macro_bodies.setdefault(macro.file, []).append(macro)
    files = []
    for path, source in sources.items():
        file = FileSorter(path, source, project)
        for function in functions.get(path, ()):
            file.function(function)
        for macro in macro_bodies.get(path, ()):
            file.macro(macro)
        file.outside()
        file.check((*functions.get(path, ()), *macro_bodies.get(path, ())))
        files.append(file)
    return {file.found.path: file.finished() for file in files}


def _macros(sources: Mapping[Path, Source]) -> dict[str, tuple[Definition, ...]]:
    """The function-like macros of the project."""
    found: dict[str, list[Definition]] = {}
    for source in sources.values():
        if _MACRO.search(source.code) is None:
            continue
        for definition in definitions(source.uncommented):
            if definition.parameters is not None:
                found.setdefault(definition.name, []).append(definition)
    return {name: tuple(group) for name, group in found.items()}


def _names(index: Index, recognizer: Recognizer) -> frozenset[str]:
    """All names that a sync call can have: the catalogue's, the user's, and those of the project's wrappers."""
    names = {row.method for row in ROWS if row.method.isidentifier()}
    macros = (macro for group in index.macros.values() for macro in group)
    names |= {each.name for each in (*index.functions, *macros) if recognizer.is_wrapper(each)}
    return frozenset(names.union(recognizer.own_names))
