# SPDX-License-Identifier: Apache-2.0
"""The inline PTX of a stamp, of binding a lane and of releasing it.

Each block is one volatile asm statement: the clock read is unpredicated and every gate (chosen CTA, writing thread, room
left) is folded into the sign of one 32-bit cursor, so a stamp has no branch. The `autostamp N` comments survive into the
PTX, where `autostamp safety` counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op

from autostamp.model.options import RecordOptions
from autostamp.runtime import layout, regions

_AT = layout.OFFSET


@dsl_user_op
def _asm(
    text: str, constraints: str, operands: list[Any], *, result: Any = None, loc: Any = None, ip: Any = None
) -> Any:
    return llvm.inline_asm(
        None if result is None else result.mlir_type,
        [operand.ir_value(loc=loc, ip=ip) for operand in operands],
        text,
        constraints,
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


@dataclass(frozen=True, slots=True)
class Cta:
    """The running CTA among those that record: `records` is Int32 1 or 0, `number` its number (0 in a CTA that does not record).

    `number` is None where one CTA records, which needs none.
    """

    records: Any
    number: Any = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next record goes: `low` is a one-element register tensor with the low word of its address.

    `high` is the high word, which no lane crosses, and `limit` the low word of the lane's end. Threads that must not write
    begin at the limit, which makes the bounds check the only gate. `low` differs between threads for a second reason: ptxas
    would keep a warp-uniform address in uniform registers and move it back for every store, five instructions more a stamp
    (seen in SASS of CUDA 13 for sm_90a).
    """

    low: Any
    high: Any
    limit: Any


def record(cursor: Cursor, word: Any, event: int, *, is_deferred: bool = False) -> None:
    """Store {clock, word} at the cursor if any room is left, and advance it. The store is 8-byte aligned.

    `is_deferred`: the instruction before let the warp go on while it waits. A store cannot be issued before that wait is
    over, so one that marks the record unused comes before the clock (docs/adr/0009).
    """
    low = cursor.low[0]
    clock = "mov.u32 c, %clock;\n"
    place = "setp.lt.u32 p, $0, $2;\nmov.b64 a, {$0, $1};\n"
    first = "@p st.volatile.global.b32 [a+4], 0;\n"
    _asm(
        "{ .reg .pred p; .reg .u32 c; .reg .b64 a;\n"
        f"// autostamp {event}\n"
        + (f"{place}{first}{clock}" if is_deferred else f"{clock}{place}")
        + "@p st.global.v2.b32 [a], {c, $3}; }",
        "r,r,r,r",
        [low, cursor.high, cursor.limit, word],
    )
    cursor.low[0] = low + layout.RECORD_BYTES


def clock(event: int) -> Any:
    """Int32 clock of a stamp whose record is written later, by `write`."""
    return Int32(_asm(f"// autostamp {event}\nmov.u32 $0, %clock;", "=r", [], result=Int32))


def skip(cursor: Cursor) -> Any:
    """Leave room for a record that is written later, and return its place."""
    low = cursor.low[0]
    cursor.low[0] = low + layout.RECORD_BYTES
    return low


def write(cursor: Cursor, low: Any, word: Any, clock: Any) -> None:
    """Store {clock, word} at `low`, a place that `skip` gave, if it lies in the lane."""
    _asm(
        "{ .reg .pred p; .reg .b64 a;\n"
        "setp.lt.u32 p, $0, $2;\n"
        "mov.b64 a, {$0, $1};\n"
        "@p st.global.v2.b32 [a], {$4, $3}; }",
        "r,r,r,r,r",
        [low, cursor.high, cursor.limit, word, clock],
    )


def bind(is_writer: Any, header: Any, capacity: int) -> None:
    """Open the headers of a warp's two lanes: note SM, clock and global timer, and mark the main lane entered."""
    at = _AT
    single = layout.WARPS * layout.lane_bytes(capacity) + at["remaining"]
    room = capacity * layout.RECORD_BYTES
    _asm(
        "{ .reg .pred p; .reg .u32 c, s; .reg .u64 g;\n"
        "// autostamp bind\n"
        "setp.ne.s32 p, $0, 0;\n"
        "mov.u32 s, %smid;\n"
        "mov.u64 g, %globaltimer;\n"
        "mov.u32 c, %clock;\n"
        f"@p st.global.u64 [$1+{at['entry_ns']}], g;\n"
        f"@p st.global.v2.u32 [$1+{at['entry_clock']}], {{c, s}};\n"
        f"@p st.global.v2.u32 [$1+{at['remaining']}], {{{room}, {layout.ENTERED}}};\n"
        f"@p st.global.v2.u32 [$1+{single}], {{{room}, 0}}; }}",
        "r,l",
        [is_writer, header],
    )


def bind_launch(is_writer: Any, header: Any, capacity: int, launch: Any) -> None:
    """Note the launch's number (None: 0) and the size of its grid: what tells several CTAs and launches apart."""
    second = layout.WARPS * layout.lane_bytes(capacity) + layout.GRID
    _asm(
        "{ .reg .pred p; .reg .u32 x, y, z;\n"
        "setp.ne.s32 p, $0, 0;\n"
        "mov.u32 x, %nctaid.x;\n"
        "mov.u32 y, %nctaid.y;\n"
        "mov.u32 z, %nctaid.z;\n"
        f"@p st.global.u32 [$1+{_AT['launch']}], $2;\n"
        f"@p st.global.v2.u32 [$1+{second}], {{x, y}};\n"
        f"@p st.global.u32 [$1+{second + 8}], z; }}",
        "r,l,r",
        [is_writer, header, Int32(0) if launch is None else launch],
    )


