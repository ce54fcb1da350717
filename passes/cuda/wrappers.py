# SPDX-License-Identifier: Apache-2.0
"""Which functions of a project do nothing but one sync op, found from their bodies and closed over the calls between them."""

from __future__ import annotations

import re
from collections.abc import Callable

from autostamp.passes.cuda.functions import Asm, Call, Function, Index, Type
from autostamp.passes.cuda.recognised import Recognised
from autostamp.passes.cuda.wrapper_bodies import MAX_LINES, Body, Wrapper, in_spin, is_light_asm

_LIGHT_LINES = 15
# More definitions of one name than this say nothing about it.
_FEW = 8
_TRIES = 4
# Calls of functions that the project does not define: what they are named after has no effect on another warp.
_LIGHT_NAMES = re.compile(
    r"\w*(?:cast_smem|smem_ptr|smem_addr|smem_pointer|to_shared|cvta|mapa|lane_id|elect|canonical_warp|warp_id|thread_id"
    r"|block_rank|block_id|native_handle|printf|assert|nanosleep|clock|globaltimer|trap|invalid_control|unreachable)\w*"
    r"|(?:get|is|to|make)_\w+|min|max|move|forward|size|count|index|phase|data|get|value|stage|declval|raw"
    r"|[A-Z\d_]*(?:ERROR|ASSERT|CHECK|FAIL|ABORT|INVALID|UNREACHABLE|NOT_IMPLEMENTED|NOT_SUPPORTED)[A-Z\d_]*"
    r"|u?int(?:\d+_t|ptr_t)?|bool|unsigned|__cvta\w*|constexpr|rank"
)
# However long they are: cute/arch/util.hpp converts a pointer in as many ways as there have been compilers.
_CONVERSIONS = re.compile(r"\w*(?:cast_smem|smem_ptr|smem_addr|smem_pointer|to_shared|cvta)\w*")
_LOOP_WORD = re.compile(rb"\b(?:for|while|do|goto)\b")


class Wrappers:
    """Inference with a memory. `recognise` tells what a call or an asm inside a function is.

    `cuts` counts how often a function was met that was being looked at: answers in between may not be final.
    """

    def __init__(self, index: Index, recognise: Callable[[Call | Asm, Function], Recognised | None]) -> None:
        self._index = index
        self._recognise = recognise
        self._known: dict[int, Wrapper | None] = {}
        self._active: set[int] = set()
        self._tries: dict[int, int] = {}
        self.cuts = 0
        self._light: dict[int, bool] = {}
        self._spinners: dict[int, bool] = {}

    def of(self, function: Function) -> Wrapper | None:
        """The wrapper that a function is, or None. A function that is being looked at, hence recursive, is none."""
        key = id(function)
        if key in self._known:
            return self._known[key]
        if function.is_kernel or function.lines > MAX_LINES or not (function.calls or function.asms):
            self._known[key] = None
            return None
        if key in self._active:
            self.cuts += 1
            return None
        before = self.cuts
        self._active.add(key)
        found = Body(function, self).wrapper()
        self._active.remove(key)
        self._tries[key] = self._tries.get(key, 0) + 1
        # What was found while a caller was still being looked at may be found wanting only because of that.
        if found is not None or self.cuts == before or not self._active or self._tries[key] > _TRIES:
            self._known[key] = found
        return found

    def recognise(self, item: Call | Asm, function: Function) -> Recognised | None:
        """What a call or asm in `function` is."""
        return self._recognise(item, function)

    def types(self, name: str) -> tuple[Type, ...]:
        """The classes of that name."""
        return self._index.types.get(name, ())

    def functions(self, name: str) -> tuple[Function, ...]:
        """The functions of that name."""
        return self._index.by_name.get(name, ())

    def is_light(self, function: Function) -> bool:
        """True for a short function without loops and syncs that calls only such functions: an address, a test, a pause."""
        key = id(function)
        if key not in self._light:
            self._light[key] = False
            self._light[key] = self._is_light(function)
        return self._light[key]

    def _is_light(self, function: Function) -> bool:
        if function.lines > _LIGHT_LINES or _LOOP_WORD.search(function.source.code, *function.body):
            return False
        return all(is_light_asm(asm) for asm in function.asms) and all(map(self.is_light_call, function.calls))

    def is_spinner(self, function: Function) -> bool:
        """True for a function that calls one of its parameters until it returns true, and does nothing else."""
        key = id(function)
        if key not in self._spinners:
            self._spinners[key] = self._is_spinner(function)
        return self._spinners[key]

    def _is_spinner(self, function: Function) -> bool:
        names = {parameter.name for parameter in function.parameters if parameter.name}
        repeated = [call for call in function.calls if call.name in names and not call.receiver]
        rest = [call for call in function.calls if call.name not in names]
        return (
            bool(repeated)
            and all(in_spin(call.node) for call in repeated)
            and all(map(self.is_light_call, rest))
            and all(map(is_light_asm, function.asms))
        )

    def is_light_call(self, call: Call) -> bool:
        """True for a call that can stand beside a sync op in a wrapper."""
        if call.name.startswith("synclog_") or (call.template and call.name.endswith("_cast")):
            return True
        if _CONVERSIONS.fullmatch(call.name):
            return True
        known = [each for each in self._index.by_name.get(call.name, ()) if each.accepts(len(call.arguments))]
        if known and len(known) <= _FEW:
            return all(self.is_light(each) for each in known)
        return _LIGHT_NAMES.fullmatch(call.name) is not None
