# SPDX-License-Identifier: Apache-2.0
"""How well CUDA C++ checkouts parse: `python -m tests.corpus.cuda_parse FOLDER...`, one folder a checkout.

Nothing is fetched. A file counts when it holds a sync call or a sync asm statement: a name of `SYNC_NAMES` before an opening
parenthesis, or an asm statement whose text matches `SYNC_OPCODES`, both outside comments and preprocessor lines. Error nodes
are ERROR and MISSING nodes, of the tree of the file as it is (raw) and of its masked copy (masked).

Of the names found that way, those that the masked tree holds as the name of a function definition, or of a declaration
outside function bodies, are no calls. The rest should be the callee of a `call_expression`; what is not is lost. An asm
keyword should start a `gnu_asm_expression`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from tree_sitter import Node, Parser, Query, QueryCursor, Tree

from autostamp.passes.cuda.macros import Macros, learn
from autostamp.passes.cuda.source import LANGUAGE, Source, parse
from autostamp.passes.cuda.views import views

# What the totals of this check were first taken on: checkouts of github.com/OWNER/NAME at COMMIT.
CHECKOUTS = """
leimao/CUDA-GEMM-Optimization 747e49b, deepseek-ai/DeepEP dd758ca, deepseek-ai/DeepGEMM 54e2261, pytorch/FBGEMM 71d6f8b,
deepseek-ai/FlashMLA 9241ae3, xlite-dev/LeetCUDA cb6a049, KnowingNothing/MatmulTutorial 70f70fa, siboehm/SGEMM_CUDA 60cba6f,
HazyResearch/ThunderKittens 0b55588, NVIDIA/TransformerEngine d0067d0, ColfaxResearch/cfx-article-src d142df3,
DrXuQian/cuda-blackwell-microbenchmarks da321ce, NVIDIA/cuda-samples c94ff36, ColfaxResearch/cutlass-kernels 84f0802,
NVIDIA/cutlass 7107b05, pranjalssh/fast.cu 38eb642, Dao-AILab/flash-attention 0251105, flashinfer-ai/flashinfer fb28d72,
bytedance/flux 19831ca, Antoniomv7/gb300-microbench 1f27767, yao-jz/intra-kernel-profiler b22ad76,
gau-nernst/learn-cuda 1454f8b, open-neutrino/neutrino 4a82cd2, nunchaku-tech/nunchaku 3a3cc3d
"""
SUFFIXES = {".cu", ".cuh", ".hpp", ".h"}
# Families of names: CUDA C++ built-ins, CUTLASS pipelines and barriers, cuda::barrier, and wrappers that projects write.
SYNC_NAMES = (
    r"__syncthreads(?:_or|_and|_count)?|__syncwarp|syncwarp|sync_all",
    r"producer_(?:acquire|commit|tail|try_acquire|expect_transaction)|pipeline_init_(?:arrive_relaxed|wait)",
    r"consumer_(?:wait|release|try_wait|test_wait)",
    r"wait|try_wait|test_wait|(?:try_)?wait_parity|wait_ready|arrive_and_wait\w*",
    r"arrive|arrive_and_drop|arrive_and_expect_tx|arrive_(?:cluster|remote|tx|inc)|expect_transaction|expect_bytes",
    r"sync|sub_barrier_sync|warp_scheduler_barrier_\w+|named_barrier_\w+|set_barrier_transaction_bytes",
    r"mbarrier_(?:init|wait|try_wait|test_wait|arrive|expect)\w*|mbar_(?:init|wait|arrive|try_wait)\w*",
    r"wait_barrier|bar_(?:wait|sync|arrive|expect_tx)|barrier_(?:wait|sync|init)|barrier_arrive\w*",
    r"init_barrier|initialize_barrier|fence_barrier_init",
    r"cluster_wait|cluster_sync\w*|cluster_arrive\w*|cluster_barrier_(?:arrive|wait)\w*",
    r"cp_async_(?:wait|commit)\w*|cp_async_fence|cp_async_bulk_(?:wait|commit)\w*|__pipeline_wait_prior|__pipeline_commit",
    r"tma_store_(?:wait|arrive|commit)\w*|tma_desc_(?:wait|commit)_group|store_async_(?:read_)?wait|store_commit_group",
    r"warpgroup_(?:wait|arrive|commit_batch)|mma_async_wait|mma_commit_group|wgmma_(?:wait|commit|fence)\w*",
    r"umma_(?:arrive|commit)\w*|tcgen05_(?:commit|wait)\w*|tmem_wait_ld|tensor_\w*wait",
    r"fence_view_async_(?:tmem_load|tmem_store|shared)",
    r"cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion",
    r"wait_on_dependent_grids|launch_dependent_grids|griddepcontrol_\w+",
    r"wait_eq\w*|wait_lt",
)
SYNC_OPCODES = re.compile(
    rb"mbarrier\.|\bbar(?:rier)?\.(?:cta\.)?(?:sync|arrive|red)|barrier\.cluster|(?:cp\.async|cp\.async\.bulk)\.(?:commit|wait)"
    rb"|mbarrier::complete_tx|wgmma\.(?:fence|commit|wait)|tcgen05\.(?:commit|wait)|griddepcontrol|clusterlaunchcontrol"
)
_CALL = re.compile(rb"(?<!\w)(?:" + "|".join(SYNC_NAMES).encode() + rb")(?=\s*+(?:<[\w\s:,.+*/&<>()-]*?>\s*+)?\()")
_ASM = re.compile(rb"(?<!\w)(?:asm|__asm__|__asm)(?!\w)(?=(?:\s|volatile|__volatile__|goto|inline)*+\()")
_CALLEES = Query(LANGUAGE, "(call_expression function: (_) @callee)")
_ASMS = Query(LANGUAGE, "(gnu_asm_expression) @asm")
_ERRORS = Query(LANGUAGE, "[(ERROR) (MISSING)] @error")
_LAST_NAME = {"field_expression": "field", "qualified_identifier": "name", "template_function": "name"}
_LAST_NAME |= {"template_method": "name", "template_type": "name"}


@dataclass(slots=True)
class Totals:
    """Sums over the files of one checkout."""

    files: int = 0
    sync_files: int = 0
    lines: int = 0
    raw: int = 0
    masked: int = 0
    bad_files: int = 0
    calls: int = 0
    in_tree: int = 0
    lost: int = 0
    asms: int = 0
    asms_lost: int = 0
    seconds: float = 0.0
    places: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row a checkout and return 1 when a total is over its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.cuda_parse", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a checkout")
    parser.epilog = f"First run on:{CHECKOUTS}"
    parser.add_argument("--max-errors", type=int, help="exit 1 when more error nodes are left in masked trees")
    parser.add_argument("--max-lost", type=int, help="exit 1 when more calls and asm statements are lost")
    parser.add_argument("--list", action="store_true", help="list what is lost, and the files with errors")
    options = parser.parse_args(arguments)
    total = Totals()
    print(_HEADER)
    for folder in options.folders:
        row = count(folder)
        print(_row(folder.resolve().name, row), flush=True)
        if options.list:
            print(*(f"    {place}" for place in row.places), sep="\n")
        for each in fields(Totals):
            setattr(total, each.name, getattr(total, each.name) + getattr(row, each.name))
    print(_row("total", total))
    print(f"{total.lines / max(total.seconds, 1e-9):,.0f} lines a second, learning and parsing")
    too_many = options.max_errors is not None and total.masked > options.max_errors
    return int(too_many or (options.max_lost is not None and total.lost + total.asms_lost > options.max_lost))


_HEADER = f"{'':32}{'files':>7}{'sync':>6}{'raw':>7}{'masked':>7}{'bad':>5}{'calls':>7}{'found':>7}{'lost':>5}"
_HEADER += f"{'asm':>6}{'lost':>5}"


def _row(name: str, row: Totals) -> str:
    return (
        f"{name[:31]:32}{row.files:7}{row.sync_files:6}{row.raw:7}{row.masked:7}{row.bad_files:5}{row.calls:7}"
        f"{row.in_tree:7}{row.lost:5}{row.asms:6}{row.asms_lost:5}"
    )


def count(folder: Path) -> Totals:
    """Parse every file of a checkout that holds a sync operation, with the macros of the whole checkout."""
    row = Totals()
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    row.files = len(files)
    begin = time.process_time()
    macros = learn((path.read_bytes() for path in files), None)
    row.seconds += time.process_time() - begin
    for path in files:
        data = path.read_bytes()
        if is_sync_bearing(data):
            _count_file(row, path.relative_to(folder), data, macros)
    return row


def is_sync_bearing(data: bytes) -> bool:
    """Whether a source holds a sync call or a sync asm statement, as the module defines them."""
    if not (_CALL.search(data) or SYNC_OPCODES.search(data)):
        return False
    search = views(data).search
    return bool(_CALL.search(search)) or next(_sync_asms(data, search), None) is not None


def _sync_asms(data: bytes, search: bytes) -> Iterator[int]:
    for match in _ASM.finditer(search):
        end = search.find(b";", match.end())
        if SYNC_OPCODES.search(data, match.end(), end if end > 0 else len(data)):
            yield match.start()


def _count_file(row: Totals, path: Path, data: bytes, macros: Macros) -> None:
    row.sync_files += 1
    row.lines += data.count(b"\n") + 1
    row.raw += _errors(Parser(LANGUAGE).parse(data))
    begin = time.process_time()
    source = parse(data, macros)
    row.seconds += time.process_time() - begin
    row.masked += source.error_count
    row.bad_files += source.error_count > 0
    if source.error_count:
        row.places.append(f"{path}: {source.error_count} error nodes")
    search = views(data).search
    callees, asms = _callees(source), _starts(_ASMS, source)
    for match in _CALL.finditer(search):
        is_call = match.start() in callees
        if not is_call and _is_declared(source, match.start(), match.end()):
            continue
        row.calls += 1
        row.in_tree += is_call
        row.lost += not is_call
        if not is_call:
            row.places.append(_place(path, data, match.start()))
    for start in _sync_asms(data, search):
        row.asms += 1
        row.asms_lost += start not in asms
        if start not in asms:
            row.places.append(_place(path, data, start))


def _place(path: Path, data: bytes, start: int) -> str:
    line = data.count(b"\n", 0, start) + 1
    text = data[data.rfind(b"\n", 0, start) + 1 :].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    return f"{path}:{line}: lost: {text[:100]}"


def _errors(tree: Tree) -> int:
    return sum(len(nodes) for nodes in QueryCursor(_ERRORS).captures(tree.root_node).values())


def _starts(query: Query, source: Source) -> set[int]:
    return {node.start_byte for nodes in QueryCursor(query).captures(source.tree.root_node).values() for node in nodes}


def _callees(source: Source) -> set[int]:
    """Where the last name of each callee starts: `wait` of `a.b::c<int>::wait<3>(x)`."""
    found: set[int] = set()
    for nodes in QueryCursor(_CALLEES).captures(source.tree.root_node).values():
        found.update(_last_name(node).start_byte for node in nodes)
    return found


def _last_name(node: Node) -> Node:
    while True:
        if node.type == "dependent_name":
            inner: Node | None = node.named_child(0)
        else:
            inner = node.child_by_field_name(_LAST_NAME.get(node.type, ""))
        if inner is None:
            return node
        node = inner


def _is_declared(source: Source, start: int, end: int) -> bool:
    node = source.tree.root_node.descendant_for_byte_range(start, end)
    while node is not None and node.type not in ("function_definition", "declaration", "field_declaration"):
        if node.type in ("ERROR", "compound_statement", "parameter_list", "argument_list"):
            return False
        node = node.parent
    if node is None:
        return False
    if node.type != "function_definition":
        inside = node.parent
        while inside is not None and inside.type not in ("compound_statement", "ERROR", "field_declaration_list"):
            inside = inside.parent
        return inside is None or inside.type == "field_declaration_list"
    return True


if __name__ == "__main__":
    sys.exit(main())
