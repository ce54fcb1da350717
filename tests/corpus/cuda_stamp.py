# SPDX-License-Identifier: Apache-2.0
"""Does stamping reach every sync call of CUDA C++ projects, and does the original survive it? Fetches nothing.

`python -m tests.corpus.cuda_stamp FOLDER…` stamps each folder as one unit, as `autostamp instrument --project` does, and
compares the result with the count of tests/corpus/cuda_calls.py, which is made from text alone. Exit status 1 when a check
fails on any file or less than 97 % of what is counted in a project has a stamp.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autostamp.model.site import Span
from autostamp.passes import edits as editing
from autostamp.passes.cuda.functions import index
from autostamp.passes.cuda.instrument import Project, instrument
from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.recognise import Recognizer
from autostamp.passes.cuda.source import parse
from autostamp.passes.stamped import Stamped
from tests.corpus.cuda_calls import MAY_SYNC, SUFFIXES, _places, hits, uncommented

LIMIT = 0.97
POLLS = frozenset(
    (
        *("try_wait", "test_wait", "producer_try_acquire", "consumer_try_wait"),
        *("mbarrier_try_wait", "mbarrier_test_wait", "mbarrier.try_wait", "mbarrier.test_wait"),
    )
)
"""Names of what asks without blocking: a sync only where a loop asks until the answer is yes."""

WRAPPER, POLL = "AS2103", "AS2101"
DEFINITIONS = """\
counted    calls and asm statements of device code that wait or signal, by text alone (tests/corpus/cuda_calls.py): named
           functions of CUDA, CUTLASS, CuTe, libcu++, and the PTX instructions that block or arrive. Polls (try_wait,
           test_wait), fences and the setup of barriers are none; a poll in a loop that spins counts with its loop. Calls of
           functions that do several sync ops are none either: what these functions do is counted where it stands.
stamped    of these, the sites with stamps.
in wrapper of these, those in the body of a recognised wrapper (AS2103): its callers have the stamps.
listed     of these, those that the findings give with another code: bodies of macros (AS2112), functions that are never
           inlined (AS2111), functions of .cu files, or of unstamped libraries' kernels, that no stamped kernel reaches (AS2115).
missed     the rest: no stamp, no finding.
share      (stamped + in wrapper) / counted; at least 97 % in every project."""

_TOKEN = re.compile(rb"AUTOSTAMP_(?:WARP_)?([A-Z]+)(\w*)")
# Which blank each stamp brings along: one after it where it opens something, one before it where it ends something.
_BLANK_AFTER = frozenset({b"ENTER", b"OPEN", b"AROUND", b"AFTER", b"PREPARE", b"LAUNCHER", b"INLINE", b"ALWAYS"})
_WITHOUT_ARGUMENTS = frozenset({b"OPEN", b"CLOSE", b"PARAM", b"INLINE", b"ALWAYS"})
_SEAL = re.compile(rb"(?:\A|(?<=\n))// autostamp: stamped [^\n]*\n?\Z")
_LISTS = re.compile(rb"\s*(?:<[^;{}()]*>)?\s*\(")


@dataclass(slots=True)
class Result:
    """What stamping one project gave. `failures` are checks that a file did not pass."""

    project: str
    files: int = 0
    bearing: int = 0
    sites: int = 0
    seconds: float = 0.0
    skips: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    stamped: int = 0
    in_wrappers: int = 0
    listed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Part of what was counted that has a stamp, be it at the callers of a wrapper."""
        return (self.stamped + self.in_wrappers) / self.counted if self.counted else 1.0

    @property
    def is_good(self) -> bool:
        """True when all checks passed and the share is high enough."""
        return not self.failures and self.share >= LIMIT


