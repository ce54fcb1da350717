# SPDX-License-Identifier: Apache-2.0
"""Operand expressions as text: casts taken off, locals and parameters put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_CAST = re.compile(r"(?:static_cast|reinterpret_cast|const_cast|bit_cast)\s*<")
_C_CAST = re.compile(
    r"\(\s*(?:const\s+|unsigned\s+|volatile\s+)*[A-Za-z_][\w:]*(?:\s*<[^()]*>)?(?:\s+const)?\s*[*&]*\s*\)\s*(?=[\w(&*])"
)
# Functions of one argument that turn a pointer into a shared address or a handle, and change nothing else.
_CONVERSION = re.compile(
    r"(?:[A-Za-z_]\w*\s*::\s*)*"
    r"(?:\w*(?:cvta|cast_smem|smem_ptr|smem_addr|shared_addr|shared_ptr|to_shared|smem_u32|_to_uint|smem_to|addr_of|addressof|get_smem|native_handle|raw_pointer_cast)\w*"
    r"|u?int(?:32|64|ptr)_t|unsigned|uint|to_address|smem_int_ptr|to_u32|s2u|toShared\w*)\s*\("
)
# An address with the bit taken out that tells the CTAs of a pair apart (Sm100MmaPeerBitMask of cute/arch/copy_sm100_tma.hpp).
_MASKED = re.compile(r"([^&|]+?)\s*&\s*(?:0x[\da-fA-F]+u?|(?:\w+::)*\w*[mM](?:ask|ASK)\w*)")
_CONVERTS = re.compile(
    r"cvta|cast_smem|smem_ptr|smem_addr|shared_addr|shared_ptr|to_shared|toShared|smem_u32|native_handle"
)
_WIDE = re.compile(
    r"(?:const\s+)?(?:std::)?(?:u?int64_t|uintptr_t|size_t|unsigned long(?: long)?|CUdeviceptr)(?:\s+const)?"
)
_IDENTIFIER = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_MEMBER_TAIL = re.compile(r"(?:\s*(?:\.|->)\s*[A-Za-z_]\w*)+\s*\Z")
_PURE_WORDS = frozenset({"this", "sizeof", "true", "false", "uint32_t", "int", "uint64_t", "unsigned"})
_PLACE = re.compile("\x01(\\w+)\x01")
MAX_LENGTH = 400
THIS = "\x01this\x01"


def place(number: int) -> str:
    """The mark that stands for argument `number` in a wrapper's operand."""
    return f"\x01{number}\x01"


def matching(text: str, opening: int) -> int:
    """The offset of the bracket that closes the one at `opening` (of any of the three kinds or `<`), or -1."""
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    close = pairs[text[opening]]
    depth = 0
    for position in range(opening, len(text)):
        if text[position] == text[opening]:
            depth += 1
        elif text[position] == close:
            depth -= 1
            if depth == 0:
                return position
    return -1


def without_casts(text: str) -> str:
    """An expression with what only changes its type taken off: casts, conversions to shared addresses, parentheses."""
    text = text.strip()
    while True:
        before = text
        if text.startswith("(") and matching(text, 0) == len(text) - 1:
            text = text[1:-1].strip()
            continue
        if (cast := _CAST.match(text)) is not None:
            end = matching(text, cast.end() - 1)
            rest = text[end + 1 :].strip() if end > 0 else ""
            if rest.startswith("(") and matching(rest, 0) == len(rest) - 1:
                text = rest[1:-1].strip()
                continue
        if (call := _CONVERSION.match(text)) is not None and matching(text, call.end() - 1) == len(text) - 1:
            inner = text[call.end() : -1].strip()
            if inner and not has_comma(inner):
                text = inner
                continue
        if (cast := _C_CAST.match(text)) is not None and cast.end() < len(text):
            text = text[cast.end() :].strip()
            continue
        if (masked := _MASKED.fullmatch(text)) is not None:
            text = masked[1].strip()
        if text == before:
            return text


def shared_address(text: str) -> str:
    """The pointer in a conversion to a shared address, any casts around; the text itself when there is no conversion."""
    return without_casts(text) if _CONVERTS.search(text) else text


def is_wide_number(type_text: str) -> bool:
    """True for a 64-bit integer held by value: an address in it is no barrier object, though it has a barrier's size."""
    return _WIDE.fullmatch(type_text) is not None


def has_comma(text: str) -> bool:
    """True when a comma stands outside all brackets."""
    depth = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            return True
    return False


def template(
    text: str, parameters: Sequence[str], local: Mapping[str, str], is_own: Callable[[str], bool], depth: int = 6
) -> str:
    """An operand inside a function as a template over its arguments: marks for parameters and the object, '' if it can't be.

    `local` are the initialisers of variables that are set once; `is_own` tells whether a member is all that its class holds,
    so that the object's address is the member's.
    """
    text = without_casts(text)
    if depth == 0 or not text or len(text) > MAX_LENGTH:
        return ""
    core = text.lstrip("&*").strip() if text[:1] in "&*" else text
    core = without_casts(core)
    if core == "this":
        return THIS
    if core in parameters:
        return place(parameters.index(core))
    if core in local:
        return template(local[core], parameters, local, is_own, depth - 1)
    name = core.removeprefix("this->").strip()
    if name.isidentifier() and is_own(name):
        return THIS
    tail = _MEMBER_TAIL.search(core)
    if tail is not None and (head := core[: tail.start()].strip()) in parameters and text[:1] == "&":
        # `&bar.value`: the one word of a barrier class that is passed by reference.
        return place(parameters.index(head)) if _is_single(core[tail.start() :]) else ""
    return _substituted(text, parameters, local, depth)


def _is_single(tail: str) -> bool:
    return len(re.findall(r"\w+", tail)) == 1


def _substituted(text: str, parameters: Sequence[str], local: Mapping[str, str], depth: int) -> str:
    """The text with every name replaced, when all of its names are parameters, numbers or such locals."""
    unknown = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal unknown
        word = match[0]
        if word in parameters:
            return f"({place(parameters.index(word))})"
        if word in local and depth > 1:
            inner = _substituted(without_casts(local[word]), parameters, local, depth - 1)
            if inner:
                return f"({inner})"
        if word in _PURE_WORDS and word != "this":
            return word
        unknown = True
        return word

    result = _IDENTIFIER.sub(replaced, text)
    # What is called is no variable, so a call leaves a name that nothing replaces, unless a parameter is called.
    return "" if unknown or _has_call(text) else result


def _has_call(text: str) -> bool:
    return re.search(r"[A-Za-z_]\w*\s*(?:<[^<>]*>)?\s*\(", text) is not None


def filled(pattern: str, arguments: Sequence[str], receiver: str) -> str:
    """A template with the texts of one call put in; '' when the call lacks one of them."""
    missing = False

    def text(match: re.Match[str]) -> str:
        nonlocal missing
        if match[1] == "this":
            value = receiver
        else:
            number = int(match[1])
            value = arguments[number] if number < len(arguments) else ""
        missing = missing or not value
        return value

    if (whole := _PLACE.fullmatch(pattern)) is not None:
        return text(whole)
    result = _PLACE.sub(text, pattern)
    return "" if missing else result


def template_arguments(text: str) -> tuple[str, ...]:
    """The arguments of an explicit template argument list, `<2, A<B>>`; empty for none."""
    inner = text.strip().removeprefix("<").removesuffix(">")
    parts, depth, first = [], 0, 0
    for position, character in enumerate(inner):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(inner[first:position].strip())
            first = position + 1
    last = inner[first:].strip()
    return (*parts, last) if last else tuple(parts)
