# SPDX-License-Identifier: Apache-2.0
"""Kernel names: what a kernel says of itself (`__PRETTY_FUNCTION__`), in the form in which a person would write it."""

from __future__ import annotations

_OPENING, _CLOSING = "<([{", ">)]}"


def kernel_name(signature: str) -> str:
    """`ns::k<float, 4>` of `void ns::k(T *, int) [with T = float; int N = 4]`; "" of an empty text, or of one that ends early.

    Template arguments stand in the order in which the compiler lists them; NVRTC separates them by commas.
    """
    head, _, rest = signature.partition(" [with ")
    if head.count("(") != head.count(")"):
        return ""
    named = _name(head)
    values = _values(rest.removesuffix("]")) if rest else []
    return f"{named}<{', '.join(values)}>" if values else named


def _name(head: str) -> str:
    """What stands between the return type and the parameter list."""
    end = len(head)
    if head.endswith(")"):
        depth = 0
        for end in range(len(head) - 1, -1, -1):
            depth += (head[end] == ")") - (head[end] == "(")
            if depth == 0:
                break
    depth = 0
    for start in range(end - 1, -1, -1):
        depth += (head[start] in _CLOSING) - (head[start] in _OPENING)
        if head[start] == " " and depth == 0:
            return head[start + 1 : end]
    return head[:end]


def _values(text: str) -> list[str]:
    """The right sides of `T = float; int N = 4`, of a type with commas too."""
    values: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING and text[at - 1 : at] != "-")
        ends = (letter == ";" or (letter == "," and ";" not in text)) and depth == 0
        if ends:
            values.append(text[start:at])
            start = at + 1
    values.append(text[start:])
    return [value.partition(" = ")[2] for value in values if " = " in value]


def shortened(name: str, length: int = 80) -> str:
    """A name for a sentence: template arguments of a long one are left out."""
    head, bracket, _ = name.partition("<")
    return name if len(name) <= length or not bracket else f"{head}<...>"
