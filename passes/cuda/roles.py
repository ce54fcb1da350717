# SPDX-License-Identifier: Apache-2.0
"""Names of roles, read from the conditions on the way to a site.

In order: a condition that names a role (an enumerator, a flag, a warp's own index), a comment at the head of a branch that is
for some warps, what that branch issues, the function's name, whether the branch gives registers back or takes them, the
number of the warp or thread that it is for. Within each of these the innermost decides. Names are those of the CuTe-DSL side
(load, mma, softmax, epilogue, store, scheduler), and what the source says where it is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from autostamp.passes.cuda.guards import Entered, Guard, Path, Step, step_key
from autostamp.passes.cuda.register_calls import GIVES, TAKES
from autostamp.passes.cuda.role_tests import ROLE_WORDS, Rank, from_test, is_partition, is_role_test, words_of
from autostamp.passes.cuda.source import Source

_COMMENT = re.compile(r"//+\s*(?P<line>[^\n]{1,120})|/\*\s*(?P<block>[^*]{1,120})\*/")
_COMMENT_WARP = re.compile(
    r"(?i)^(?P<before>.*?)\b(?:warp|thread|wg)s?(?:[- _]?groups?)?\b(?: (?:for|to|that|which) (?P<after>\w+))?"
)
_ISSUES = (
    (
        "load",
        re.compile(
            rb"tma_?load|\.load\w*\(|tma::load|load_async|TMA_LOAD|tma_copy|producer_acquire|bulk_tensor_\w*global_to_shared"
            rb"|cp\.async\.bulk\.tensor[\w.]*shared::cluster|cp_async_bulk_tensor_?\dd?\w*\("
        ),
    ),
    (
        "mma",
        re.compile(
            rb"(?i)wgmma|umma(?!_arrive)|tcgen05[._]mma|mma_async|mma_sync|::mma\w*(?:<[^<>;]*>)?\(|\bgemm\w*\(|\bmma_?A?B?\w*<?\w*>?\("
        ),
    ),
    ("epilogue", re.compile(rb"tmem_load|tcgen05[._]ld|TMEM_LOAD|tensor_load_wait|load_accumulator")),
)
_STORES = re.compile(rb"tma_?store|tma::store|TMA_STORE|store_async|bulk_tensor_\w*shared_to_global")
_FUNCTIONS = re.compile(
    r"^(?P<role>load|producer|mma|consumer|softmax|correction|epilogue|store|scheduler|transform)(?=_|[A-Z]|$)"
)
_MULTIPLIES = re.compile(rb"(?i)mma|gemm|matmul")
_HEAD = 700


class Roles:
    """Roles of the paths of one project. What a guard says is kept, as many sites share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, str], tuple[tuple[Rank, str], ...]] = {}

    def of(self, path: Path, source: Source) -> str:
        """The role of the place in `source` that a path ends at; '' when nothing on the path names one."""
        best, role = Rank.NONE, ""
        for step in reversed(path):
            for rank, name in self._names(step):
                if name and rank < best:
                    best, role = rank, name
        if role == "mma" and not _MULTIPLIES.search(source.code):
            # A consumer of a kernel without matrix instructions is just that.
            return "consumer" if best is not Rank.REGISTERS else ""
        return role

    def of_all(self, paths: Sequence[Path], source: Source) -> str:
        """The role that all paths agree on, else the one that their common end names, else ''."""
        roles = {self.of(path, source) for path in paths}
        return roles.pop() if len(roles) == 1 else self.of(_common_end(paths), source)

    def _names(self, step: Step) -> tuple[tuple[Rank, str], ...]:
        if isinstance(step, Entered):
            return ((Rank.FUNCTION, from_function(step.name, step.owner)),)
        key = (id(step.source), step.start, step.end, step.text)
        if key not in self._known:
            self._known[key] = tuple(_of_guard(step))
        return self._known[key]


def _common_end(paths: Sequence[Path]) -> Path:
    end: list[Step] = []
    for steps in zip(*(reversed(path) for path in paths), strict=False):
        if len({step_key(step) for step in steps}) > 1:
            break
        end.insert(0, steps[0])
    return tuple(end)


def _of_guard(step: Guard) -> Iterable[tuple[Rank, str]]:
    if step.is_compile_time or not is_role_test(step.text):
        return
    yield from_test(step.text)
    if is_partition(step.text) and not (step.is_exit or step.is_rest):
        yield Rank.COMMENT, from_comment(step)
        text = step.source.uncommented[step.start : step.end]
        yield Rank.ISSUES, _from_issues(text)
        yield Rank.REGISTERS, _from_registers(text)


def from_function(name: str, owner: str) -> str:
    """The role that a function is named after, or the class that it is a method of."""
    match = _FUNCTIONS.match(name)
    if match is not None:
        return ROLE_WORDS[match["role"]] or ""
    words = words_of(owner)
    return (
        ROLE_WORDS[words[0]] or words[0]
        if len(words) == 1 and words[0] in ("producer", "consumer", "storer", "loader")
        else ""
    )


def from_comment(guard: Guard) -> str:
    """The role in a comment on the branch's line or at its head, before anything nested begins."""
    data = guard.source.original
    start = data.rfind(b"\n", 0, guard.start) + 1
    head = data[start : min(guard.end, guard.start + _HEAD)].decode("utf-8", "replace")
    body = head[guard.start - start + 1 :]
    nested = body.find("{")
    head = head[: guard.start - start + 1] + (body if nested < 0 else body[:nested])
    for match in _COMMENT.finditer(head):
        if role := from_comment_text(match["line"] or match["block"]):
            return role
    return ""


def from_comment_text(comment: str) -> str:
    """The role word before `warp`, or after `warps for`; in a comment of a word or two, that word."""
    match = _COMMENT_WARP.match(comment)
    words = (
        words_of(comment) if match is None else [*reversed(words_of(match["before"])), *words_of(match["after"] or "")]
    )
    if match is None and len(words) > 2:
        return ""
    return next((ROLE_WORDS[word] or word for word in words if word in ROLE_WORDS), "")


def _from_issues(text: bytes) -> str:
    found = [role for role, pattern in _ISSUES if pattern.search(text)]
    stores = _STORES.search(text) is not None
    if not found:
        return "store" if stores else ""
    # Whoever loads and stores does what no one word says.
    return found[0] if len(found) == 1 and not (stores and found[0] == "load") else ""


def _from_registers(text: bytes) -> str:
    code = text.decode("latin-1")
    gives, takes = GIVES.search(code), TAKES.search(code)
    if (gives is None) == (takes is None):
        return ""
    return "load" if gives else "mma"
