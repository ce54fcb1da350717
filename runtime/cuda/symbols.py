# SPDX-License-Identifier: Apache-2.0
"""The symbol of a kernel in a cubin: C++ names are mangled there."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.prototype import Prototype

_TEXT: Final = ".text."
_UNNAMED: Final = "_GLOBAL__N_"
"""How the Itanium C++ ABI mangles an unnamed namespace; nvcc appends a name of the unit's."""

_ELF_SECTIONS: Final = struct.Struct("<Q10xHHH")
_ELF_SECTION: Final = struct.Struct("<I20xQQ24x")


def functions(cubin: bytes) -> list[str]:
    """Symbols of the functions in a cubin: a cubin is an ELF file with a section `.text.SYMBOL` for each (cuda-binary-utilities).

    Raises ValueError for what is no 64-bit ELF file.
    """
    if cubin[:5] != b"\x7fELF\x02":
        message = "not a 64-bit ELF file"
        raise ValueError(message)
    # Elf64_Ehdr: e_shoff at 0x28, e_shentsize, e_shnum and e_shstrndx at 0x3a; Elf64_Shdr: sh_name, sh_offset and sh_size.
    offset, size, count, names = _ELF_SECTIONS.unpack_from(cubin, 0x28)
    sections = [_ELF_SECTION.unpack_from(cubin, offset + number * size) for number in range(count)]
    strings = cubin[sections[names][1] : sections[names][1] + sections[names][2]]
    found = [strings[name : strings.index(b"\0", name)].decode() for name, _, _ in sections]
    return [name.removeprefix(_TEXT) for name in found if name.startswith(_TEXT)]


def symbol_of(prototype: Prototype, symbols: list[str]) -> str:
    """The symbol of a kernel among those of its cubin. Raises AS1021 when several may be meant, AS1028 when none is."""
    wanted = (*prototype.scope, prototype.bare_name)
    if prototype.is_c:
        found = [symbol for symbol in symbols if symbol == prototype.bare_name]
    else:
        found = [symbol for symbol in symbols if _fits(symbol, wanted, is_template=prototype.is_template)]
        found = [symbol for symbol in found if _path(symbol)[0] == wanted] or found
    if len(found) > 1 and prototype.is_template:
        found = [symbol for symbol in found if _demangled(symbol, prototype)] or found
    if not found:
        raise AutostampError.of("AS1028", kernel=prototype.name, detail="its code is not in the cubin")
    if len(found) > 1:
        raise AutostampError.of("AS1021", name=prototype.name, places=" and ".join(found))
    return found[0]


def _fits(symbol: str, wanted: tuple[str, ...], *, is_template: bool) -> bool:
    """Whether a symbol names a function of this path; inline and unnamed namespaces may stand in between."""
    path, has_arguments = _path(symbol)
    if not path or path[-1] != wanted[-1] or has_arguments != is_template:
        return False
    rest = iter(path)
    return all(name in rest for name in wanted)


def _path(symbol: str) -> tuple[tuple[str, ...], bool]:
    """(names of a mangled function, whether template arguments follow): Itanium C++ ABI 5.1.3, `<encoding>`."""
    if not symbol.startswith("_Z"):
        return (), False
    is_nested = symbol[2:3] == "N"
    at = 3 if is_nested else 2
    names: list[str] = []
    while match := re.compile(r"L?(\d+)").match(symbol, at):
        begin = match.end()
        at = begin + int(match[1])
        names.append(symbol[begin:at])
        if not is_nested:
            break
    return tuple(name for name in names if not name.startswith(_UNNAMED)), symbol[at : at + 1] == "I"


def _demangled(symbol: str, prototype: Prototype) -> bool:
    """Whether the symbol, demangled, is this instance; c++filt comes with the host compiler that nvcc needs."""
    tool = shutil.which("c++filt") or shutil.which("cu++filt")
    if tool is None:
        return False
    done = subprocess.run([tool, symbol], capture_output=True, text=True, check=False, timeout=60)
    return f"{prototype.bare_name}<{prototype.name.partition('<')[2]}(".replace(" ", "") in done.stdout.replace(" ", "")
