# SPDX-License-Identifier: Apache-2.0
"""Make rules as nvcc writes them for -M and -MD: reading the prerequisites, and giving files their own names back.

Names are quoted as by GCC (libcpp/mkdeps.cc, `munge`): a backslash before white space and `#`, two for one in front of those,
and `$$` for `$`. nvcc 13 writes one prerequisite on a line, GCC fills lines; with -MP an empty rule follows for each header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_CONTINUED: Final = re.compile(r"[ \t]*\\\r?\n[ \t]*")
_RULE: Final = re.compile(r"(?P<target>.*?[^\\\s])(?P<colon>\s*:)(?:\s+(?P<rest>.*))?")
_NAME: Final = re.compile(r"(?:\\.|[^\s\\])+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its target and colon as written, and its prerequisites as the file system knows them."""

    head: str
    prerequisites: tuple[str, ...]

    def __str__(self) -> str:
        """The rule in nvcc's form."""
        if not self.prerequisites:
            return f"\n{self.head}\n"
        return f"{self.head} " + " \\\n    ".join(map(quoted, self.prerequisites)) + "\n"


def unquoted(name: str) -> str:
    """A name of a make rule as the file system knows it."""
    return re.sub(r"\\([\s#:\\])", r"\1", name).replace("$$", "$")


def quoted(name: str) -> str:
    """A file's name as a make rule spells it."""
    spaced = re.sub(r"(\\*)([ \t])", lambda match: f"{match[1] * 2}\\{match[2]}", name)
    return spaced.replace("$", "$$").replace("#", "\\#")


def read(text: str) -> list[Rule]:
    """The rules of a text."""
    found = []
    for line in _CONTINUED.sub(" ", text).splitlines():
        match = _RULE.fullmatch(line.rstrip())
        if match:
            names = tuple(map(unquoted, _NAME.findall(match["rest"] or "")))
            found.append(Rule(match["target"] + match["colon"], names))
    return found


def prerequisites(text: str) -> list[str]:
    """Every prerequisite of every rule once, in order."""
    return list(dict.fromkeys(name for rule in read(text) for name in rule.prerequisites))


def restored(text: str, name_of: Callable[[str], str], listed: Sequence[str]) -> str:
    """The rules with every file renamed by `name_of`, of which those that `listed` names are kept, each once, in its order."""
    order = {name: number for number, name in enumerate(listed)}
    written: list[Rule] = []
    empty: dict[str, None] = {}
    sources = set()
    for rule in read(text):
        names = {name_of(name) for name in rule.prerequisites}
        if rule.prerequisites:
            sources.add(name_of(rule.prerequisites[0]))
            written.append(Rule(rule.head, tuple(sorted(names.intersection(order), key=order.__getitem__))))
        else:
            empty[name_of(unquoted(rule.head.rstrip(" :")))] = None
    phony = sorted((set(empty) & order.keys()) - sources, key=order.__getitem__)
    return "".join(map(str, [*written, *(Rule(f"{quoted(name)}:", ()) for name in phony)]))
