# SPDX-License-Identifier: Apache-2.0
"""A count of sync calls that shares nothing with the instrumenter: Python's `ast` and a list of public names.

It looks at called names only, never at types or imports, so it also finds calls on the author's own wrappers and on
receivers whose class is only known at run time. What is stamped or skipped must cover all of it.

Agreement with `files.tsv` (561 files): 560 agree in all three classes. Known differences:
- flashinfer/attention/prims_ts/kernels/mla_decode/throughput_latency_1cta/tasks.py: the list has one `acquire` and one
  `commit` less than the file holds; both are method calls without arguments like their neighbours, and count.
- `griddepcontrol` is listed as signalling whatever it is told to do; here its argument decides. `listed_class` undoes this
  for the comparison.
- The names in BEYOND_LIST are not in the list at all. They are counted and must be covered, but are left out of the comparison.
- `dist.barrier` is torch.distributed's, called by the host between processes: neither the list nor this count has it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class CallClass(StrEnum):
    """What a call does, judged by its name."""

    BLOCKING = "blocking"
    POLL = "poll"
    SIGNALLING = "signalling"


_BLOCKING = """
    acquire acquire_and_advance agent_sync arrive_and_wait arrive_and_wait_unaligned arrive_and_wait_w_index bar_warp_sync
    barrier barrier_cluster_wait barrier_cluster_wait_aligned barrier_cta_sync barrier_cta_sync_aligned cluster_wait
    consumer_wait consumer_wait_w_index_phase cp_async_bulk_wait_group cp_async_wait_group griddepcontrol_wait mbarrier_wait
    mbarrier_wait_parity pipeline_init_wait producer_acquire producer_acquire_w_index_phase producer_tail sync sync_threads
    sync_warp tail tcgen05_wait wait wait_and_advance wait_eq wait_for_alloc wait_group wait_unaligned
    wgmma_wait_group_sync_aligned
"""
_POLL = """
    consumer_try_wait mbarrier_test_wait mbarrier_try_wait mbarrier_try_wait_parity producer_try_acquire try_acquire try_wait
"""
_SIGNALLING = """
    arrive arrive_unaligned arrive_w_index barrier_arrive barrier_cluster_arrive barrier_cluster_arrive_relaxed
    barrier_cta_arrive cluster_arrive cluster_arrive_relaxed commit commit_group consumer_release consumer_release_w_index
    cp_async_bulk_commit_group cp_async_commit_group cp_async_mbarrier_arrive_noinc griddepcontrol
    griddepcontrol_launch_dependents issue_clc_query mbarrier_arrive mbarrier_arrive_and_expect_tx mbarrier_arrive_expect_tx
    mbarrier_expect_tx pipeline_init_arrive producer_commit producer_commit_w_index release store_async_dsmem tcgen05_commit
    wgmma_commit_group_sync_aligned
"""

# Public names of the DSL, and of the pipeline and semaphore classes in the corpus, that the file list does not count.
_BEYOND_BLOCKING = """
    acquire_sync barrier_cta_red barrier_cta_red_aligned consumer_tail consumer_wait_and_get_phase consumer_wait_and_get_stage
    producer_acquire_and_get_phase producer_acquire_and_get_stage
"""
_BEYOND_POLL = "mbarrier_conditional_try_wait mbarrier_try_wait_timelimit test_wait"
_BEYOND_SIGNALLING = """
    arrive_and_expect_tx arrive_inc barrier_cluster_arrive_aligned barrier_cluster_arrive_relaxed_aligned
    barrier_cta_arrive_aligned commit_sync consumer_release_and_advance cp_async_mbarrier_arrive mbarrier_arrive_drop
    mbarrier_arrive_drop_expect_tx mbarrier_arrive_drop_nocomplete mbarrier_arrive_nocomplete mbarrier_complete_tx
    producer_commit_and_advance producer_cpasync_commit release_add release_advance release_store
"""


def _by_name(blocking: str, poll: str, signalling: str) -> dict[str, CallClass]:
    rows = ((blocking, CallClass.BLOCKING), (poll, CallClass.POLL), (signalling, CallClass.SIGNALLING))
    return {name: kind for names, kind in rows for name in names.split()}


LISTED = _by_name(_BLOCKING, _POLL, _SIGNALLING)
BEYOND_LIST = _by_name(_BEYOND_BLOCKING, _BEYOND_POLL, _BEYOND_SIGNALLING)
NAMES = LISTED | BEYOND_LIST

# `dist.barrier()` synchronises host processes; no kernel is involved.
_HOST_RECEIVERS = frozenset({"dist", "torch"})


@dataclass(frozen=True, slots=True)
class Call:
    """One sync call. `column` and `end_column` are byte offsets in their lines, as `ast` gives them; `start` and `end`
    are byte offsets in the file. `is_spin` marks the poll of a loop that does nothing but poll, which together wait."""

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int
    name: str
    kind: CallClass
    is_spin: bool

    @property
    def is_counted(self) -> bool:
        """True when the call blocks or signals, so that it belongs in the stamped share."""
        return self.kind is not CallClass.POLL or self.is_spin


def count(source: bytes) -> list[Call]:
    """All sync calls of a Python source, in source order."""
    tree = ast.parse(source)
    starts = _line_starts(source)
    spins = _spun_calls(tree)
    calls = [_call(node, name, starts, node in spins) for node, name in sync_calls(tree)]
    return sorted(calls, key=lambda call: (call.start, call.end))


def listed_class(call: Call) -> CallClass | None:
    """The class `files.tsv` counts the call under; None for the names it does not count."""
    return LISTED.get(call.name)


def listed_totals(calls: list[Call]) -> tuple[int, int, int]:
    """(blocking, poll, signalling) as `files.tsv` counts them."""
    totals = Counter(listed_class(call) for call in calls)
    return totals[CallClass.BLOCKING], totals[CallClass.POLL], totals[CallClass.SIGNALLING]


def sync_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """The sync calls below a node, each with its called name, in no particular order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _called_name(node.func)
            if name in NAMES and not _is_host(node.func):
                yield node, name


def _called_name(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _is_host(func: ast.expr) -> bool:
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    return root is not func and isinstance(root, ast.Name) and root.id in _HOST_RECEIVERS


def _class_of(node: ast.Call, name: str) -> CallClass:
    if name == "griddepcontrol":
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        is_wait = any(re.search(r"\bwait\b", ast.unparse(argument), re.IGNORECASE) for argument in arguments)
        return CallClass.BLOCKING if is_wait else CallClass.SIGNALLING
    return NAMES[name]


def _spun_calls(tree: ast.Module) -> set[ast.Call]:
    """Calls in the condition of a `while` whose body does nothing, or only backs off with `nanosleep`."""
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.While))
    conditions = (loop.test for loop in loops if all(_is_idle(statement) for statement in loop.body))
    return {node for test in conditions for node in ast.walk(test) if isinstance(node, ast.Call)}


def _is_idle(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and _called_name(value.func) == "nanosleep")


def _line_starts(source: bytes) -> list[int]:
    # A byte order mark is not part of line 1 for `ast`, so the first line starts behind it.
    first = 3 if source.startswith(b"\xef\xbb\xbf") else 0
    return [first, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", source))]


def _call(node: ast.Call, name: str, starts: list[int], is_spin: bool) -> Call:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Call(
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno,
        end_column=node.end_col_offset,
        start=starts[node.lineno - 1] + node.col_offset,
        end=starts[node.end_lineno - 1] + node.end_col_offset,
        name=name,
        kind=_class_of(node, name),
        is_spin=is_spin,
    )
