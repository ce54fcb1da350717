# SPDX-License-Identifier: Apache-2.0
"""What a stamped file calls. Each call runs once, while a kernel is traced; with no lane bound it does nothing.

A stamped file holds one `Stamper`, made by `stamper(key)`. Its kernels begin with `bind` and end with `release`; between
them any function reached by the trace finds the lane through this module, so no helper's signature changes.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import FrameType
from typing import Any

from autostamp.model.manifest import Payload
from autostamp.model.options import RecordOptions
from autostamp.model.placement import Form
from autostamp.runtime import layout
from autostamp.runtime.cutedsl.identity import Operand, identify, is_library, name_in_frames
from autostamp.runtime.cutedsl.trace_builder import Origin, TraceBuilder
from autostamp.runtime.recorder import RECORDER

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_REGION_FUNCTIONS = ("loop_body", "then_block", "else_block", "elif_", "while_", "if_region", "lambda")


@dataclass
class _Open:
    """A site between its first and last stamp. `instance` is 0 while it is muted or not yet identified.

    `is_deferred`: it waits, or holds a wait, that lets the warp go on before it ends. `is_done`: its last stamp is there already.
    """

    site: int
    is_wait: bool
    instance: int = 0
    is_muted: bool = False
    is_late: bool = False
    is_deferred: bool = False
    is_done: bool = False
    payload: Any = None
    operand: Operand | None = None
    text: str = ""


@dataclass
class _Carried:
    """A record whose clock was read in `block` and that is still to be written to its place, `low` of the cursor."""

    cursor: Any
    low: Any
    word: Any
    clock: Any
    block: Any


@dataclass
class _Lane:
    """The lane of the kernel being traced."""

    builder: TraceBuilder
    function: Any
    frame: FrameType
    options: RecordOptions
    base: Any
    header: Any
    cursor: Any
    single: Any
    roles: list[str] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    carried: list[_Carried] = field(default_factory=list)
    uses_single: bool = False


class _Trace(threading.local):
    """The lane that this thread is tracing, if any: each thread traces in an MLIR context of its own."""

    lane: _Lane | None = None


_TRACE = _Trace()


class Stamper:
    """The stamps of one source file; `key` names the file in the manifest, `deferred` the sites whose waits let the warp go
    on before they end, `forms` those whose stamps are not in the usual form (a value of `Form`; empty: no stamp).
    """

    def __init__(self, key: str, deferred: Collection[int] = (), forms: Mapping[int, str] | None = None) -> None:
        self._key = key
        self._deferred = frozenset(deferred)
        self._forms = {site: Form(form) if form else None for site, form in (forms or {}).items()}

    def bind(self, buffer: Any, kernel: str) -> None:
        """Bind this warp's lane at kernel entry: to `buffer` (a tensor or an address), else to the open session's."""
        _TRACE.lane = None
        RECORDER.at_entry()
        if buffer is None and not RECORDER.is_open:
            return
        from autostamp.runtime.cutedsl import emit, mlir

        frame = sys._getframe(1)
        options = RECORDER.options
        function = mlir.enclosing_function()
        symbol = mlir.symbol(function)
        RECORDER.at_kernel(symbol)
        if buffer is None:
            region = RECORDER.region((self._key, kernel, symbol, mlir.type_of(function), _configuration(frame)))
            number, base, high = region.number, region.address, region.address >> 32
        else:
            # Who passes a buffer made it for one CTA (`record_bytes`), whatever a session before asked for.
            options = replace(options, blocks=None, repeat=1)
            number, base, high = 0, _address(buffer), None
        builder = TraceBuilder(kernel, self._key, symbol, options, number)
        cta = emit.cta(options)
        is_writer = cta.records * emit.is_lane_zero()
        launch = None
        if options.repeat > 1:
            launch = emit.launches_before(cta.records, emit.counter(base, cta, options))
        header = emit.header(emit.region(base, cta, launch, options), options.capacity)
        emit.bind(is_writer, header, options.capacity)
        if not options.is_plain:
            emit.bind_launch(is_writer, header, options.capacity, launch)
        cursor = emit.cursor(header, is_writer, options.capacity, high)
        # The one running thread of a single-thread region need not be lane 0 (PTX ISA, elect.sync): every thread has a
        # cursor into the warp's second lane, and the compiler drops it from kernels that have no such region.
        second = header + layout.WARPS * layout.lane_bytes(options.capacity)
        single = emit.cursor(second, cta.records, options.capacity, high)
        _TRACE.lane = _Lane(builder, function, frame, options, base, header, cursor, single)

    def release(self) -> None:
        """Write the lane's header at a kernel exit. Does nothing when no lane is bound here."""
        lane = _current()
        if lane is None:
            return
        from autostamp.runtime.cutedsl import emit

        _settle(lane)
        trace = lane.builder.finish(len(RECORDER.traces) + 1)
        cta = emit.cta(lane.options)
        is_writer = cta.records * emit.is_lane_zero()
        emit.release(is_writer, lane.cursor, lane.header, trace.signature)
        if lane.uses_single:
            emit.release_single(cta.records, lane.single, lane.header, trace.capacity)
        if lane.options.repeat > 1:
            emit.count_launch(is_writer, emit.counter(lane.base, cta, lane.options))
        RECORDER.add(trace)
        # One exit is traced of a kernel's several; keeping the lane would keep the whole trace's values alive.
        _TRACE.lane = None

    def hand(self, buffer: Any) -> dict[str, Any]:
        """Keyword arguments that pass a buffer given by hand on to the kernel; none without one, so nothing changes."""
        return {} if buffer is None else {"mProf": buffer}

    def role(self, name: str) -> None:
        """Enter a role branch: sites reached from here on belong to role `name`."""
        lane = _current()
        if lane is not None:
            # The outermost branch names the role; what it calls may test the warp index again for its own purposes.
            lane.roles.append(name)

    def role_end(self) -> None:
        """Leave the innermost role branch."""
        lane = _current()
        if lane is not None and lane.roles:
            lane.roles.pop()

    def enter(self, site: int, receiver: Any = None, **operand: Any) -> None:
        """Stamp before a wait."""
        self._start(site, True, receiver, operand)

    def open(self, site: int, receiver: Any = None, **operand: Any) -> None:
        """Note the barrier and stage of a signal before the call, which may move the state. Emits nothing."""
        self._start(site, False, receiver, operand)

    def see(self, site: int, value: Any, field_name: str, text: str = "", *, waits: bool = False) -> Any:
        """Pass an operand through unchanged, noting it for `site`: it is evaluated once, where the author wrote it.

        A site whose receiver is itself a sync call is opened here, after that call; `waits` says that it is a wait.
        """
        lane = _current()
        if lane is None or self._form(site) is None:
            return value
        is_opened = not lane.open or lane.open[-1].site != site
        entry = self._push(lane, site, is_wait=waits) if is_opened else lane.open[-1]
        if not entry.is_muted:
            self._identify(lane, entry, Operand(**{field_name: value}, text=text or entry.text), sys._getframe(1))
            if is_opened:
                self._first_stamp(lane, entry)
        return value

    def exit(self, site: int) -> None:
        """Stamp after a wait."""
        self._finish(site, "exit")

    def signal(self, site: int) -> None:
        """Stamp after a signal."""
        self._finish(site, "signal")

    def wrap(self, site: int, function: Callable[..., Any], kind: str, text: str) -> Callable[..., Any]:
        """A function that stamps around `function`, which the program passes on to be called elsewhere.

        With no lane bound it is `function` itself.
        """
        if _current() is None or self._form(site) is None:
            return function

        @functools.wraps(function)
        def stamped(*args: Any, **kwargs: Any) -> Any:
            self._start(site, kind == "wait", None, {"text": text})
            result = function(*args, **kwargs)
            self._finish(site, "exit" if kind == "wait" else "signal")
            return result

        return stamped

    def around(self, site: int, _first: None, value: Any) -> Any:
        """Expression form: `around(n, enter(n, ...), call)` stamps after the call and returns the call's value.

        Python evaluates arguments from left to right, so the first stamp comes before the call wherever the call stands.
        """
        lane = _current()
        if lane is not None and self._form(site) is not None:
            waits = any(entry.site == site and entry.is_wait for entry in lane.open)
            self._finish(site, "exit" if waits else "signal")
        return value

    def _push(self, lane: _Lane, site: int, *, is_wait: bool) -> _Open:
        """Open a site. Inside another open one it is muted: a wrapper forwards to it, and the wrapper's caller is stamped."""
        entry = _Open(site, is_wait, is_muted=bool(lane.open))
        lane.builder.muted += entry.is_muted
        lane.open.append(entry)
        return entry

    def _form(self, site: int) -> Form | None:
        """The form in which a site is stamped; None where it is not to be."""
        if RECORDER.forms is not None:
            return RECORDER.forms.get((self._key, site))
        return self._forms.get(site, Form.BOTH)

    def _start(self, site: int, is_wait: bool, receiver: Any, operand: dict[str, Any]) -> None:
        lane = _current()
        if lane is None or self._form(site) is None:
            return
        is_later = operand.pop("later", False)
        entry = self._push(lane, site, is_wait=is_wait)
        if entry.is_muted:
            return
        entry.text = str(operand.get("text", ""))
        entry.is_late = is_later
        self._identify(lane, entry, Operand(receiver=receiver, **operand), sys._getframe(2))
        self._first_stamp(lane, entry)

    def _first_stamp(self, lane: _Lane, entry: _Open) -> None:
        """Stamp before the call. What is only known later, or has no stamp before it, goes into the stamp after it."""
        form = self._form(entry.site) or Form.BOTH
        if entry.is_wait and not form.has_enter:
            entry.is_late = True
        elif entry.is_wait:
            event = lane.builder.event()
            lane.builder.put(entry.instance, enter=event)
            _record(lane, event, None if entry.is_late else entry.payload)
        elif form is Form.BEFORE and not entry.is_late:
            event = lane.builder.event()
            lane.builder.put(entry.instance, signal=event, form=form.value)
            _record(lane, event, entry.payload)
            entry.is_done = True

    def _identify(self, lane: _Lane, entry: _Open, operand: Operand, frame: FrameType) -> None:
        """Find barrier and stage of an open site; a second call (from `see`) adds to what the first one knew."""
        if entry.operand is not None:
            operand = operand.over(entry.operand)
        entry.operand = operand
        identity = identify(operand)
        if not RECORDER.options.with_payload and not isinstance(identity.value, int):
            identity = replace(identity, payload=Payload.NONE, value=None)
        entry.payload = None if isinstance(identity.value, int) else identity.value
        barrier = 0
        if not (entry.is_late and identity.is_anonymous):
            label = name_in_frames((operand.receiver, identity.owner), frame, lane.frame)
            barrier = lane.builder.barrier(identity, label or operand.text)
        if entry.instance:
            lane.builder.update(entry.instance, barrier, identity)
        else:
            role = lane.roles[0] if lane.roles else ""
            path = _call_path(frame, lane.frame)
            kind = "wait" if entry.is_wait else "signal"
            entry.instance = lane.builder.add(Origin(self._key, entry.site, kind, role, path), barrier, identity)

    def _finish(self, site: int, stamp: str) -> None:
        lane = _current()
        if lane is None:
            return
        if self._form(site) is not None and any(entry.site == site for entry in lane.open):
            self._last_stamp(lane, site, stamp)
        else:
            _write_carried(lane)

    def _last_stamp(self, lane: _Lane, site: int, stamp: str) -> None:
        """Stamp after the call, and write behind it what earlier waits left to be written."""
        while lane.open[-1].site != site:
            lane.open.pop()
        entry = lane.open.pop()
        is_deferred = entry.is_deferred or site in self._deferred
        if lane.open:
            lane.open[-1].is_deferred |= is_deferred
        form = self._form(site) or Form.BOTH
        if is_deferred and form.is_carried:  # its clock waits for a store, so it is written where it is read
            form = Form.BOTH if form.has_enter else Form.EXIT
        if entry.is_muted or not entry.instance or entry.is_done:
            if not entry.is_muted:
                _write_carried(lane)
            return
        if entry.is_wait and form is not Form.BOTH:
            lane.builder.put(entry.instance, form=form.value)
        if entry.is_wait and not form.has_exit:
            if entry.is_late:
                # No record was left to carry what was learnt after it.
                lane.builder.put(entry.instance, payload=Payload.NONE)
            _write_carried(lane)
            return
        event = lane.builder.event()
        lane.builder.put(entry.instance, **{stamp: event})
        payload = entry.payload if not entry.is_wait or entry.is_late else None
        if form.is_carried and entry.is_wait:
            _write_carried(lane)
            _carry(lane, event, payload)
        else:
            _record(lane, event, payload, is_deferred=is_deferred and entry.is_wait)
            _write_carried(lane)


