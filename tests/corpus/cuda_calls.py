# SPDX-License-Identifier: Apache-2.0
"""Does recognition see every sync call of CUDA C++ sources? Compares it with a count that is made from text alone.

`python -m tests.corpus.cuda_calls FOLDER…` takes each folder as one project. The count knows nothing of the catalogue, of the
opcode table, or of the parser: comments are cut out by one pattern, calls are names before a parenthesis, instructions are
words inside asm statements, and device code is told by the words before the brace that opens the function. Exit status 1 when
more than 3 % of what it counts in a project is not recognised.
"""

from __future__ import annotations

import argparse
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autostamp.passes.cuda.functions import Asm, Call, Function, Index, index
from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.recognise import Recognizer
from autostamp.passes.cuda.source import Source, parse

SUFFIXES = {".cu", ".cuh", ".h", ".hpp", ".inl"}
LIMIT = 0.03
MAY_SYNC = re.compile(rb"\basm\b|__asm|wait|arrive|sync|barrier|commit|acquire|release|_tail|Wait|Arrive|Sync|Barrier")

# Names that mean a sync wherever device code calls them.
NAMES = (
    *("__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count", "__syncwarp"),
    *("producer_acquire", "producer_try_acquire", "producer_commit", "producer_tail"),
    *("consumer_wait", "consumer_try_wait", "consumer_release"),
    *("wait_parity", "arrive_and_wait", "arrive_and_expect_tx", "barrier_arrive_tx", "mbarrier_arrive_expect_tx"),
    *("expect_bytes", "mbarrier_wait", "mbarrier_wait_parity", "wait_barrier", "bar_wait", "barrier_wait"),
    *("named_barrier_sync", "named_barrier_arrive", "mbarrier_try_wait", "mbarrier_test_wait", "mbarrier_arrive"),
    *("barrier_arrive", "cluster_wait", "cluster_sync", "cluster_arrive", "cluster_arrive_relaxed"),
    *("cp_async_wait", "cp_async_fence", "__pipeline_wait_prior", "__pipeline_commit", "cp_async_wait_group"),
    *("cp_async_commit_group", "cp_async_wait_all", "tma_store_wait", "tma_store_arrive", "tma_store_commit"),
    *("store_async_wait", "store_async_read_wait", "store_commit_group", "warpgroup_wait", "warpgroup_commit_batch"),
    *("mma_async_wait", "mma_commit_group", "umma_arrive", "umma_arrive_multicast", "umma_arrive_2x1SM"),
    *("umma_arrive_multicast_2x1SM", "umma_commit", "tcgen05_commit", "fence_view_async_tmem_load"),
    *("fence_view_async_tmem_store", "tensor_load_wait", "tensor_store_wait", "cudaGridDependencySynchronize"),
    *("cudaTriggerProgrammaticLaunchCompletion", "wait_on_dependent_grids", "launch_dependent_grids"),
    *("wait_eq", "wait_lt", "wait_eq_reset", "cpasync_barrier_arrive", "cpasync_barrier_arrive_noinc"),
)
# Names that mean one when an object or a barrier is there, too: counted in functions that are marked as device code.
COMMON = ("wait", "arrive", "sync", "try_wait", "test_wait")
OPCODES = re.compile(
    rb"mbarrier\.(?:try_wait|test_wait|arrive|arrive_drop|expect_tx|complete_tx)\b|mbarrier::complete_tx|cp\.async\.mbarrier\.arrive"
    rb"|\bbar\.(?:sync|arrive|red|warp\.sync)\b|\bbarrier\.(?:cta\.)?(?:sync|arrive|red)\b|\bbarrier\.cluster\.(?:arrive|wait)"
    rb"|cp\.async\.(?:bulk\.)?(?:commit_group|wait_group|wait_all)|wgmma\.(?:commit_group|wait_group)|tcgen05\.(?:commit|wait)\b"
    rb"|griddepcontrol\.(?:wait|launch_dependents)|clusterlaunchcontrol\.try_cancel"
)
_COMMENT = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_NAME = re.compile(
    rb"(?<![\w#])(?:"
    + "|".join(sorted((*NAMES, *COMMON), key=len, reverse=True)).encode()
    + rb")\b(?=\s*(?:<[^;{}()]*>)?\s*\()"
)
_ASM = re.compile(rb"(?<!\w)(?:asm|__asm__|__asm)\b(?:\s+|volatile\b|__volatile__\b|goto\b)*\(")
_BRACE = re.compile(rb"[{}]")
_DEVICE = re.compile(rb"__device__|__global__|\b[A-Z_]*(?:DEVICE|GLOBAL)[A-Z_]*\b|\bDINLINE\b|\b[A-Z_]*KERNEL[A-Z_]*\b")
_HOST_ONLY = re.compile(rb"__host__|\b[A-Z]+_HOST\b|\bstd::")
_HEAD_END = re.compile(rb"[;{}](?=[^;{}]*\Z)|\A")
_DECLARED = re.compile(rb"(?:[\w>&*\]]|::)\s*\Z")
_NOT_A_TYPE = re.compile(
    rb"(?:\breturn|\belse|\bdo|\bco_return|[^&]&&|\*/|\btemplate|\b[A-Z_]*UNROLL|\bcase [^:;]*:)\s*\Z"
)
# A lambda with a name: what it holds is what counts, not the calls of it.
_LOCAL = re.compile(rb"\bauto\s*&*\s*(\w+)\s*=\s*\[[^\]]*\]")
_LINE = re.compile(rb"^[ \t]*#[^\n]*(?:\\\r?\n[^\n]*)*", re.MULTILINE)