def without_stamps(stamped: bytes) -> bytes:
    """The stamped text less its two first lines, the seal's line, and every stamp with its arguments and its blank.

    Where the original does not end with a line end, the one before the seal stays.
    """
    text = _SEAL.sub(b"", stamped)
    bom = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    text = text[:bom] + text[bom:].split(b"\n", 2)[2]
    pieces: list[bytes] = []
    at = 0
    while (match := _TOKEN.search(text, at)) is not None:
        start, end = match.span()
        kind, suffix = match.groups()
        is_end = (kind, suffix) == (b"AROUND", b"_END")
        if kind not in _WITHOUT_ARGUMENTS and not is_end:
            end = _closing(text, end)
        if kind in _BLANK_AFTER and not is_end:
            end += 1
        elif not suffix.endswith(b"_ONLY"):
            start -= 1
        pieces.append(text[at:start])
        at = end
    return b"".join([*pieces, text[at:]])


def _closing(text: bytes, opening: int) -> int:
    """The offset behind the parenthesis that closes the one at `opening`."""
    depth, at = 0, opening
    while True:
        depth += {40: 1, 41: -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at


def read(place: Path) -> dict[Path, bytes]:
    """The sources of a folder, in order, or the one file."""
    found = sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    found = [place] if place.is_file() else found
    return {path: path.read_bytes() for path in found}


def check(
    name: str, files: Mapping[Path, bytes], beside: Mapping[Path, bytes] | None = None, *, is_twice: bool = True
) -> Result:
    """Stamp the files as one unit, check every one of them, and tell what became of the sync calls in them.

    `beside` are files of libraries that belong to the unit: they are stamped and checked, but nothing in them is counted.
    """
    result = Result(name, len(files))
    start = time.process_time()
    everything = {**(beside or {}), **files}
    project = instrument(everything)
    result.seconds = time.process_time() - start
    again = instrument({path: each.text for path, each in project.stamped.items()}) if is_twice else project
    for path, each in project.stamped.items():
        result.failures += [f"{path}: {what}" for what in _failures(everything[path], each, again.stamped[path])]
        if path not in files:
            continue
        result.sites += len(each.file.sites)
        result.skips.update(skip.code for skip in each.file.skips)
    # Findings of AS1011 are among the skips, too.
    result.skips["AS1012"] = sum(note.code == "AS1012" for note in project.notes)
    _compare(files, project, result)
    return result


def _failures(original: bytes, stamped: Stamped, again: Stamped) -> list[str]:
    if not stamped.is_changed:
        return [] if stamped.text == original else ["a file without stamps was changed"]
    found = []
    if editing.strip(stamped.text, "") != original:
        found.append("strip(stamp(x)) differs from x")
    if again.text != stamped.text:
        found.append("stamping twice differs from stamping once")
    if without_stamps(stamped.text).removesuffix(b"\n") != original.removesuffix(b"\n"):
        found.append("without its stamps the text differs from the original")
    return found


def _compare(files: Mapping[Path, bytes], project: Project, result: Result) -> None:
    """What became of each counted call: a site, a skip, or nothing."""
    open_hits: dict[Path, list[tuple[int, str]]] = {}
    notes = {(at.path, at.line): note.code for note in project.notes if (at := note.position) is not None}
    for path, data in files.items():
        found = list(hits(data)) if MAY_SYNC.search(data) else []
        result.bearing += bool(found)
        if not found:
            continue
        file = project.stamped[path].file
        plain = uncommented(data)
        sites = {site.span.end: site.span for site in file.sites}
        skips = {skip.span.end: (skip.span, skip.code) for skip in file.skips}
        for offset, name in found:
            end = _end_of_call(plain, offset, name)
            span, code = skips.get(end, (None, ""))
            line = data.count(b"\n", 0, offset) + 1
            if _holds(sites.get(end), offset):
                result.counted += 1
                result.stamped += 1
            elif _holds(span, offset):
                _listed(result, code, name, f"{path}:{line}: {name}")
            elif (str(path), line) in notes:
                _listed(result, notes[str(path), line], name, f"{path}:{line}: {name}")
            else:
                open_hits.setdefault(path, []).append((offset, name))
    if open_hits:
        _unlisted(files, open_hits, result)


def _listed(result: Result, code: str, name: str, text: str) -> None:
    if code == POLL and name in POLLS:
        return
    result.counted += 1
    if code == WRAPPER:
        result.in_wrappers += 1
    else:
        result.listed[code] += 1
        result.examples.setdefault(code, []).append(text)


def _holds(span: Span | None, offset: int) -> bool:
    return span is not None and span.start <= offset < span.end


def _end_of_call(plain: bytes, offset: int, name: str) -> int:
    """Where the call at `offset` ends: behind the parenthesis that closes its arguments."""
    asm = re.match(rb"(?:asm|__asm__|__asm)\b[\s\w]*\(", plain[offset : offset + 200])
    lists = None if asm else _LISTS.match(plain, offset + len(name))
    opening = offset + asm.end() - 1 if asm else lists.end() - 1 if lists else -1
    if opening < 0:
        return -1
    depth, at, quoted = 0, opening, False
    while at < len(plain):
        if plain[at] == 34 and plain[at - 1] != 92:
            quoted = not quoted
        elif not quoted:
            depth += {40: 1, 41: -1}.get(plain[at], 0)
            if depth == 0:
                return at + 1
        at += 1
    return -1


def _unlisted(files: Mapping[Path, bytes], found: Mapping[Path, Sequence[tuple[int, str]]], result: Result) -> None:
    """Calls of functions that do several sync ops are no sync of their own; what is left was missed."""
    macros = learn(files.values())
    sources = {path: parse(data, macros) for path, data in files.items() if MAY_SYNC.search(data)}
    known = index(sources)
    places = _places(known, Recognizer(known, sources))
    for path, each in found.items():
        _, wrappers, _, callees = places.get(path, (set(), [], [], set()))
        for offset, name in each:
            if offset in callees:
                continue
            result.counted += 1
            # What a wrapper like those of a library forwards to is no call that a finding would name.
            if any(start <= offset < end for start, end in wrappers):
                result.in_wrappers += 1
                continue
            data = files[path]
            text = data[offset : offset + 70].split(b"\n")[0].decode("utf-8", "replace")
            line = data.count(b"\n", 0, offset) + 1
            result.missed.append(f"{path}:{line}: {name}: {text}")


def table(results: Sequence[Result]) -> str:
    """One line for each project, then its skips by code."""
    lines = [
        f"{'project':44} files bearing sites counted stamped in wrapper listed missed  share  CPU s",
    ]
    for each in results:
        lines.append(
            f"{each.project:44} {each.files:5} {each.bearing:7} {each.sites:5} {each.counted:7} {each.stamped:7} "
            f"{each.in_wrappers:10} {each.listed.total():6} {len(each.missed):6} {each.share:6.1%} {each.seconds:6.0f}"
        )
    lines.append("")
    for each in results:
        skips = " ".join(f"{code} {count}" for code, count in sorted(each.skips.items()) if count)
        listed = " ".join(f"{code} {count}" for code, count in sorted(each.listed.items())) or "none"
        lines += [f"{each.project}: findings {skips or 'none'}; listed of the counted: {listed}"]
    return "\n".join([*lines, "", DEFINITIONS])


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the folders and print a table; 0 when all are good."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.cuda_stamp", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--examples", type=int, default=5, help="texts shown of each kind (default %(default)s)")
    parser.add_argument(
        "--with",
        dest="beside",
        action="append",
        default=[],
        type=Path,
        help="a library's file or folder that is stamped along with every project and not counted",
    )
    parser.add_argument("--once", action="store_true", help="do not stamp the stamped files again")
    options = parser.parse_args(arguments)
    beside = {path: data for place in options.beside for path, data in read(place).items()}
    results = []
    for folder in options.folders:
        result = check(folder.as_posix()[-44:], read(folder), beside, is_twice=not options.once)
        results.append(result)
        groups = {"failed": result.failures, "missed": result.missed, **result.examples}
        for title, texts in groups.items():
            for text in texts[: options.examples]:
                print(f"    {title}: {text}", flush=True)
    print(table(results))
    return 0 if all(each.is_good for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
