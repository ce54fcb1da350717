# SPDX-License-Identifier: Apache-2.0
"""Is this call or asm a sync op of device code, and which barrier does it name?

Rows of the user win; then functions of the project that only wrap a sync op; then the catalogue, whose ambiguous names need
evidence: device code, the right number of arguments, and an object or argument that looks like a barrier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tree_sitter import Node

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.cuda.catalogue import ENTRIES, RECEIVER, Entry, Way
from autostamp.passes.cuda.expressions import filled, is_wide_number, shared_address, template_arguments
from autostamp.passes.cuda.functions import Asm, Call, Function, Index, bare
from autostamp.passes.cuda.opcodes import ops_of
from autostamp.passes.cuda.receivers import Receivers, last_name
from autostamp.passes.cuda.recognised import Recognised, recognised
from autostamp.passes.cuda.resolve import Resolver
from autostamp.passes.cuda.source import Source
from autostamp.passes.cuda.wrapper_bodies import MAX_LINES, Wrapper, in_spin, is_light_asm
from autostamp.passes.cuda.wrappers import Wrappers

__all__ = ["Recognised", "Recognizer", "operand"]

_TOKEN = re.compile(r"%(?:(\d+)|\[(\w+)\])")
_HOST = re.compile(
    r"(?i)stream(?!ed)|event(?!ually)|future|std::mutex|condition_variable|latch|std::thread|threads?\Z|socket|process\Z"
)
_NUMBER = re.compile(r"(?:const\s+)?(?:unsigned|u?int(?:\d+_t)?|size_t|long|short)\b")
# A number, an enumerator, or a name that says so: `3`, `Bar::Full`, `kBarrier`, `bar_id + wg`.
_IS_NUMBER = re.compile(r"[\d\s+*()-]+|\w+::\w+|k[A-Z]\w*|.*\b\w*(?i:id|idx|index|number)\b.*")
_NAMED_OBJECT = re.compile(r"(?:\w+\s*::\s*)*NamedBarrier\s*(?:<[^<>]*>)?\s*[({](.*)[)}]\Z", re.DOTALL)
_RANK = {Kind.WAIT: 3, Kind.SIGNAL: 2, Kind.POLL: 1, Kind.FENCE: 0}


class Recognizer:
    """Recognition over one project, with a memory: the calls of `index` are looked at once."""

    def __init__(self, index: Index, sources: Mapping[Path, Source], extra_ops: Iterable[SyncOp] = ()) -> None:
        self.index = index
        self.receivers = Receivers(index, sources)
        self._resolver = Resolver(index, self.receivers, sources)
        self._extra: dict[str, list[SyncOp]] = {}
        for op in extra_ops:
            self._extra.setdefault(op.method, []).append(op)
        self._entries: dict[str, list[Entry]] = {}
        for entry in ENTRIES:
            self._entries.setdefault(entry.op.method, []).append(entry)
        self._wrappers = Wrappers(index, self._item)
        self._calls: dict[int, Recognised | None] = {}
        self._names = self._names_that_sync()

    @property
    def own_names(self) -> frozenset[str]:
        """The methods of the user's rows."""
        return frozenset(self._extra)

    def call(self, call: Call, function: Function) -> Recognised | None:
        """What a call in `function` is; None for anything that is no sync op, or not device code.

        A load from memory is a poll only where a loop repeats it.
        """
        if call.name in self._extra and (mine := self._own_row(call)) is not None:
            return mine
        if not (function.is_device or function.is_macro):
            return None
        return _unless_idle(self._call(call, function), call.node)

    def asm(self, asm: Asm, function: Function) -> Recognised | None:
        """What an asm expression is: its wait, else its signal, its poll, its fence; None without any."""
        if not (function.is_device or function.is_macro):
            return None
        return _unless_idle(self._asm(asm, function), asm.node)

    def is_wrapper(self, function: Function) -> bool:
        """True when calls of `function` are what is stamped, so that nothing inside it is."""
        if function.is_kernel or not (function.is_device or function.is_macro):
            return False
        if function.name in self._extra:
            return True
        if self._wrappers.of(function) is not None:
            return True
        entries = self._entries.get(function.name, ())
        return any(self._is_definition(function, entry) for entry in entries if entry.op.kind is not Kind.FENCE)

    def candidates(self, call: Call, function: Function) -> tuple[Function, ...]:
        """The definitions that a call can mean, as far as names, classes and numbers of arguments tell."""
        return self._resolver.resolve(call, function).candidates

    def setups(self, function: Function) -> tuple[tuple[str, str], ...]:
        """The mbarriers that asm of `function` initialises: address and arrival count, as texts."""
        return tuple(
            (operand(asm, op.barrier), operand(asm, op.count))
            for asm in function.asms
            for op in ops_of(asm.text)
            if op.op is None
        )

    def _item(self, item: Call | Asm, function: Function) -> Recognised | None:
        return self._call(item, function) if isinstance(item, Call) else self._asm(item, function)

    def _asm(self, asm: Asm, function: Function) -> Recognised | None:
        best = max(ops_of(asm.text), key=lambda op: op.rank, default=None)
        if best is None or best.op is None or (best.op.kind is Kind.FENCE and not is_light_asm(asm)):
            return None
        barrier = operand(asm, best.barrier)
        if best.op.side is Side.MBARRIER:
            barrier = shared_address(barrier)
            if barrier.isidentifier() and is_wide_number(self.receivers.declared(barrier, function)):
                barrier = ""
        return recognised(best.op, barrier, operand(asm, best.phase))

    def _own_row(self, call: Call) -> Recognised | None:
        for op in self._extra[call.name]:
            last = op.owner.replace(".", "::").split("::")[-1]
            if last and last not in f"{call.qualifier} {call.receiver}":
                continue
            first = call.arguments[0] if call.arguments else ""
            if op.stage_from is StageFrom.STATE:
                return recognised(op, call.receiver, state=first)
            if op.stage_from in (StageFrom.POINTER, StageFrom.BARRIER_ID):
                return recognised(op, first)
            return recognised(op, "" if op.stage_from is StageFrom.NONE else call.receiver or first)
        return None

    def _call(self, call: Call, function: Function) -> Recognised | None:
        key = id(call)
        if key in self._calls:
            return self._calls[key]
        before = self._wrappers.cuts
        found = self._looked_up(call, function)
        if found is not None or self._wrappers.cuts == before:
            self._calls[key] = found
        return found

    def _names_that_sync(self) -> frozenset[str]:
        """Names of rows, and of functions short enough to wrap an op that they or others of such a name hold.

        Nearly all calls are ruled out by their name alone.
        """
        names = set(self._entries)
        callers: dict[str, set[str]] = {}
        short = [each for each in self.index.functions if each.lines <= MAX_LINES]
        for function in (*short, *(macro for group in self.index.macros.values() for macro in group)):
            parameters = {parameter.name for parameter in function.parameters}
            if any(ops_of(asm.text) for asm in function.asms) or any(
                call.name in parameters for call in function.calls
            ):
                names.add(function.name)
            for call in function.calls:
                callers.setdefault(call.name, set()).add(function.name)
        pending = list(names)
        while pending:
            new = callers.get(pending.pop(), set()) - names
            names |= new
            pending += new
        return frozenset(names)

    def _looked_up(self, call: Call, function: Function) -> Recognised | None:
        if call.name not in self._names:
            return None
        resolved = self._resolver.resolve(call, function)
        if not resolved.is_certain and (entry := self._entry(call, function, (), is_sync=False)) is not None:
            return self._by_entry(entry, call, function, None)
        # An overload that calls its namesake is rarely recursive: what it means are the others.
        candidates = tuple(each for each in resolved.candidates if each is not function) or resolved.candidates
        if (spun := self._spun(call, function, candidates)) is not None:
            return spun
        found = [self._wrappers.of(each) for each in candidates]
        wrappers = [each for each in found if each is not None]
        is_sync = bool(wrappers) and len(wrappers) == len(found)
        if len({each.op.side for each in wrappers}) > 1:
            typed = self._resolver.by_types(call, function, resolved.candidates)
            wrappers = [each for each in map(self._wrappers.of, typed) if each is not None] or self._likely(
                wrappers, call
            )
        if not is_sync:
            entry = self._entry(call, function, resolved.candidates, is_sync=False)
            return None if entry is None else self._by_entry(entry, call, function, None)
        inferred = _instance(wrappers, call, function)
        entry = self._entry(call, function, resolved.candidates, is_sync=True, like=inferred.op)
        return inferred if entry is None else self._by_entry(entry, call, function, inferred)

    def _spun(self, call: Call, function: Function, candidates: Sequence[Function]) -> Recognised | None:
        """A call of a function that repeats the lambda it is given, which polls: the wait that both together are."""
        if not candidates or not any("[" in argument for argument in call.arguments):
            return None
        if not all(self._wrappers.is_spinner(each) for each in candidates):
            return None
        pieces: tuple[Call | Asm, ...] = (*function.calls, *function.asms)
        inner = [each for each in pieces if call.start < each.start and each.end < call.end]
        polls = [found for each in inner if (found := self._item(each, function)) is not None]
        poll = next((found for found in polls if found.op.kind is Kind.POLL), None)
        return None if poll is None else replace(poll, op=replace(poll.op, kind=Kind.WAIT, method=call.name))

    def _likely(self, wrappers: list[Wrapper], call: Call) -> list[Wrapper]:
        """Of overloads for barrier objects and for barrier numbers those that a call's first argument looks like."""
        first = call.arguments[0] if call.arguments else ""
        wanted = Side.NAMED if _IS_NUMBER.fullmatch(first) else Side.MBARRIER
        return [each for each in wrappers if each.op.side is wanted] or wrappers

    def _entry(
        self,
        call: Call,
        function: Function,
        known: Sequence[Function],
        *,
        is_sync: bool,
        like: SyncOp | None = None,
    ) -> Entry | None:
        """The row that a call means: its shape fits, its definitions (if known) are no other thing, and it has evidence.

        `like` is what the definitions were found to be.
        """
        entries = [entry for entry in self._entries.get(call.name, ()) if _fits(entry, call)]
        if like is not None:
            entries = [each for each in entries if each.op.kind is like.kind and each.op.side in _sides(like.side)]
        for entry in entries:
            if known and not is_sync and not any(self._is_definition(each, entry) for each in known):
                continue
            if is_sync or entry.evidence is None or self._is_evident(entry.evidence, call, function):
                return self._of_class(entry, entries, call, function)
        return None

    def _is_evident(self, evidence: re.Pattern[str], call: Call, function: Function) -> bool:
        place = call.receiver or (call.arguments[0] if call.arguments else "")
        text = self.receivers.describe(place, function)
        return evidence.search(text) is not None and not (call.receiver and _HOST.search(text))

    def _of_class(self, entry: Entry, entries: Sequence[Entry], call: Call, function: Function) -> Entry:
        """The row of the receiver's own class, when that is known to be one of several that have a row."""
        if not call.receiver:
            return entry
        classes = self.receivers.classes(call.receiver, function)
        owners = {each.op.owner: each for each in reversed(entries) if each.op.owner.split("::")[-1] in classes}
        return next(iter(owners.values())) if len(owners) == 1 else entry

    def _is_definition(self, function: Function, entry: Entry) -> bool:
        """True when `function` is the library's definition of a row, or one in its manner."""
        if entry.definers is not None and function.owner:
            family = self.receivers.family(function.owner, function.file)
            return any(entry.definers.fullmatch(name) for name in family)
        if Way.FREE in entry.way and entry.is_certain and self._resolver.is_namespace(function):
            if entry.op.owner == "cuda":
                # A built-in, even where a library wraps it in its own logging (cutlass/arch/synclog.hpp).
                return True
            scope = function.qualified.rpartition("::")[0]
            return scope.endswith(entry.op.owner) or self._wrappers.is_light(function)
        return False

    def _by_entry(self, entry: Entry, call: Call, function: Function, inferred: Recognised | None) -> Recognised:
        barrier, phase, state = (_place(where, call) for where in (entry.barrier, entry.phase, entry.state))
        op = entry.op
        if inferred is not None:
            owner = inferred.op.owner
            is_library = entry.definers.fullmatch(owner) is not None if entry.definers else owner.endswith(op.owner)
            op = replace(op, owner=owner or op.owner)
            if not is_library and not state:
                # The body shows which argument the barrier is, or whether it is all that the object holds.
                barrier, phase = inferred.barrier, phase or inferred.phase
        if state and _NUMBER.match(self.receivers.declared(last_name(state), function)):
            # A stage number and a phase, not a state object.
            return Recognised(op, barrier, phase, group=op.group)
        if state and call.is_arrow:
            barrier = f"(*{barrier})"
        if op.side is Side.NAMED and (built := _NAMED_OBJECT.match(call.receiver)) is not None:
            arguments = template_arguments(f"<{built[1]}>")
            if len(arguments) == 2:
                return recognised(replace(op, stage_from=StageFrom.BARRIER_ID), arguments[1])
        return recognised(op, barrier, phase, state)


