# SPDX-License-Identifier: Apache-2.0
"""nvcc: where it is, what it knows, compiling a unit to a cubin, and reading what it says."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError, Position
from autostamp.runtime.toolchain import HOMES

TIMEOUT_S: Final = 1800
"""A unit that includes CUTLASS may take minutes for one kernel."""

FIRST_RELEASE: Final[dict[str, tuple[int, int]]] = {
    "sm_80": (11, 0),
    "sm_86": (11, 1),
    "sm_87": (11, 5),
    "sm_89": (11, 8),
    "sm_90": (11, 8),
    "sm_90a": (12, 0),
    "sm_100": (12, 8),
    "sm_100a": (12, 8),
    "sm_103": (12, 9),
    "sm_103a": (12, 9),
    "sm_110": (13, 0),
    "sm_110a": (13, 0),
    "sm_120": (12, 8),
    "sm_120a": (12, 8),
    "sm_121": (12, 9),
    "sm_121a": (12, 9),
}
"""The CUDA release that brought each architecture (PTX ISA, release notes: target architectures by PTX ISA version)."""

_RELEASE: Final = re.compile(r"\brelease (\d+)\.(\d+)")
_FRONT_END: Final = re.compile(
    r"(?P<path>[^\n]+?)\((?P<line>\d+)\): (?P<severity>catastrophic error|error|warning)(?: #[\w-]+)?: (?P<text>.*)"
)
_HOST: Final = re.compile(
    r"(?P<path>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<severity>fatal error|error|warning): (?P<text>.*)"
)
_TOOL: Final = re.compile(
    r"(?P<tool>nvcc|ptxas|nvlink|cicc)\b[^:\n]*?\b(?P<severity>fatal|error|warning|info)\s*:\s*(?P<text>.*)"
)
_PERFORMANCE: Final = re.compile(r"\(C75\d\d\)")
"""ptxas's advisories, such as C7515: wgmma instructions are serialized."""


@dataclass(frozen=True, slots=True)
class Nvcc:
    """An nvcc and its release."""

    path: Path
    release: tuple[int, int]

    @property
    def version(self) -> str:
        """The release as people write it."""
        return f"{self.release[0]}.{self.release[1]}"


