# SPDX-License-Identifier: Apache-2.0
"""The headers that a file includes, as far as they can be found without a compiler.

A name in quotes is looked for beside the including file and then in the folders given with -I, one in angle brackets in those
only (GCC manual, "Search Path"). What is found beside its includer, in the folder of the file that was named or below, belongs to
that file; whatever else is found is read to learn from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autostamp.passes.cuda.views import Views, views

GENERATED = frozenset(
    f"{name}.cuh"
    for name in (
        "autostamp",
        *(f"autostamp_{part}" for part in ("payload", "lean", "host", "settings", "drain", "forms", "unit")),
    )
)
"""Files that stamping writes beside the stamped ones; they are no sources of the project."""

PROGRAMS = frozenset({".cu", ".cpp", ".cc", ".cxx", ".c++", ".c"})
"""Endings of files that are compiled, not included."""

Read = Callable[[Path], bytes | None]
"""Gives the bytes of a file, None where there is none."""

_NAME = re.compile(rb'[ \t]*+\#[ \t]*+include(?:_next)?[ \t]*+(?:"([^"\n]++)"|<([^>\n]++)>)')
_PROGRAM = re.compile(rb'#[ \t]*+include[ \t]*+["<](?:[^">\n]*/)?([^">/\n]+\.[cC][\w+]*)[">]')
_GUARD = re.compile(rb"[ \t]*+\#[ \t]*+(?:ifndef|if[ \t]*+![ \t]*+defined[ \t]*+\(?)[ \t]*+(\w++)")
_DEFINED = re.compile(rb"[ \t]*+\#[ \t]*+define[ \t]++(\w++)")
_OPENING = frozenset({b"if", b"ifdef", b"ifndef"})
# Headers of the CUDA toolkit (its include folder) and of C, which some projects name in quotes.
_TOOLKIT = re.compile(
    r"""
      (?:cuda|cu(?:blas|dnn|fft|rand|solver|sparse|pti|TensorNet|tensor)|nv|npp|nccl|device_|driver_|host_|vector_|math_|sm_\d\d|
         texture_|surface_|cooperative_groups|builtin_types|channel_descriptor|library_types|fatbinary|mma\b|texture|crt/|thrust/|
         cub/)[\w./+-]*
    | (?:assert|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stdbool|stddef|stdint|stdio|stdlib|string|
         strings|time|unistd|wchar|sys/\w+)\.h
    | [a-z_]+
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Include:
    """One #include: `offset` is that of its name, `is_certain` false where a condition may leave it out."""

    name: str
    is_quoted: bool
    offset: int
    is_certain: bool


@dataclass(slots=True)
class Closure:
    """Headers behind a file: `own` belong to it, `context` are only read, `missing` are (file, include) not found."""

    own: dict[Path, bytes] = field(default_factory=dict)
    context: dict[Path, bytes] = field(default_factory=dict)
    missing: list[tuple[Path, Include]] = field(default_factory=list)


def includes(data: bytes) -> tuple[Include, ...]:
    """The includes of a text with a name in quotes or angle brackets, in order."""
    return tuple(_includes(views(data))) if b"include" in data else ()


def _includes(view: Views) -> Iterator[Include]:
    depth = 0
    guard: bytes | None = None
    for at, directive in enumerate(view.directives):
        text = view.uncommented[directive.start : directive.end]
        if directive.keyword in _OPENING:
            match = _GUARD.match(text) if at == 0 else None
            # The guard of a header is taken whenever the header counts at all.
            guard = match[1] if match else None
            depth += 0 if match and _defines(view, guard) else 1
        elif directive.keyword == b"endif":
            depth = max(0, depth - 1)
        elif match := _NAME.match(text):
            name = (match[1] or match[2]).decode("utf-8", "surrogateescape").strip()
            start = directive.start + match.start(1 if match[1] else 2) - 1
            yield Include(name, match[1] is not None, start, depth == 0)


def _defines(view: Views, name: bytes | None) -> bool:
    if len(view.directives) < 2 or view.directives[1].keyword != b"define":
        return False
    match = _DEFINED.match(view.uncommented, view.directives[1].start)
    return match is not None and match[1] == name


def included_programs(texts: Iterable[bytes]) -> frozenset[str]:
    """The names, without folders, of files with the ending of a program that one of these texts includes."""
    names = {match[1].decode("utf-8", "surrogateescape") for text in texts for match in _PROGRAM.finditer(text)}
    return frozenset(name for name in names if Path(name).suffix in PROGRAMS)


def is_toolkit(name: str) -> bool:
    """True for a header that comes with the CUDA toolkit or the C and C++ libraries."""
    return _TOOLKIT.fullmatch(name) is not None


def closure(
    roots: Mapping[Path, Path], folders: Sequence[Path], read: Read, given: Mapping[Path, bytes] | None = None
) -> Closure:
    """Everything that the files `roots` include, directly or through headers.

    `roots` maps each file to the folder that its own headers lie in or below. `folders` are those of -I, `read` gives bytes
    of a file; `given` are texts known already, those of the roots among them. An include that no condition governs and that
    is in quotes, found nowhere and no header of the toolkit, counts as missing where a file of the roots' own has it.
    """
    found = Closure()
    known = dict(given or {})
    pending = list(roots.items())
    seen = set(roots)
    while pending:
        path, top = pending.pop()
        data = known[path] if path in known else read(path)
        if data is None:
            continue
        is_own = path in roots or path in found.own
        for include in includes(data):
            if Path(include.name).name in GENERATED:
                continue
            target, is_beside = _resolve(include, path.parent, folders, read, known)
            if target is None:
                if is_own and include.is_quoted and include.is_certain and not is_toolkit(include.name):
                    found.missing.append((path, include))
                continue
            if target in seen:
                continue
            seen.add(target)
            is_inside = is_own and is_beside and target.is_relative_to(top)
            (found.own if is_inside else found.context)[target] = known[target]
            pending.append((target, top))
    found.missing.sort(key=lambda each: (str(each[0]), each[1].offset))
    return found


def _resolve(
    include: Include, beside: Path, folders: Iterable[Path], read: Read, known: dict[Path, bytes]
) -> tuple[Path | None, bool]:
    places = [(beside, True)] if include.is_quoted else []
    for folder, is_beside in (*places, *((each, False) for each in folders)):
        target = Path(os.path.normpath(folder / include.name))
        if target not in known:
            data = read(target)
            if data is None:
                continue
            known[target] = data
        return target, is_beside
    return None, False
