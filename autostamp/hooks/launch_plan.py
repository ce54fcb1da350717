# SPDX-License-Identifier: Apache-2.0
"""What is to be launched, and the prototype of its kernel read from the file and its headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autostamp.diagnostics import AutostampError
from autostamp.model.prototype import Prototype
from autostamp.passes.cuda.declarations import SourceText
from autostamp.passes.cuda.prototype import TENSOR_MAP_ALIGNMENT, includes, parse_prototype
from autostamp.runtime.cuda.arguments import Arguments
from autostamp.runtime.cuda.device import Shape
from autostamp.runtime.cuda.nvcc import Flags

MAX_HEADERS = 400
"""Headers that are read for the types of a signature: with CUTLASS's include folder named, there would be no end."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One launch: the file and its text, the kernel, its arguments, shape and flags. `repeat` launches are timed."""

    source: Path
    text: bytes
    prototype: Prototype
    arguments: Arguments
    shape: Shape
    flags: Flags
    compare: bool = True
    repeat: int = 0

    @property
    def kernel(self) -> str:
        """The kernel's qualified name, without template arguments."""
        return "::".join((*self.prototype.scope, self.prototype.bare_name))


def read_prototype(
    source: Path,
    text: bytes,
    kernel: str,
    folders: Sequence[str],
    defines: Mapping[str, str],
    tensor_map_alignment: int = TENSOR_MAP_ALIGNMENT,
) -> Prototype:
    """The prototype of a kernel, from the file alone where that is enough, else with the headers that it includes.

    Raises what `parse_prototype` raises, which takes `tensor_map_alignment`.
    """
    own = SourceText(str(source), text.decode(errors="replace"))
    try:
        return parse_prototype([own], kernel, defines, tensor_map_alignment)
    except AutostampError:
        headers = _headers(source, own, [Path(folder) for folder in folders], defines)
        if not headers:
            raise
        return parse_prototype([*headers, own], kernel, defines, tensor_map_alignment)


def _headers(source: Path, own: SourceText, folders: Sequence[Path], defines: Mapping[str, str]) -> list[SourceText]:
    """Headers that are found beside the file that includes them or in a folder of -I, each after those that it includes."""
    found: dict[Path, SourceText] = {}

    def visit(path: Path, text: str) -> None:
        for include in includes(text, defines):
            places = [*([path.parent] if include.is_quoted else []), *folders]
            header = next((place / include.name for place in places if (place / include.name).is_file()), None)
            if header is None or header.resolve() in seen or len(seen) >= MAX_HEADERS:
                continue
            seen.add(header.resolve())
            inside = header.read_text(encoding="utf-8", errors="replace")
            visit(header, inside)
            found[header] = SourceText(str(header), inside)

    seen = {source.resolve()}
    visit(source, own.text)
    return list(found.values())
