# SPDX-License-Identifier: Apache-2.0
"""What a condition says about who runs: the name of a role, the number of a warp, or nothing.

Conditions are those of public kernels: enumerators (`WarpCategory::MMA == warp_category`), flags (`is_producer`), warp numbers
(`warp_idx == 0 and cute::elect_one_sync()`), single threads.
"""

from __future__ import annotations

import re
from enum import IntEnum

# Words of programs for the roles that have a name of ours. `tma` alone names a loader; beside another word it names nothing.
ROLE_WORDS = {
    **dict.fromkeys(
        ("load", "loader", "loads", "loading", "producer", "dma", "fetch", "prefetch", "prefetcher"), "load"
    ),
    **dict.fromkeys(("mma", "umma", "wgmma", "consumer", "math", "compute", "gemm", "matmul"), "mma"),
    **dict.fromkeys(("softmax",), "softmax"),
    **dict.fromkeys(("correction",), "correction"),
    **dict.fromkeys(("epilogue", "epi"), "epilogue"),
    **dict.fromkeys(("store", "storer", "writer"), "store"),
    **dict.fromkeys(("scheduler", "sched", "schedule", "clc"), "scheduler"),
    **dict.fromkeys(("transform", "transformation", "dequant", "dequantize", "convert"), "transform"),
    **dict.fromkeys(("reduce", "reducer", "reduction"), "reduce"),
    **dict.fromkeys(("dispatch", "dispatcher"), "dispatch"),
    **dict.fromkeys(("combine", "combiner"), "combine"),
    **dict.fromkeys(("sender", "receiver", "forwarder", "coordinator"), None),
}
_FILLER = frozenset(
    (
        *("warp", "warps", "id", "ids", "idx", "index", "group", "groups", "wg", "wgs", "is", "num", "warpgroup", "in"),
        *(
            "warpgroups",
            "canonical",
            "uniform",
            "thread",
            "threads",
            "role",
            "category",
            "kind",
            "type",
            "self",
            "this",
        ),
        *("local", "cta", "leader", "elect", "one", "k", "the", "my", "only", "issue", "issuer", "lane", "wid", "pred"),
        *("predicate", "sync", "block", "cur", "current", "work", "worker", "main", "mainloop", "spec", "start", "end"),
    )
)
_EVERY_NAME = re.compile(r"[A-Za-z_]\w*(?:\s*(?:::|\.|->)\s*[A-Za-z_]\w*)*")
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ROLE_TYPE = re.compile(r"(?i)(?:role|category)\w*\s*::\s*\w+$")
_QUANTITY = re.compile(
    r"^(?:k?Num|num|NUM|n|N|k?Max|max|MAX|k?Min|min|MIN|total|count)(?=_|[A-Z]|$)"
    r"|(?i:(?:count|threads|size|_num|regs|registers|stages|tiles?)$)"
)
_ASKS = re.compile(
    r"(?i)warp|(?<![a-z])wg(?:_|i|\d|\b)|role|category|threadidx|(?<![a-z])tid(?:x\b|\b|_)|thread_?(?:id|idx|rank)|producer|consumer"
    r"|lane|elect|participant|groupid|(?<![a-z])wid\b|is_\w*(?:load|mma|math|tma|epi|softmax|sched|store)|Is\w*(?:Load|Mma|Tma)"
)
_NO_ROLE = re.compile(r"[\w:.]*(?i:valid|needed|_cta\b)\w*(?:\([^()]*\))?")
# Tests that pick a thread or a warp inside of a role: they say who acts, not what for.
_WITHIN = re.compile(r"(?i)lane|elect|in_?(?:warp|epi|wg|group|cta)|in_?warp_?group|\w+::(?:warpid|laneid)\b|% ?\d")
_UNIT = (
    (
        "warpgroup",
        re.compile(r"(?i)^(?:\w*::)*(?:\w*(?:warp_?group|wg)\w*|groupid)(?:\(.*\))?$|threadIdx\.x ?(?:/ ?128|>> ?7)"),
    ),
    (
        "warp",
        re.compile(
            r"(?i)^(?:\w*::)*(?:\w*warp\w*|wid)(?:\(.*\))?$|(?:threadIdx\.x|tid|tidx) ?(?:/ ?(?:32|WARP_SIZE|warpSize)|>> ?5)"
        ),
    ),
    ("thread", re.compile(r"(?i)^(?:threadIdx\.x|tid|tidx|thread_?(?:id|idx|rank)|thread_rank\(\))$")),
)
_EQUAL = re.compile(r"^(?P<left>(?:[^=!<>]|<<|>>)+?) ?(?P<operator>==|!=) ?(?P<right>(?:[^=!<>]|<<|>>)+)$")
_CONSTANT = re.compile(r"k[A-Z]|[A-Z][A-Z0-9_]+\b|\d")


class Rank(IntEnum):
    """How a role was named, the best first."""

    NAMED = 0
    COMMENT = 1
    ISSUES = 2
    FUNCTION = 3
    REGISTERS = 4
    NUMBER = 5
    THREAD = 6
    NONE = 7


def is_role_test(text: str) -> bool:
    """True when a condition asks which warp, warpgroup or thread is running."""
    return _ASKS.search(_NO_ROLE.sub("", text)) is not None