@dataclass(slots=True)
class Count:
    """What became of the hits of one project, with one example text for each that was not recognised."""

    project: str
    counted: int = 0
    recognised: int = 0
    in_wrappers: int = 0
    in_macros: int = 0
    in_callees: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Part of what was counted that was not recognised."""
        return len(self.missed) / self.counted if self.counted else 0.0


def uncommented(data: bytes) -> bytes:
    """The text with comments blanked, literals kept."""
    return _COMMENT.sub(lambda match: match[0] if match[0][:1] == b'"' else _blank(match[0]), data)


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", text)


def hits(data: bytes) -> Iterator[tuple[int, str]]:
    """Offset and name of every sync call and asm statement of device code that the text shows."""
    text = uncommented(data)
    code = _LINE.sub(
        lambda match: _blank(match[0]),
        re.sub(rb'"(?:[^"\\\n]|\\.)*"', lambda m: b'"' + b" " * (len(m[0]) - 2) + b'"', text),
    )
    heads = list(_function_heads(code))
    starts = [head[0] for head in heads]
    # Where braces in a default argument or a conditional hide a function's head, the file decides.
    is_device_file = _DEVICE.search(code) is not None
    local = {match[1] for match in _LOCAL.finditer(code)}
    for match in _NAME.finditer(code):
        if match[0] in local and not code[: match.start()].rstrip().endswith((b".", b"->", b"::")):
            continue
        before = code[max(0, match.start() - 80) : match.start()]
        if _is_declaration(before):
            continue
        head = _head(heads, starts, match.start())
        is_device = is_device_file if head is None else _DEVICE.search(head) is not None
        if not is_device and (match[0].decode() in COMMON or head is None or _HOST_ONLY.search(head)):
            continue
        yield match.start(), match[0].decode()
    for match in _ASM.finditer(code):
        depth = 0
        end = match.end() - 1
        while end < len(code):
            depth += {40: 1, 41: -1}.get(code[end], 0)
            end += 1
            if depth == 0:
                break
        if (found := OPCODES.search(text, match.start(), end)) is not None:
            yield match.start(), found[0].decode()


def _is_declaration(before: bytes) -> bool:
    return (
        _DECLARED.search(before) is not None
        and not before.rstrip().endswith((b"::", b"->"))
        and not _NOT_A_TYPE.search(before)
    )


def _function_heads(code: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and head text of every brace pair whose head has a parameter list and is no control statement or lambda."""
    stack: list[tuple[int, bytes | None]] = []
    found = []
    for match in _BRACE.finditer(code):
        if match[0] == b"{":
            begin = max(code.rfind(mark, 0, match.start()) for mark in (b";", b"{", b"}"))
            head = code[begin + 1 : match.start()]
            is_function = b"(" in head and not re.match(rb"\s*(?:if|for|while|switch|else|do|catch|try|asm)\b", head)
            is_function = is_function and not re.search(rb"[=,(]\s*\[[^\]]*\]|=\s*\Z|\breturn\b", head)
            stack.append((match.start(), head if is_function else None))
        elif stack:
            start, head_or_none = stack.pop()
            if head_or_none is not None:
                found.append((start, match.end(), head_or_none))
    return iter(sorted(found))


