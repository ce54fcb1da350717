# SPDX-License-Identifier: Apache-2.0
"""The synchronising instructions of PTX as data, and which of them an inline asm text holds.

Rows follow the PTX ISA, version 9.0: the sections on parallel synchronization and communication (bar, barrier, mbarrier, fences,
griddepcontrol, clusterlaunchcontrol), asynchronous copies and their completion, wgmma, tcgen05, and the memory consistency
model for words that serve as flags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.cuda.asm_text import GAP

_W, _S, _P, _F = Kind.WAIT, Kind.SIGNAL, Kind.POLL, Kind.FENCE
_MBAR, _NAMED, _GROUP = Side.MBARRIER, Side.NAMED, Side.ASYNC_GROUP
_PTR, _ID, _NONE = StageFrom.POINTER, StageFrom.BARRIER_ID, StageFrom.NONE


def _row(stem: str, kind: Kind, side: Side, stage: StageFrom = _NONE, **more: object) -> SyncOp:
    return SyncOp("ptx", stem, kind, side, stage, **more)  # type: ignore[arg-type]


_DSMEM = "shared memory of the cluster"
ROWS: tuple[SyncOp, ...] = (
    _row("mbarrier.try_wait", _P, _MBAR, _PTR),
    _row("mbarrier.test_wait", _P, _MBAR, _PTR),
    _row("mbarrier.arrive_drop", _S, _MBAR, _PTR),
    _row("mbarrier.arrive", _S, _MBAR, _PTR),
    _row("mbarrier.expect_tx", _S, _MBAR, _PTR, note="raises the pending count; no arrival"),
    _row("mbarrier.complete_tx", _S, _MBAR, _PTR),
    _row("cp.async.mbarrier.arrive", _S, _MBAR, _PTR, is_async=True),
    _row("cp.async.bulk", _S, _MBAR, _PTR, is_async=True, note="completes on the mbarrier when the bytes have landed"),
    _row("cp.reduce.async.bulk", _S, _MBAR, _PTR, is_async=True),
    _row("st.async", _S, _MBAR, _PTR, is_async=True, note=_DSMEM),
    _row("red.async", _S, _MBAR, _PTR, is_async=True, note=_DSMEM),
    _row("clusterlaunchcontrol.try_cancel", _S, _MBAR, _PTR, is_async=True),
    _row("tcgen05.commit", _S, _MBAR, _PTR, is_async=True),
    _row("bar.warp.sync", _W, Side.WARP, signals=(Side.WARP,), group="warp"),
    _row("bar.sync", _W, _NAMED, _ID, signals=(_NAMED,)),
    _row("bar.red", _W, _NAMED, _ID, signals=(_NAMED,)),
    _row("bar.arrive", _S, _NAMED, _ID),
    _row("barrier.cluster.arrive", _S, Side.CLUSTER, group="cluster"),
    _row("barrier.cluster.wait", _W, Side.CLUSTER, group="cluster"),
    _row("cp.async.commit_group", _S, _GROUP, group="cp.async"),
    _row("cp.async.wait_group", _W, _GROUP, group="cp.async"),
    _row("cp.async.wait_all", _W, _GROUP, group="cp.async"),
    _row("cp.async.bulk.commit_group", _S, _GROUP, group="cp.async.bulk"),
    _row("cp.async.bulk.wait_group", _W, _GROUP, group="cp.async.bulk"),
    _row("wgmma.fence", _F, _GROUP, group="wgmma"),
    _row("wgmma.commit_group", _S, _GROUP, group="wgmma"),
    _row("wgmma.wait_group", _W, _GROUP, group="wgmma"),
    _row("tcgen05.wait", _W, _GROUP, group="tcgen05"),
    _row("griddepcontrol.wait", _W, Side.GRID, group="grid"),
    _row("griddepcontrol.launch_dependents", _S, Side.GRID, group="grid"),
    _row("ld.acquire", _P, Side.FLAG, group="flag"),
    _row("ld.relaxed", _P, Side.FLAG, group="flag"),
    _row("ld.volatile", _P, Side.FLAG, group="flag"),
    _row("st.release", _S, Side.FLAG, group="flag"),
    _row("red.release", _S, Side.FLAG, group="flag"),
    _row("atom.release", _S, Side.FLAG, group="flag", note="also acq_rel"),
    _row("fence", _F, Side.FLAG),
    _row("membar", _F, Side.FLAG),
    _row("tcgen05.fence", _F, _GROUP, group="tcgen05"),
)
_BY_STEM = {row.method: row for row in ROWS}
CTA_BARRIER = _row("bar.sync", _W, Side.CTA, signals=(Side.CTA,), group="CTA")

# Opcode patterns in order, the first that matches decides. A stem of None sets a barrier up: it neither waits nor signals.
_PATTERNS: tuple[tuple[re.Pattern[str], str | None], ...] = tuple(
    (re.compile(pattern), stem)
    for pattern, stem in (
        (r"mbarrier\.try_wait\b", "mbarrier.try_wait"),
        (r"mbarrier\.test_wait\b", "mbarrier.test_wait"),
        (r"mbarrier\.arrive_drop\b", "mbarrier.arrive_drop"),
        (r"mbarrier\.arrive\b", "mbarrier.arrive"),
        (r"mbarrier\.expect_tx\b", "mbarrier.expect_tx"),
        (r"mbarrier\.complete_tx\b", "mbarrier.complete_tx"),
        (r"mbarrier\.(?:init|inval)\b", None),
        (r"cp\.async\.mbarrier\.arrive\b", "cp.async.mbarrier.arrive"),
        (r"cp\.async\.bulk\.commit_group\b", "cp.async.bulk.commit_group"),
        (r"cp\.async\.bulk\.wait_group\b", "cp.async.bulk.wait_group"),
        (r"cp\.async\.bulk\b.*mbarrier::complete_tx", "cp.async.bulk"),
        (r"cp\.reduce\.async\.bulk\b.*mbarrier::complete_tx", "cp.reduce.async.bulk"),
        (r"st\.async\b.*mbarrier::complete_tx", "st.async"),
        (r"red\.async\b.*mbarrier::complete_tx", "red.async"),
        (r"cp\.async\.commit_group\b", "cp.async.commit_group"),
        (r"cp\.async\.wait_group\b", "cp.async.wait_group"),
        (r"cp\.async\.wait_all\b", "cp.async.wait_all"),
        (r"clusterlaunchcontrol\.try_cancel\b", "clusterlaunchcontrol.try_cancel"),
        (r"bar\.warp\.sync\b", "bar.warp.sync"),
        (r"barrier\.cluster\.arrive\b", "barrier.cluster.arrive"),
        (r"barrier\.cluster\.wait\b", "barrier.cluster.wait"),
        (r"bar(?:rier)?(?:\.cta)?\.sync\b", "bar.sync"),
        (r"bar(?:rier)?(?:\.cta)?\.red\b", "bar.red"),
        (r"bar(?:rier)?(?:\.cta)?\.arrive\b", "bar.arrive"),
        (r"wgmma\.fence\b", "wgmma.fence"),
        (r"wgmma\.commit_group\b", "wgmma.commit_group"),
        (r"wgmma\.wait_group\b", "wgmma.wait_group"),
        (r"tcgen05\.commit\b", "tcgen05.commit"),
        (r"tcgen05\.wait\b", "tcgen05.wait"),
        (r"tcgen05\.fence\b", "tcgen05.fence"),
        (r"griddepcontrol\.wait\b", "griddepcontrol.wait"),
        (r"griddepcontrol\.launch_dependents\b", "griddepcontrol.launch_dependents"),
        (r"(?:multimem\.)?ld(?:_reduce)?\.(?:\w+\.)?acquire\b", "ld.acquire"),
        (r"ld\.(?:\w+\.)?relaxed\b", "ld.relaxed"),
        (r"ld\.volatile\b", "ld.volatile"),
        (r"(?:multimem\.)?st\.(?:\w+\.)?release\b", "st.release"),
        (r"(?:multimem\.)?red\.(?:\w+\.)?release\b", "red.release"),
        (r"atom\b.*\.(?:release|acq_rel)\b", "atom.release"),
        (r"fence\b", "fence"),
        (r"membar\b", "membar"),
    )
)
_STATEMENT = re.compile(r"\s*(?:(@!?[\w%$]+)\s+)?([a-z][\w.:" + GAP + r"]*)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"([$\w%][$\w%=.]*+(?:\{[^{}]*\})?)\s*:(?!:)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ADDRESS = re.compile(r"\[\s*(%\[\w+\]|[^\[\]]*?)\s*\]")
_ADDRESS_LAST = frozenset({"cp.async.bulk", "cp.reduce.async.bulk", "clusterlaunchcontrol.try_cancel"})
_MAY_BE_REMOTE = frozenset({"mbarrier.arrive", "mbarrier.expect_tx", "mbarrier.complete_tx", "st.async", "red.async"})
_RANK = {_W: 3, _S: 2, _P: 1, _F: 0}


@dataclass(frozen=True, slots=True)
class PtxOp:
    """One synchronising instruction of an asm text. `op` is None for the set-up of an mbarrier.

    `barrier`, `phase` and `count` are tokens of the text: an operand (`%0`, `%[name]`), a number, or empty where there is
    none or it can't be told. `is_looped` says that a branch back repeats it, `is_remote` that the barrier may be another CTA's.
    """

    stem: str
    op: SyncOp | None
    barrier: str = ""
    phase: str = ""
    count: str = ""
    is_looped: bool = False
    is_remote: bool = False

    @property
    def rank(self) -> int:
        """Which of several ops names the asm: a wait before a signal before a poll before a fence."""
        return -1 if self.op is None else _RANK[self.op.kind]


@dataclass(frozen=True, slots=True)
class _Instruction:
    opcode: str
    operands: tuple[str, ...]
    position: int


def instructions(text: str) -> tuple[str, ...]:
    """The opcodes of an asm text in order, with their modifiers."""
    return tuple(each.opcode for each in _parse(text)[0])


def ops_of(text: str) -> tuple[PtxOp, ...]:
    """The synchronising instructions of an asm text, in order. A poll that a branch back repeats is a wait."""
    parsed, labels = _parse(text)
    backs = [
        (labels[target], each.position)
        for each in parsed
        if each.opcode.split(".")[0] == "bra"
        and (target := each.operands[0] if each.operands else "") in labels
        and labels[target] <= each.position
    ]
    found = []
    for number, each in enumerate(parsed):
        stem, is_sync = _stem(each.opcode)
        if not is_sync:
            continue
        is_looped = any(start <= each.position < end for start, end in backs)
        found.append(_op(stem, each, parsed[:number], is_looped=is_looped))
    return tuple(found)


def _parse(text: str) -> tuple[list[_Instruction], dict[str, int]]:
    text = _COMMENT.sub(" ", text)
    found: list[_Instruction] = []
    labels: dict[str, int] = {}
    for position, part in enumerate(text.split(";")):
        rest = part.strip().lstrip("{}").strip()
        while label := _LABEL.match(rest):
            labels[label[1]] = position
            rest = rest[label.end() :].strip().lstrip("{}").strip()
        match = _STATEMENT.match(rest)
        if match is None or match[2] in ("reg", "pred"):
            continue
        operands = tuple(_split(match[3]))
        found.append(_Instruction(match[2], operands, position))
    return found, labels


def _split(text: str) -> list[str]:
    parts, depth, first = [], 0, 0
    for position, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
            if depth < 0:
                text = text[:position]
                break
        elif character == "," and depth == 0:
            parts.append(text[first:position].strip())
            first = position + 1
    last = text[first:].strip()
    return [*parts, last] if last else parts


def _stem(opcode: str) -> tuple[str | None, bool]:
    for pattern, stem in _PATTERNS:
        if pattern.match(opcode):
            return stem, True
    return "", False


def _op(stem: str | None, each: _Instruction, before: list[_Instruction], *, is_looped: bool) -> PtxOp:
    operands = each.operands
    row = None if stem is None else _BY_STEM[stem]
    if row is not None and is_looped and row.kind is Kind.POLL:
        row = replace(row, kind=Kind.WAIT)
    barrier = phase = count = ""
    is_remote = False
    if stem is None or (row is not None and row.side is _MBAR):
        at = _address(stem, operands)
        if at >= 0:
            barrier, is_remote = _resolve(operands[at], before)
            after = operands[at + 1 :]
            if row is not None and row.kind in (Kind.WAIT, Kind.POLL):
                phase = after[0] if after else ""
            elif stem is None or stem.startswith("mbarrier."):
                count = after[0] if after else ""
        # An arrival on shared::cluster names no CTA of its own; a wait can only be on the CTA's own barrier.
        is_remote = is_remote or ("shared::cluster" in each.opcode and stem in _MAY_BE_REMOTE)
    elif row is not None and row.side is _NAMED:
        at = 1 if stem == "bar.red" else 0
        barrier = operands[at] if len(operands) > at else ""
        count = operands[at + 1] if len(operands) > at + 1 else ""
        if stem == "bar.sync" and barrier == "0" and not count:
            row, barrier = CTA_BARRIER, ""
    elif row is not None and row.side is Side.FLAG and (at := _address(stem, operands)) >= 0:
        barrier = _inside(operands[at])
    if is_remote and row is not None:
        row = replace(row, group="cluster")
    return PtxOp(stem or each.opcode.split(".")[0], row, barrier, phase, count, is_looped, is_remote)


def _address(stem: str | None, operands: tuple[str, ...]) -> int:
    places = [number for number, operand in enumerate(operands) if operand.startswith("[")]
    if not places:
        return -1
    return places[-1] if stem in _ADDRESS_LAST else places[0] if stem not in ("st.async", "red.async") else places[-1]


def _inside(operand: str) -> str:
    match = _ADDRESS.match(operand)
    return operand if match is None else match[1]


def _resolve(operand: str, before: list[_Instruction]) -> tuple[str, bool]:
    """The operand of the asm that a register of its own goes back to, and whether `mapa` made it another CTA's address."""
    token = _inside(operand)
    is_remote = False
    for each in reversed(before):
        if token.startswith("%") and not token.startswith("%%"):
            break
        if len(each.operands) > 1 and each.operands[0] == token:
            is_remote = is_remote or each.opcode.startswith("mapa")
            token = _inside(each.operands[1])
    return token, is_remote
