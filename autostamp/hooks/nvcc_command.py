# SPDX-License-Identifier: Apache-2.0
"""An nvcc command line, read: what it compiles, where it looks for headers, and the words of a changed command.

Response files and NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS are read too, and left where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from autostamp.hooks.nvcc_options import VALUED, Item, items_of, split_response

_COMPILES_NOTHING: Final = {
    "E": "it preprocesses only",
    "M": "it lists dependencies only",
    "MM": "it lists dependencies only",
    "V": "it asks for the version",
    "arch-ls": "it lists architectures",
    "clean": "it deletes outputs",
    "code-ls": "it lists architectures",
    "dlink": "it links device code",
    "dryrun": "it compiles nothing",
    "fdevice-syntax-only": "it checks the syntax only",
    "h": "it asks for help",
}
_PRECOMPILED: Final = ("pch", "create-pch", "use-pch")
_DEVICE_ONLY: Final = ("cubin", "fatbin", "ptx", "optix-ir", "ltoir")
_NO_SOURCE: Final = frozenset(
    (".a", ".cubin", ".fatbin", ".gpu", ".i", ".ii", ".lib", ".ltoir", ".o", ".obj", ".ptx", ".res", ".so")
)
COMPILER_CACHES: Final = ("ccache", "sccache", "distcc", "icecc")
"""Programs that may stand between: they take a compiler's command line and run it, or not."""

_DEPENDENCY_OPTIONS: Final = ("M", "MD", "MF", "MM", "MMD", "MP", "MT")
_NOT_IN_QUERY: Final = frozenset((*_DEPENDENCY_OPTIONS, "keep", "keep-dir", "o", "save-temps", "time"))
_HOST_SEARCH: Final = ("-I", "-isystem", "-iquote", "-idirafter")
_MAX_NESTED: Final = 16


@dataclass(frozen=True, slots=True)
class SearchFolder:
    """A folder that headers are looked for in: the host compiler's option for it, and the folder as written."""

    option: str
    folder: str