def from_test(text: str) -> tuple[Rank, str]:
    """The role that a condition names, and how."""
    text = _NO_ROLE.sub("…", text)
    text = " ".join(re.sub(r"\band\b", "&&", re.sub(r"\bor\b", "||", re.sub(r"\bnot\b ?", "!", text))).split())
    alternatives = [part.strip() for part in _parts(text, "||")]
    if len(alternatives) > 1:
        found = {from_test(part) for part in alternatives}
        return found.pop() if len(found) == 1 else (Rank.NONE, "")
    conjuncts = [_unwrapped(part) for part in _parts(text, "&&")]
    if len(conjuncts) > 1:
        return min((from_test(part) for part in conjuncts), key=lambda found: found[0])
    return _of_single(_unwrapped(text))


def is_partition(text: str) -> bool:
    """True when a condition splits the CTA's warps, not the threads inside of a role."""
    parts = [part for part in re.split(r"&&|\|\||\band\b|\bor\b", text) if is_role_test(part)]
    return any(not _WITHIN.search(part) and not _is_one_thread(part) for part in parts)


def _is_one_thread(text: str) -> bool:
    match = _EQUAL.match(_unwrapped(text.strip()))
    return match is not None and bool(_UNIT[2][1].match(match["left"]) or _UNIT[2][1].match(match["right"]))


def _of_single(text: str) -> tuple[Rank, str]:
    equal = _EQUAL.match(text)
    is_negated = (equal is not None and equal["operator"] == "!=") or text.startswith("!")
    names = [re.sub(r"\s", "", name) for name in _EVERY_NAME.findall(text)]
    enumerators = [name for name in names if _ROLE_TYPE.search(name)]
    for name in enumerators or names:
        role = _from_name(name, text)
        if role:
            named = _opposite(name, role) if is_negated else role
            return (Rank.NAMED, named) if named else (Rank.NONE, "")
    if equal is None or is_negated or enumerators:
        return Rank.NONE, ""
    return _numbered(_unwrapped(equal["left"]), _unwrapped(equal["right"]))


def _opposite(name: str, role: str) -> str:
    """What runs when it is not this role: known for a producer and a consumer, which share a kernel between them."""
    words = words_of(name)
    if "producer" in words and role == "load":
        return "mma"
    return "load" if "consumer" in words and role == "mma" else ""


def _from_name(name: str, text: str) -> str:
    last = re.split(r"::|\.|->", name)[-1]
    if _ROLE_TYPE.search(name):
        return _from_enumerator(name)
    if _QUANTITY.search(last) or not _says_role(name, text):
        return ""
    words = [word for word in words_of(last) if word not in _FILLER and not word.isdigit()]
    roles = list(dict.fromkeys(ROLE_WORDS.get(word, word) or word for word in words if word != "tma"))
    if not roles:
        return "load" if "tma" in words else ""
    is_known = any(word in ROLE_WORDS for word in words) and all(
        word in ROLE_WORDS or word == "tma" or len(word) < 3 for word in words
    )
    return "_".join(roles) if is_known else ""


def _says_role(name: str, text: str) -> bool:
    """True for a flag, for a name that counts warps or threads, and for what such a name is compared with."""
    if re.sub(r"\(.*\)$|^!", "", text.replace(" ", "")) == name:
        return is_role_test(name)
    equal = _EQUAL.match(text)
    if equal is not None and is_role_test(text):
        return _unwrapped(equal["left"]).startswith(name) or _unwrapped(equal["right"]).startswith(name)
    return is_role_test(name) and not _CONSTANT.match(name)


def _from_enumerator(name: str) -> str:
    scope, last = name.replace(" ", "").rsplit("::", 1)
    words = [word for word in words_of(last) if not word.isdigit() and word not in ("k", "warp", "warps", "warpgroup")]
    if "producer" in words_of(scope) and words[:1] in (["mainloop"], ["epilogue"]):
        words.append("load")
    kept = [word for word in words if word not in _FILLER] or words
    if len(kept) > 1 and "tma" in kept:
        kept.remove("tma")
    roles = list(dict.fromkeys((ROLE_WORDS.get(word, word) or word) if word != "tma" else "load" for word in kept))
    return "_".join(roles)


def _numbered(left: str, right: str) -> tuple[Rank, str]:
    for subject, value in ((left, right), (right, left)):
        if _WITHIN.search(subject) or _CONSTANT.match(subject) or not re.fullmatch(r"[\w:+\-*/ ().]+", value):
            continue
        for unit, pattern in _UNIT:
            if pattern.search(subject):
                return (Rank.THREAD if unit == "thread" else Rank.NUMBER), f"{unit} {value}"
    return Rank.NONE, ""


def words_of(text: str) -> list[str]:
    """The words of a name in either manner, in lower case; plurals of role words without their s."""
    words = [word.lower() for word in _SPLIT.findall(text)]
    if "mainloop" in words and "epilogue" in words:
        # Who works for both is no epilogue: the one producer warp of CUTLASS's sm90_gemm_tma_warpspecialized.hpp loads for both.
        words.remove("epilogue")
    return [word[:-1] if word.endswith("s") and word[:-1] in ROLE_WORDS else word for word in words]


def _parts(text: str, separator: str) -> list[str]:
    """The operands of a logical operator that stands in no bracket."""
    parts, depth, first = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and text.startswith(separator, at):
            parts.append(text[first:at].strip())
            first = at + len(separator)
    return [*parts, text[first:].strip()]


def _unwrapped(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for at, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if depth == 0 and at < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text
