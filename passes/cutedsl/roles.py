# SPDX-License-Identifier: Apache-2.0
"""Names of roles, read from how a branch on the warp index is written.

In order: the attribute or variable compared with (`self.load_warp_id` gives `load`), else the helper that the branch calls
(`self.mma(...)` gives `mma`), else a comment on the branch's line, else the side of the pipelines that its own text is on. A
branch without any of these has no name; the report then says `warps a-b` from the data.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_WARPISH = re.compile(r"warp|(?:^|_)wg(?:_|\d|$)", re.IGNORECASE)
_FILLER = {
    "warp",
    "warps",
    "id",
    "ids",
    "idx",
    "index",
    "group",
    "groups",
    "wg",
    "is",
    "num",
    "warpgroup",
    "warpgroups",
    "in",
}
_FILLER |= {
    "canonical",
    "arch",
    "uniform",
    "make",
    "threads",
    "per",
    "role",
    "self",
    "all",
    "n",
    "local",
    "cta",
    "leader",
    "elect",
    "one",
}
_COMMENT = re.compile(r"#\s*([A-Za-z][\w ]{1,23})\s*$")
_DIRECTIVES = {"fixme", "nosec", "noqa", "pragma", "todo"}
_CONSUMES = re.compile(r"\.(?:consumer_wait|wait_and_advance)\w*\(")
_PRODUCES = re.compile(r"\.(?:producer_acquire|acquire_and_advance)\w*\(")
_COMPILE_TIME = re.compile(r"\b(?:const_expr|range_constexpr)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_NOT_ROLES = ("const_expr(", "range_constexpr(")
_HELPER = re.compile(r"(?:self\.)?([A-Za-z_]\w*)\Z")


def is_role_test(test: str) -> bool:
    """True when a condition's text asks which warp (or warpgroup) is running, at run time."""
    asked = _COMPILE_TIME.sub("", test)
    return not any(mark in asked for mark in _NOT_ROLES) and any(_WARPISH.search(name) for name in _NAME.findall(asked))


def is_compile_time(test: str) -> bool:
    """True when the condition is decided while tracing, so that its branch belongs to the code around it."""
    return _NOT_ROLES[0] in test and not is_role_test(test)


def from_test(test: str) -> str:
    """Role named by the names in the condition, or ''. A negated condition names the warps that are not in the branch."""
    asked = _COMPILE_TIME.sub("", test)
    if re.search(r"\bnot\b|!=", asked):
        return ""
    for name in _NAME.findall(asked):
        last = name.rsplit(".", 1)[-1]
        if not _WARPISH.search(last):
            continue
        words = [
            word for word in last.lower().strip("_").split("_") if word and word not in _FILLER and not word.isdigit()
        ]
        if words:
            return "_".join(words)
    return ""


def from_helpers(calls: list[str], known: set[str]) -> str:
    """Role named by the last helper that the branch calls as a statement: a method of self or a function in `known`."""
    for call in reversed(calls):
        match = _HELPER.match(call)
        if match and match[1] in known:
            return match[1].strip("_")
    return ""


def from_comment(line: str) -> str:
    """Role named by a short comment at the end of the branch's line, or ''."""
    match = _COMMENT.search(line)
    words = match[1].lower().split() if match else []
    return "" if set(words) & _DIRECTIVES else "_".join(words)


def from_pipelines(text: str) -> str:
    """`consumer` or `producer`, by the pipeline methods that the branch's own text calls, or ''.

    A consumer often produces too (its epilogue's stores), a producer of the main loop consumes nothing.
    """
    if _CONSUMES.search(text):
        return "consumer"
    return "producer" if _PRODUCES.search(text) else ""