@dataclass(frozen=True)
class NvccCommand:
    """A command line: the words up to the compiler, what follows them, and what response files and the environment add."""

    launcher: tuple[str, ...]
    items: tuple[Item, ...]
    before: tuple[Item, ...] = ()
    after: tuple[Item, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str], environment: Mapping[str, str]) -> NvccCommand:
        """Read `[ccache] nvcc arguments`. Response files that cannot be read count as empty: nvcc will say so."""
        count = 1
        while count < len(words) and Path(words[count - 1]).name in COMPILER_CACHES:
            count += 1
        prepended, appended = (environment.get(f"NVCC_{side}_FLAGS", "").split() for side in ("PREPEND", "APPEND"))
        return cls(
            tuple(words[:count]),
            tuple(items_of(words[count:])),
            tuple(_expanded(items_of(prepended))),
            tuple(_expanded(items_of(appended))),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The command as it was given."""
        return (*self.launcher, *(word for item in self.items for word in item.words))

    @property
    def compiler(self) -> str:
        """The compiler as written, behind any compiler cache."""
        return self.launcher[-1]

    @cached_property
    def everything(self) -> tuple[Item, ...]:
        """All items in the order of their effect, those of response files and the environment included."""
        return (*self.before, *_expanded(self.items), *self.after)

    def has(self, *names: str) -> bool:
        """True when one of these options is given."""
        return any(item.name in names for item in self.everything)

    def last(self, name: str) -> str:
        """The value that counts of an option that holds one value; "" when it is not given."""
        return next((item.value for item in reversed(self.everything) if item.name == name), "")

    def listed(self, name: str) -> list[str]:
        """All values of an option that holds a list: repeated, or parted by commas."""
        return [part for item in self.everything if item.name == name for part in item.value.split(",") if part]

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Inputs that nvcc compiles for the device, as written on the command line."""
        return tuple(item.value for item in self.items if self._is_source(item))

    def _is_source(self, item: Item) -> bool:
        if item.name or not item.value or item.value == "-":
            return False
        suffix = Path(item.value).suffix
        language = self.last("x")
        return suffix not in _NO_SOURCE if language == "cu" else suffix == ".cu" and not language

    def why_unchanged(self) -> str:
        """Why the command is to be run as it is; "" when it compiles device code from files named on its command line."""
        for name, reason in _COMPILES_NOTHING.items():
            if self.has(name):
                return reason
        if any(item.name in VALUED and not item.value for item in self.items):
            return "an option lacks its value"
        return "" if any(self._is_source(item) for item in self.everything) else "it compiles no device code"

    def why_impossible(self) -> str:
        """Why device code that is compiled cannot be stamped through this command line; "" when it can."""
        if sum(self._is_source(item) for item in self.everything) > len(self.sources):
            return "a source is named in a response file or in NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS"
        return "it uses precompiled headers" if self.has(*_PRECOMPILED) else ""

    @property
    def is_device_only(self) -> bool:
        """True when the output holds no host code, so that what launches the kernels is compiled elsewhere."""
        return self.has(*_DEVICE_ONLY)

    @property
    def is_relocatable(self) -> bool:
        """True for relocatable device code (-dc, -rdc=true), where a call may lead to another translation unit."""
        return self.has("dc") or self.last("rdc") == "true"

    @property
    def runs_the_program(self) -> bool:
        """True for -run: the exit status is then the program's."""
        return self.has("run")

    @property
    def architectures(self) -> tuple[str, ...]:
        """Values of __CUDA_ARCH__ (`900`) for the architectures that are named; "native" and "all" name none."""
        named = " ".join(item.value for item in self.everything if item.name in ("arch", "code", "gencode"))
        return tuple(sorted({f"{digits}0" for digits in re.findall(r"(?:compute|sm|lto)_(\d+)", named)}))

    @property
    def output(self) -> str:
        """The file after -o, as written; "" when nvcc derives the name."""
        return self.last("o")

    def dependency_files(self) -> list[Path]:
        """The make rules that -MD and -MMD write: -MF, or named for -o, or for each source in -odir or the working folder."""
        if not self.has("MD", "MMD"):
            return []
        if self.last("MF"):
            return [Path(self.last("MF"))]
        if self.output:
            return [Path(self.output).with_suffix(".d")]
        return [Path(self.last("odir"), Path(source).name).with_suffix(".d") for source in self.sources]

    def search_folders(self) -> list[SearchFolder]:
        """Folders named for headers, in the order in which each kind is searched; the host compiler's options included."""
        found = [SearchFolder("-I", folder) for folder in self.listed("I")]
        found += [SearchFolder("-isystem", folder) for folder in self.listed("isystem")]
        host = [part for value in self.listed("Xcompiler") for part in value.split()]
        host += [item.words[0] for item in self.everything if item.name.startswith(("iquote", "idirafter"))]
        at = 0
        while at < len(host):
            for option in _HOST_SEARCH:
                if host[at] == option and at + 1 < len(host):
                    at += 1
                    found.append(SearchFolder(option, host[at]))
                    break
                if host[at].startswith(option) and len(host[at]) > len(option):
                    found.append(SearchFolder(option, host[at].removeprefix(option)))
                    break
            at += 1
        return found

    def defines(self, macro: str) -> bool:
        """True when the command defines the macro itself."""
        return any(value.partition("=")[0] == macro for value in self.listed("D"))

    def rewritten(self, added: Iterable[str], replaced: Mapping[str, str]) -> list[str]:
        """The command with words added right behind the compiler, and other files for sources and -include files."""
        words = [*self.launcher, *added]
        for item in self.items:
            if self._is_source(item):
                words.append(replaced.get(item.value, item.value))
            elif item.name == "include" and any(file in replaced for file in item.value.split(",")):
                files = [replaced.get(file, file) for file in item.value.split(",")]
                words += ["-include", ",".join(files)]
            else:
                words += item.words
        return words

    def query(self, rules: Path, added: Iterable[str] = ()) -> list[str]:
        """A command that writes the make rules of the sources alone, system headers included, and compiles nothing."""
        kept = [item for item in self.items if item.name not in _NOT_IN_QUERY and (item.name or self._is_source(item))]
        return [*replace(self, items=tuple(kept)).words, *added, "-M", "-MF", str(rules)]


def _expanded(items: Iterable[Item], depth: int = 0) -> Iterator[Item]:
    """Items with those of response files in the place of the option that names them."""
    for item in items:
        if item.name != "optf" or depth > _MAX_NESTED:
            yield item
            continue
        for file in item.value.split(","):
            try:
                text = Path(file).read_text(encoding="utf-8", errors="surrogateescape")
            except OSError:
                continue
            yield from _expanded(items_of(split_response(text)), depth + 1)


def is_nvcc(compiler: str) -> bool:
    """True for a compiler that goes by the name of nvcc, such as `/usr/local/cuda/bin/nvcc` or `nvcc-13`."""
    return "nvcc" in Path(compiler).name