def _head(heads: list[tuple[int, int, bytes]], starts: list[int], position: int) -> bytes | None:
    at = bisect_right(starts, position) - 1
    outer: bytes | None = None
    while at >= 0:
        start, end, head = heads[at]
        if start < position < end:
            if _DEVICE.search(head):
                return head
            outer = head if outer is None else outer
        at -= 1
        if at >= 0 and outer is not None and position - heads[at][0] > 200_000:
            break
    return outer


def load(folder: Path) -> dict[Path, Source]:
    """Parse the files of a project that may hold a sync, with what all its files teach about macros."""
    data = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()}
    macros = learn(data.values())
    return {path: parse(text, macros) for path, text in data.items() if MAY_SYNC.search(text)}


def check(project: str, sources: dict[Path, Source]) -> Count:
    """Compare the hits of a project with what recognition finds."""
    found = index(sources)
    recognizer = Recognizer(found, sources)
    count = Count(project)
    places = _places(found, recognizer)
    for path, source in sources.items():
        sites, wrappers, macros, outer = places.get(path, (set(), [], [], set()))
        for position, name in hits(source.original):
            count.counted += 1
            if position in sites:
                count.recognised += 1
            elif any(start <= position < end for start, end in wrappers):
                count.in_wrappers += 1
            elif any(start <= position < end for start, end in macros):
                count.in_macros += 1
            else:
                line = source.original.count(b"\n", 0, position) + 1
                text = source.original[position : position + 70].split(b"\n")[0].decode("utf-8", "replace")
                group = count.in_callees if position in outer else count.missed
                group.append(f"{path}:{line}: {name}: {text}")
    return count


Places = dict[Path, tuple[set[int], list[tuple[int, int]], list[tuple[int, int]], set[int]]]


def _places(found: Index, recognizer: Recognizer) -> Places:
    places: Places = {}
    for function in (*found.functions, *(macro for group in found.macros.values() for macro in group)):
        sites, wrappers, macros, outer = places.setdefault(function.file, (set(), [], [], set()))
        if function.is_macro:
            macros.append((function.start, function.end))
            continue
        if recognizer.is_wrapper(function):
            wrappers.append((function.start, function.end))
            continue
        for call in function.calls:
            if recognizer.call(call, function) is not None:
                sites.add(_name_at(call))
            elif call.name in (*NAMES, *COMMON) and _holds_sites(call, function, recognizer):
                outer.add(_name_at(call))
        for asm in function.asms:
            if recognizer.asm(asm, function) is not None:
                sites.add(asm.start)
    return places


def _holds_sites(call: Call, function: Function, recognizer: Recognizer, depth: int = 3) -> bool:
    """True for a call of a function that does more than one sync op, so that its own ops, or its callees', are the sites."""
    return depth > 0 and any(
        any(recognizer.asm(asm, each) is not None for asm in each.asms)
        or any(
            recognizer.call(inner, each) is not None or _holds_sites(inner, each, recognizer, depth - 1)
            for inner in each.calls
        )
        for each in recognizer.candidates(call, function)
    )


def _name_at(call: Call | Asm) -> int:
    """Where the called name begins."""
    if isinstance(call, Asm):
        return call.start
    text = call.source.original[call.start : call.end]
    arguments = call.node.child_by_field_name("arguments")
    stop = len(text) if arguments is None else arguments.start_byte - call.node.start_byte
    return call.start + [match.start() for match in re.finditer(rb"\b" + call.name.encode() + rb"\b", text[:stop])][-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the folders and print a table; 0 when all are good."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.cuda_calls", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--examples", type=int, default=10, help="texts shown of what is not recognised (default %(default)s)"
    )
    options = parser.parse_args(arguments)
    print(f"{'project':40} counted recognised in wrappers in macros in callees not recognised")
    is_good = True
    for folder in options.folders:
        count = check(folder.as_posix()[-40:], load(folder))
        is_good = is_good and count.share <= LIMIT
        print(
            f"{count.project:40} {count.counted:7} {count.recognised:10} {count.in_wrappers:11} "
            f"{count.in_macros:9} {len(count.in_callees):10} "
            f"{len(count.missed):7} {count.share:6.1%}"
        )
        for title, texts in (("not recognised", count.missed), ("more than one op", count.in_callees)):
            for text in texts[: options.examples]:
                print(f"    {title}: {text}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
