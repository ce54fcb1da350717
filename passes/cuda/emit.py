# SPDX-License-Identifier: Apache-2.0
"""Sites, kernels and launches to edits: macros on the line of what they bracket, which are nothing until the build turns them on.

A stamped statement reads `AUTOSTAMP_ENTER_AT(KEY,3,(full[s])) full[s].wait(phase); AUTOSTAMP_EXIT(KEY,3)`. Numbers count from 1
in a file; the generated `autostamp_unit.cuh` says where the numbers of each KEY begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from autostamp.model import placement
from autostamp.model.edit import Edit
from autostamp.model.sync import Kind
from autostamp.passes.cuda.found import Form, FoundSite, OperandKind
from autostamp.passes.cuda.launches import Hook
from autostamp.passes.cuda.views import views

PREFIX = "AUTOSTAMP_"
HEADER = "autostamp.cuh"
# Ranks of edits at one offset: what ends there comes first, the inner before the outer; then what begins, the outer first.
RANK_HEAD = -1 << 20
RANK_CLOSE = -1 << 10
RANK_BODY = 0
RANK_OPEN = 1 << 10
_STEP = 4

_SUFFIX = {
    OperandKind.NONE: "",
    OperandKind.ADDRESS: "_AT",
    OperandKind.PIPELINE: "_PIPE",
    OperandKind.BARRIER_ID: "_ID",
}
_BOM = b"\xef\xbb\xbf"


def head(original: bytes, header: str = HEADER, line_name: str = "") -> Edit:
    """The include of the stamps' header and a `#line` that gives the rest its numbers back.

    `line_name` is what `__FILE__` and messages are to say (empty: the name under which the stamped file is compiled).
    """
    start = len(_BOM) if original.startswith(_BOM) else 0
    newline = "\r\n" if b"\r\n" in original else "\n"
    named = ' "{}"'.format(line_name.replace("\\", "\\\\").replace('"', '\\"')) if line_name else ""
    return Edit(start, start, f'#include "{header}"{newline}#line 1{named}{newline}', RANK_HEAD)


def stamps(
    sites: Iterable[FoundSite], key: str, code: bytes, forms: Mapping[int, placement.Form] | None = None
) -> list[Edit]:
    """The edits of all sites of one file. `code` is the file without comments and literals.

    Sites may nest (a polling loop around others) and share a statement; a statement without braces gets one pair of them. A
    signal of no length stands between those braces and the wait that it belongs to. `forms` has the sites whose stamps are
    not in the usual form, as `possible` says.
    """
    made: list[Edit] = []
    forms = forms or {}
    around: list[FoundSite] = []
    branches: set[tuple[int, int]] = set()
    for found in sorted(sites, key=lambda each: (each.start, -each.end, each.site.number)):
        while around and around[-1].end <= found.start:
            around.pop()
        if found.start == found.end:
            depth = _STEP * sum(each.start < found.start for each in around)
            made.append(Edit(found.start, found.start, _signal(found, key), RANK_OPEN + depth + 1))
            continue
        depth = _STEP * len(around)
        around.append(found)
        span = (found.start, found.end)
        if found.form is Form.BRANCH and span not in branches:
            branches.add(span)
            made += braces(*span, depth)
        form = forms.get(found.site.number, placement.Form.BOTH)
        if found.form is Form.AROUND:
            made += _around(found, key, depth + 2, code, form)
        else:
            made += _statement(found, key, depth + 2, form)
    return made


def possible(found: FoundSite, form: placement.Form) -> placement.Form:
    """The form that a site gets where `form` was asked for: no clock is carried here, and a signal that is part of a wait's
    own call stays where it is.
    """
    if found.site.kind is Kind.SIGNAL:
        is_before = form is placement.Form.BEFORE and found.start < found.end
        return placement.Form.BEFORE if is_before else placement.Form.BOTH
    single = {placement.Form.CARRIED_EXIT: placement.Form.EXIT}
    form = single.get(form, form)
    return form if form in (placement.Form.ENTER, placement.Form.EXIT) else placement.Form.BOTH


def braces(start: int, end: int, depth: int = 0) -> list[Edit]:
    """Braces of ours around the unbraced body of an `if`, a loop or a case label."""
    return [
        Edit(start, start, f"{PREFIX}OPEN ", RANK_OPEN + depth),
        Edit(end, end, f" {PREFIX}CLOSE", RANK_CLOSE - depth),
    ]


def _statement(found: FoundSite, key: str, depth: int, form: placement.Form) -> list[Edit]:
    before, after = RANK_OPEN + depth, RANK_CLOSE - depth
    if found.site.kind is Kind.SIGNAL and form is placement.Form.BEFORE:
        return [Edit(found.start, found.start, f"{_signal(found, key).lstrip()} ", before)]
    if found.site.kind is Kind.SIGNAL:
        return [Edit(found.end, found.end, _signal(found, key), after)]
    number = f"{key},{found.site.number}"
    word = _word(found)
    enter = f"{word}ENTER{_SUFFIX[found.operand_kind]}({number}{_operands(found)}) "
    leave = f"{PREFIX}ALONE" if form is placement.Form.EXIT and not found.is_warp_wide else f"{word}EXIT"
    made = []
    if form is not placement.Form.EXIT:
        made.append(Edit(found.start, found.start, enter, before))
    if form is not placement.Form.ENTER:
        made.append(Edit(found.end, found.end, f" {leave}({number})", after))
    return made


def _signal(found: FoundSite, key: str) -> str:
    return f" {_word(found)}SIGNAL{_SUFFIX[found.operand_kind]}({key},{found.site.number}{_operands(found)})"


def _word(found: FoundSite) -> str:
    """Where whole warps execute a site, its stamps need not find out which threads are there."""
    return f"{PREFIX}WARP_" if found.is_warp_wide else PREFIX


def _around(found: FoundSite, key: str, depth: int, code: bytes, form: placement.Form) -> list[Edit]:
    if form is placement.Form.EXIT:
        return enclosed(found.start, found.end, f"{PREFIX}BEHIND({key},{found.site.number}) ", code, depth)
    is_before = form in (placement.Form.ENTER, placement.Form.BEFORE)
    word = "BEFORE" if is_before else "AFTER" if found.site.kind is Kind.SIGNAL else "AROUND"
    operands = f"{_SUFFIX[found.operand_kind]}({key},{found.site.number}{_operands(found)})"
    return enclosed(found.start, found.end, f"{PREFIX}{word}{operands} ", code, depth)


def enclosed(start: int, end: int, text: str, code: bytes, depth: int = 0) -> list[Edit]:
    """`text` before an expression and what closes its parentheses after it."""
    following = code[end : end + 1]
    space = " " if following.isalnum() or following == b"_" else ""
    return [
        Edit(start, start, text, RANK_OPEN + depth),
        Edit(end, end, f" {PREFIX}AROUND_END{space}", RANK_CLOSE - depth),
    ]


def _operands(found: FoundSite) -> str:
    return "".join(f",({one_line(text)})" for text in found.operand)


def one_line(text: str) -> str:
    """An expression without comments and on one line, so that it can stand in a macro's argument."""
    plain = views(text.encode("utf-8", "surrogateescape")).uncommented.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
    return " ".join(plain.decode("utf-8", "surrogateescape").split())