def launches_before(records: Any, counter: Any) -> Any:
    """Int32 how many launches were recorded before this one: what `counter` (Int64, an address) holds; 0 without reading it where
    `records` is 0. Past the caches: another launch wrote it.
    """
    found = _asm(
        "{ .reg .pred p;\nsetp.ne.s32 p, $1, 0;\nmov.u32 $0, 0;\n@p ld.volatile.global.u32 $0, [$2]; }",
        "=&r,r,l",
        [records, counter],
        result=Int32,
    )
    return Int32(found)


def count_launch(is_writer: Any, counter: Any) -> None:
    """Add this launch to the count that the next one reads."""
    _asm(
        "{ .reg .pred p;\nsetp.ne.s32 p, $0, 0;\n@p red.global.add.u32 [$1], 1; }",
        "r,l",
        [is_writer, counter],
    )


def release(is_writer: Any, cursor: Cursor, header: Any, signature: int) -> None:
    """Close the header of the main lane: clock, global timer, room left and the signature of the instance table."""
    at = _AT
    _asm(
        "{ .reg .pred p; .reg .u32 c; .reg .u64 g;\n"
        "// autostamp release\n"
        "setp.ne.s32 p, $0, 0;\n"
        "mov.u32 c, %clock;\n"
        "mov.u64 g, %globaltimer;\n"
        f"@p st.global.u64 [$2+{at['exit_ns']}], g;\n"
        f"@p st.global.v2.u32 [$2+{at['exit_clock']}], {{c, {signature}}};\n"
        f"@p st.global.v2.u32 [$2+{at['remaining']}], {{$1, {layout.RELEASED}}}; }}",
        "r,r,l",
        [is_writer, cursor.limit - cursor.low[0], header],
    )


def release_single(in_block: Any, cursor: Cursor, header: Any, capacity: int) -> None:
    """Close the header of a warp's single-thread lane, by whichever thread moved its cursor."""
    at = layout.WARPS * layout.lane_bytes(capacity) + _AT["remaining"]
    _asm(
        "{ .reg .pred p;\n"
        f"setp.lt.s32 p, $1, {capacity * layout.RECORD_BYTES};\n"
        "setp.ne.and.s32 p, $0, 0, p;\n"
        f"@p st.global.v2.u32 [$2+{at}], {{$1, {layout.RELEASED}}}; }}",
        "r,r,l",
        [in_block, cursor.limit - cursor.low[0], header],
    )


def in_block(block: tuple[int, int, int]) -> Any:
    """Int32 1 in the chosen CTA, 0 elsewhere."""
    x, y, z = cute.arch.block_idx()
    bx, by, bz = block
    return Int32(((x ^ bx) | (y ^ by) | (z ^ bz)) == 0)


def cta(options: RecordOptions) -> Cta:
    """Whether the running CTA records, and as which one."""
    blocks = options.blocks
    if blocks is None:
        return Cta(in_block(options.block), None if options.repeat == 1 else Int32(0))
    if blocks.listed:
        matches = [in_block(block) for block in blocks.listed]
        records, number = matches[0], Int32(0)
        for at, match in enumerate(matches[1:], 1):
            records, number = records | match, number + match * at
        return Cta(records, number)
    x, y, z = cute.arch.block_idx()
    size_x, size_y, _ = cute.arch.grid_dim()
    linear = x + size_x * (y + size_y * z) - blocks.first
    records = Int32(linear >= 0) * Int32(linear < blocks.count)
    return Cta(records, linear * records)


def counter(base: Any, cta: Cta, options: RecordOptions) -> Any:
    """Int64 address of this CTA's and warp's count of launches, behind the regions at `base`."""
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    begin = regions.counters_at(options)
    return Int64(base) + begin + Int64(cta.number * layout.WARPS + warp) * regions.COUNTER_BYTES


def region(base: Any, cta: Cta, launch: Any, options: RecordOptions) -> Any:
    """Address of the region of this CTA in this launch: a constant where there is one."""
    if cta.number is None:
        return base
    number = cta.number if launch is None else (launch % options.repeat) * options.ctas + cta.number
    return Int64(base) + Int64(number) * layout.region_bytes(options.capacity)


def is_lane_zero() -> Any:
    """Int32 1 in lane 0 of each warp, 0 elsewhere."""
    return Int32(cute.arch.lane_idx() == 0)


def header(base: Any, capacity: int) -> Any:
    """Int64 address of this warp's main lane, which begins with its header, in the region at `base`."""
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    return Int64(base) + Int64(warp) * layout.lane_bytes(capacity)


def cursor(lane: Any, writes: Any, capacity: int, high: int | None) -> Cursor:
    """The cursor of the lane at `lane` (Int64), for threads where `writes` is 1; `high` is its high word where that is known.

    A session knows the address of its buffer while tracing. A constant high word costs a register less than a variable one.

    A region does not cross a 4 GiB boundary (the allocator sees to it), so only the low word moves. In a buffer given by hand
    that does cross one, the lane that straddles it has `limit` below `low` and records nothing, which the header shows.
    """
    room = capacity * layout.RECORD_BYTES
    last = lane + (layout.HEADER_BYTES + room)
    limit = Int32(last & 0xFFFFFFFF)
    low = cute.make_rmem_tensor(1, Int32)
    low[0] = limit - writes * room
    return Cursor(low, Int32(high) if high is not None else Int32(last >> 32) * writes, limit)


def event_word(event: int, payload: Any) -> Any:
    """The event word: `event` with `payload` (None, a Python int or a dynamic Int32) in the upper half."""
    if payload is None:
        return Int32(event)
    if isinstance(payload, int):
        return Int32(event | (payload << layout.EVENT_BITS))
    return Int32(payload) * (1 << layout.EVENT_BITS) + event
