# SPDX-License-Identifier: Apache-2.0
"""The words of an nvcc command line as options with their values.

The options are those that `nvcc --help` of CUDA 13.0 lists ("NVIDIA CUDA Compiler Driver NVCC", chapter "NVCC Command
Options"). A long name has two hyphens and a short one has one; a value is the next word or follows `=`; a few one-letter
options take it joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

VALUED: Final = {
    "D": "define-macro",
    "I": "include-path",
    "L": "library-path",
    "MF": "dependency-output",
    "MT": "dependency-target-name",
    "O": "optimize",
    "Ofc": "Ofast-compile",
    "U": "undefine-macro",
    "Werror": "Werror",
    "Xarchive": "archive-options",
    "Xcompiler": "compiler-options",
    "Xlinker": "linker-options",
    "Xnvlink": "nvlink-options",
    "Xptxas": "ptxas-options",
    "arbin": "archiver-binary",
    "arch": "gpu-architecture",
    "brief-diag": "brief-diagnostics",
    "ccbin": "compiler-bindir",
    "code": "gpu-code",
    "compress-mode": "compress-mode",
    "create-pch": "create-pch",
    "cudadevrt": "cudadevrt",
    "cudart": "cudart",
    "ddp": "dependency-drive-prefix",
    "default-stream": "default-stream",
    "device-entity-has-hidden-visibility": "device-entity-has-hidden-visibility",
    "device-stack-protector": "device-stack-protector",
    "diag-error": "diag-error",
    "diag-suppress": "diag-suppress",
    "diag-warn": "diag-warn",
    "dopt": "dopt",
    "dp": "drive-prefix",
    "e": "entries",
    "fdevice-time-trace": "fdevice-time-trace",
    "fmad": "fmad",
    "frandom-seed": "frandom-seed",
    "ftemplate-backtrace-limit": "ftemplate-backtrace-limit",
    "ftemplate-depth": "ftemplate-depth",
    "ftz": "ftz",
    "gencode": "generate-code",
    "hls": "host-linker-script",
    "idp": "input-drive-prefix",
    "include": "pre-include",
    "isystem": "system-include",
    "jtd": "jump-table-density",
    "keep-dir": "keep-dir",
    "l": "library",
    "ldir": "libdevice-directory",
    "m": "machine",
    "maxrregcount": "maxrregcount",
    "o": "output-file",
    "odir": "output-directory",
    "opt-info": "optimization-info",
    "optf": "options-file",
    "pch-dir": "pch-dir",
    "prec-div": "prec-div",
    "prec-sqrt": "prec-sqrt",
    "qpp-config": "qpp-config",
    "rdc": "relocatable-device-code",
    "run-args": "run-args",
    "sanitize": "sanitize",
    "split-compile": "split-compile",
    "split-compile-extended": "split-compile-extended",
    "static-global-template-stub": "static-global-template-stub",
    "std": "std",
    "t": "threads",
    "target-dir": "target-directory",
    "time": "time",
    "use-pch": "use-pch",
    "x": "x",
}
"""Options that take a value: short name to long name."""

FLAGS: Final = {
    "E": "preprocess",
    "M": "generate-dependencies",
    "MD": "generate-dependencies-with-compile",
    "MM": "generate-nonsystem-dependencies",
    "MMD": "generate-nonsystem-dependencies-with-compile",
    "MP": "generate-dependency-targets",
    "V": "version",
    "arch-ls": "list-gpu-arch",
    "c": "compile",
    "clean": "clean-targets",
    "code-ls": "list-gpu-code",
    "cubin": "cubin",
    "dc": "device-c",
    "dlink": "device-link",
    "dryrun": "dryrun",
    "fatbin": "fatbin",
    "fdevice-syntax-only": "fdevice-syntax-only",
    "h": "help",
    "keep": "keep",
    "lib": "lib",
    "lineinfo": "generate-line-info",
    "link": "link",
    "lto": "lto",
    "ltoir": "ltoir",
    "optix-ir": "optix-ir",
    "pch": "pch",
    "ptx": "ptx",
    "run": "run",
    "save-temps": "save-temps",
}
"""Options without a value that matter here, or that start with the letter of one whose value may be joined."""

_JOINED: Final = "DILOUlt"
_SHORT: Final = {f"--{long}": short for short, long in {**VALUED, **FLAGS}.items()}


@dataclass(frozen=True, slots=True)
class Item:
    """One option by its short name, or one input (name ""), with its value and the words that spell it."""

    name: str
    value: str
    words: tuple[str, ...]


def items_of(words: Sequence[str]) -> Iterator[Item]:
    """The options and inputs that the words spell, in order. Every word belongs to exactly one item."""
    rest = iter(words)
    for word in rest:
        name, value = _option(word)
        if name not in VALUED or value is not None:
            yield Item(name, value or "", (word,))
            continue
        following = next(rest, None)
        yield Item(name, following or "", (word,) if following is None else (word, following))


def _option(word: str) -> tuple[str, str | None]:
    """(short name, joined value) of one word; an input has the name "" and itself as its value."""
    if word == "-" or not word.startswith("-"):
        return "", word
    name, equals, value = word.partition("=")
    short = _SHORT.get(name, name) if word.startswith("--") else name[1:]
    if short in VALUED or short in FLAGS:
        return short, value if equals else None
    if not word.startswith("--") and word[1] in _JOINED:
        return word[1], word[2:].removeprefix("=")
    return short, value if equals else None


def split_response(text: str) -> list[str]:
    """Words of a response file: white space parts them, `"` joins, a backslash takes the next character as it is."""
    words: list[str] = []
    for match in re.finditer(r'(?:[^\s"\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"?)+', text):
        words.append(re.sub(r'\\([\s\S])|"', lambda part: part[1] or "", match[0]))
    return words