def bind(offset: int, key: str, number: int, *, is_param: bool) -> Edit:
    """The lane's guard as the first statement of a kernel; `offset` is behind the opening brace of its body."""
    return Edit(offset, offset, f" {PREFIX}BIND{'_PARAM' if is_param else ''}({key},{number})", RANK_BODY)


def parameter(offset: int, *, is_only: bool, has_default: bool) -> Edit:
    """The slot as a kernel's last parameter; `offset` is that of the parenthesis which closes the list."""
    suffix = "_ONLY" if is_only else "_DEFAULT" if has_default else ""
    return Edit(offset, offset, f"{'' if is_only else ' '}{PREFIX}PARAM{suffix}", RANK_BODY)


def argument(offset: int, key: str, number: int, stream: str, *, is_only: bool) -> Edit:
    """The slot as a launch's last argument; `offset` is that of the parenthesis which closes the arguments."""
    text = f"{PREFIX}ARG{'_ONLY' if is_only else ''}({key},{number},({one_line(stream) or 0}))"
    return Edit(offset, offset, text if is_only else f" {text}", RANK_BODY)


def prepare(hook: Hook, stream: str) -> Edit:
    """The host's part of a launch, as a statement before the one that launches."""
    word = "LAUNCHER" if hook.is_launcher else "PREPARE"
    return Edit(hook.start, hook.start, f"{PREFIX}{word}(({one_line(stream) or 0})) ", RANK_OPEN + 1)


def prepare_around(hook: Hook, stream: str, code: bytes) -> list[Edit]:
    """The host's part of a launch, inside its grid expression; that of a launcher, around its call."""
    word = "LAUNCHER" if hook.is_launcher else "PREPARE"
    return enclosed(hook.start, hook.end, f"{PREFIX}{word}_AROUND(({one_line(stream) or 0})) ", code)


def inline(offset: int, *, is_inline: bool) -> Edit:
    """Make a device function part of the kernels that call it; one that says `inline` may not say so twice."""
    return Edit(offset, offset, f"{PREFIX}{'ALWAYS_INLINE' if is_inline else 'INLINE'} ", RANK_OPEN)


def unit_header(
    signature: int,
    files: Sequence[tuple[str, int, int]],
    slots: int,
    launches: int,
    deferred: Sequence[int] = (),
    lean: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> bytes:
    """`autostamp_unit.cuh`: where the numbers of each file (key, events, kernels) begin, and the sums over all of them.

    `deferred` are the exits of waits that let the warp go on before they end; `lean` the slots of the kernels and the events of
    the enters and signals whose stamps have the lean form.
    """
    lines = [
        "// Generated by autostamp with the stamped files of this folder.",
        "#pragma once",
        f"#define {PREFIX}UNIT 0x{signature:08x}u",
        f"#define {PREFIX}UNIT_SLOTS {slots}",
        f"#define {PREFIX}UNIT_LAUNCHES {launches}",
        *([f"#define {PREFIX}UNIT_DEFERRED {', '.join(map(str, deferred))}"] if deferred else []),
    ]
    if lean[0] and lean[1]:
        lines += [
            f"#define {PREFIX}UNIT_LEAN_{what} {', '.join(map(str, numbers))}"
            for what, numbers in zip(("KERNELS", "EVENTS"), lean, strict=True)
        ]
    for key, events, kernels in files:
        lines += [f"#define {PREFIX}EVENTS_{key} {events}", f"#define {PREFIX}KERNELS_{key} {kernels}"]
    return "\n".join([*lines, ""]).encode()