@dataclass(frozen=True, slots=True)
class Flags:
    """What the user's build gives nvcc: architecture, language standard, -I folders, -D macros, and anything else."""

    arch: str = "sm_90a"
    std: str = "c++17"
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """As nvcc takes them."""
        return [
            f"-arch={self.arch}",
            f"-std={self.std}",
            *(f"-I{folder}" for folder in self.includes),
            *(f"-D{macro}" for macro in self.defines),
            *self.extra,
        ]


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `line` and `column` are 0 where nvcc named none; the column is that of `shown`, the line as nvcc shows it.

    `tool` is the program that speaks for itself and not of a line: nvcc, cicc, ptxas or nvlink.
    """

    severity: str
    text: str
    path: str = ""
    line: int = 0
    column: int = 0
    shown: str = ""
    tool: str = ""

    @property
    def is_error(self) -> bool:
        """True for what stops the compilation."""
        return "error" in self.severity or self.severity == "fatal"

    @property
    def is_performance(self) -> bool:
        """True for an advisory of ptxas about instructions that it had to serialize or could not overlap."""
        return bool(_PERFORMANCE.search(self.text))


@dataclass(frozen=True, slots=True)
class Compilation:
    """What nvcc made of a unit: the cubin (None when it failed), its messages, and all that it printed."""

    cubin: Path | None
    messages: tuple[Message, ...]
    output: str

    @property
    def errors(self) -> tuple[Message, ...]:
        """The messages that say why there is no cubin."""
        return tuple(message for message in self.messages if message.is_error)


def find() -> Nvcc:
    """The nvcc of CUDA_HOME or CUDA_PATH, else the one on PATH. Raises AS4010 without one, AS4014 when it does not answer."""
    homes = [Path(os.environ[home], "bin", "nvcc") for home in HOMES if os.environ.get(home)]
    present = [path for path in homes if path.is_file() and os.access(path, os.X_OK)]
    found = str(present[0]) if present else shutil.which("nvcc")
    if found is None:
        raise AutostampError.of("AS4010")
    said = _run([found, "--version"], 60).stdout
    release = _RELEASE.search(said)
    if release is None:
        raise AutostampError.of("AS4014", detail=f"`{found} --version` names no release")
    return Nvcc(Path(found), (int(release[1]), int(release[2])))


def tensor_map_alignment() -> int:
    """alignof(CUtensorMap) in the cuda.h of the nvcc that there is: 128 bytes from CUDA 13.0 on, 64 before; 128 without one."""
    try:
        release = find().release
    except AutostampError:  # what is to be compiled says so later
        return 128
    return 128 if release >= (13, 0) else 64


def require(nvcc: Nvcc, arch: str) -> None:
    """Raise AS4011 when the release is older than the architecture. One that is not in the table is left to nvcc."""
    needed = FIRST_RELEASE.get(arch)
    if needed is not None and nvcc.release < needed:
        raise AutostampError.of("AS4011", found=nvcc.version, arch=arch, needed=f"{needed[0]}.{needed[1]}")


def compile_unit(
    nvcc: Nvcc,
    source: Path,
    text: bytes,
    flags: Flags,
    folder: Path,
    appendix: str = "",
    before: Sequence[str] = (),
) -> Compilation:
    """Compile `text`, which is `source` or a copy of it with stamps, to a cubin in `folder`.

    The text is compiled under the source's file name, `#line` gives messages and `__FILE__` the source's path, and the
    source's folder is searched before those of the flags, as it is for includes in quotes. `appendix` is text for the end of
    the unit, `before` are flags to stand before all others.
    Raises AS4014 when nvcc does not come to compiling.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unit, cubin = folder / source.name, folder / f"{source.stem}.cubin"
    begin = '#line 1 "{}"\n'.format(str(source).replace("\\", "\\\\").replace('"', '\\"'))
    unit.write_bytes(begin.encode() + text.removeprefix(codecs.BOM_UTF8) + appendix.encode())
    words = [*before, f"-I{source.resolve().parent}", *flags.words()]
    done = _run([str(nvcc.path), "-x", "cu", "-cubin", "-o", str(cubin), *words, str(unit)], TIMEOUT_S)
    messages = tuple(read_messages(done.stdout))
    if done.returncode == 0 and cubin.is_file():
        return Compilation(cubin, messages, done.stdout)
    compilation = Compilation(None, messages, done.stdout)
    if all(message.tool == "nvcc" for message in compilation.errors):
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        last = lines[-1] if lines else f"it ended with status {done.returncode}"
        raise AutostampError.of("AS4014", detail=next((line for line in lines if "fatal" in line), last))
    return compilation


def _run(command: list[str], timeout_s: int) -> subprocess.CompletedProcess[str]:
    """Output and errors together, in English: they are parsed."""
    try:
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout_s,
            check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AutostampError.of("AS4014", detail=str(error)) from error


def read_messages(output: str) -> list[Message]:
    """The messages in nvcc's output: of its own front end, of the host's preprocessor, of ptxas and of nvcc itself."""
    found: list[Message] = []
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if match := _FRONT_END.fullmatch(line):
            shown, caret = _pointed(lines[number + 1 : number + 6])
            found.append(Message(match["severity"], match["text"], match["path"], int(match["line"]), caret, shown))
        elif match := _HOST.fullmatch(line):
            place = int(match["line"]), int(match["column"])
            found.append(Message(match["severity"], match["text"], match["path"], *place))
        elif match := _TOOL.fullmatch(line):
            found.append(Message(match["severity"], match["text"], tool=match["tool"]))
    return found


def _pointed(lines: list[str]) -> tuple[str, int]:
    """(source line that the front end shows, column of its caret from 1); ("", 0) when it shows none."""
    for before, line in pairwise(lines):
        if line.strip() == "^":
            return before, line.index("^") + 1
    return "", 0


def position(message: Message, text: bytes) -> Position | None:
    """Where a message is about, in the compiled text. The front end shows a line after preprocessing, with its white space
    changed, so its caret is carried over by counting what is not white.
    """
    if not message.line:
        return None
    lines = text.decode(errors="replace").splitlines()
    source = lines[message.line - 1] if message.line <= len(lines) else ""
    if not message.shown:
        return Position(message.path, message.line, message.column, source)
    before = re.sub(r"\s", "", message.shown[: message.column - 1])
    code = re.sub(r"/\*.*?\*/", lambda comment: " " * len(comment[0]), source)
    places = [column for column, character in enumerate(code, 1) if not character.isspace()]
    if len(places) <= len(before) or not re.sub(r"\s", "", code).startswith(before):
        return Position(message.path, message.line, 1, source, max(len(source.rstrip()), 1))
    return Position(message.path, message.line, places[len(before)], source)