def stamper(key: str, deferred: Collection[int] = (), forms: Mapping[int, str] | None = None) -> Stamper:
    """The stamper of the file whose manifest key is `key`."""
    return Stamper(key, deferred, forms)


def _current() -> _Lane | None:
    """The bound lane, unless the trace has moved on to another kernel."""
    lane = _TRACE.lane
    if lane is None:
        return None
    from autostamp.runtime.cutedsl import mlir

    # A kernel that was left without a release (an exception, say) must not hand its values to the next one.
    return lane if mlir.enclosing_function() == lane.function else None


def _record(lane: _Lane, event: int, payload: Any, *, is_deferred: bool = False) -> None:
    from autostamp.runtime.cutedsl import emit

    emit.record(_cursor(lane), emit.event_word(event, payload), event, is_deferred=is_deferred)


def _cursor(lane: _Lane) -> Any:
    """The cursor of the thread that writes here."""
    from autostamp.runtime.cutedsl import mlir

    is_single = mlir.in_single_thread_region()
    lane.uses_single |= is_single
    return lane.single if is_single else lane.cursor


def _carry(lane: _Lane, event: int, payload: Any) -> None:
    """Read the clock, and leave the record's place free: records stay in the order of their clocks."""
    from autostamp.runtime.cutedsl import emit, mlir

    cursor = _cursor(lane)
    clock = emit.clock(event)
    low = emit.skip(cursor)
    lane.carried.append(_Carried(cursor, low, emit.event_word(event, payload), clock, mlir.block()))