def _sides(side: Side) -> tuple[Side, ...]:
    """Sides that a row may have where a definition was found to have `side`: a pipeline's is one of its mbarriers."""
    return (side, Side.FULL, Side.EMPTY) if side is Side.MBARRIER else (side,)


def operand(asm: Asm, token: str) -> str:
    """The expression of an asm operand (`%0`, `%[name]`), a number as it is, '' for a register of the asm itself."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return token if token.isdigit() else ""
    if match[1] is not None:
        number = int(match[1])
        return asm.operands[number] if number < len(asm.operands) else ""
    return asm.operands[asm.names.index(match[2])] if match[2] in asm.names else ""


def _unless_idle(found: Recognised | None, node: Node) -> Recognised | None:
    """None for a load from memory that no loop repeats."""
    if found is None or found.op.kind is not Kind.POLL or found.op.side is not Side.FLAG:
        return found
    return found if in_spin(node) else None


def _fits(entry: Entry, call: Call) -> bool:
    if not entry.least <= len(call.arguments) <= entry.most:
        return False
    if call.receiver:
        return Way.METHOD in entry.way
    last = bare(call.qualifier).split("::")[-1] if call.qualifier else ""
    if entry.qualifiers:
        return last in entry.qualifiers
    if Way.STATIC in entry.way and Way.FREE not in entry.way:
        return bool(last)
    return Way.FREE in entry.way


def _place(where: str, call: Call) -> str:
    if not where:
        return ""
    if where == RECEIVER:
        return call.receiver
    number = int(where)
    return call.arguments[number] if -len(call.arguments) <= number < len(call.arguments) else ""


def _instance(wrappers: list[Wrapper], call: Call, function: Function) -> Recognised:
    """A call of one of several wrappers: the strongest of their ops, and no operand that they disagree on."""
    receiver = call.receiver or ("this" if function.owner else "")
    explicit = template_arguments(call.template)
    first = max(wrappers, key=lambda each: _RANK[each.op.kind])
    like = [each for each in wrappers if each.op.kind is first.op.kind]
    texts = [
        {filled(getattr(each, field), _arguments(each, call, explicit), receiver) for each in like}
        for field in ("barrier", "phase", "state")
    ]
    barrier, phase, state = (text.pop() if len(text) == 1 else "" for text in texts)
    owners = {each.owner for each in like}
    op = replace(first.op, owner=first.owner if len(owners) == 1 else "", method=call.name)
    if len({each.op.side for each in like}) > 1:
        op = replace(op, group="")
    return recognised(op, barrier, phase, state)


def _arguments(wrapper: Wrapper, call: Call, explicit: Sequence[str]) -> list[str]:
    """Arguments as a wrapper's templates number them: those of the call, then the explicit template arguments."""
    missing = wrapper.parameters - len(call.arguments)
    return [*call.arguments[: wrapper.parameters], *[""] * max(0, missing), *explicit]