def _write_carried(lane: _Lane) -> None:
    """Write what was carried in this block. What was carried in a block that has ended meanwhile is written at its end."""
    if not lane.carried:
        return
    from autostamp.runtime.cutedsl import emit, mlir

    waiting, lane.carried = lane.carried, []
    around = mlir.enclosing_blocks()
    for each in waiting:
        if each.block == around[0]:
            emit.write(each.cursor, each.low, each.word, each.clock)
        elif each.block in around:
            lane.carried.append(each)
        else:
            with mlir.at_end(each.block):
                emit.write(each.cursor, each.low, each.word, each.clock)


def _settle(lane: _Lane) -> None:
    """At a kernel exit: write all that is carried."""
    _write_carried(lane)
    for each in lane.carried:
        from autostamp.runtime.cutedsl import emit

        emit.write(each.cursor, each.low, each.word, each.clock)
    lane.carried.clear()


def _address(buffer: Any) -> Any:
    """Address of a buffer given by hand: a CuTe tensor, or a pointer or integer already."""
    iterator = getattr(buffer, "iterator", buffer)
    to_int = getattr(iterator, "toint", None)
    return iterator if to_int is None else to_int()


def _call_path(innermost: FrameType, outermost: FrameType) -> tuple[str, ...]:
    """`function:line` of the user's frames from the kernel down to the stamp.

    The DSL makes a function of each dynamic region; such a frame is no part of the path, but knows the line better than the
    frame of the function that it was cut from, which stands at the region's head.
    """
    path: list[str] = []
    line = 0
    frame: FrameType | None = innermost
    while frame is not None and frame is not outermost.f_back:
        if not is_library(frame):
            line = line or frame.f_lineno
            name = frame.f_code.co_name
            if not name.startswith(_REGION_FUNCTIONS):
                path.append(f"{name}:{RECORDER.original_line(frame.f_code.co_filename, line)}")
                line = 0
        frame = frame.f_back
    return tuple(reversed(path))


def _configuration(frame: FrameType) -> str:
    """Plain attributes of the kernel's `self`: what tells two compilations with equal symbol and type apart."""
    plain = (bool, int, float, str, tuple, type(None), Enum)
    own = frame.f_locals.get("self")
    fields = getattr(own, "__dict__", {})
    text = repr(sorted((name, repr(value)) for name, value in fields.items() if isinstance(value, plain)))
    return _ADDRESS.sub("", text)
