# SPDX-License-Identifier: Apache-2.0
"""What an IKET range or marker is, from the name that its author gave it (docs/formats/iket.md holds this table)."""

from __future__ import annotations

import re
from typing import Final

from autostamp.model.sync import Side

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

WAITS: Final[tuple[tuple[frozenset[str], Side], ...]] = tuple(
    (frozenset(words.split()), side)
    for words, side in (
        ("wait group", Side.ASYNC_GROUP),
        ("wait wgmma", Side.ASYNC_GROUP),
        ("wait warpgroup", Side.ASYNC_GROUP),
        ("wait bulk", Side.ASYNC_GROUP),
        ("wait store", Side.ASYNC_GROUP),
        ("acquire", Side.EMPTY),
        ("producer tail", Side.EMPTY),
        ("producer wait", Side.EMPTY),
        ("consumer wait", Side.FULL),
        ("wait full", Side.FULL),
        ("wait empty", Side.EMPTY),
        ("wait cluster", Side.CLUSTER),
        ("wait barrier", Side.NAMED),
        ("wait", Side.NONE),
        ("stall", Side.NONE),
        ("syncthreads", Side.CTA),
        ("sync cluster", Side.CLUSTER),
        ("sync", Side.NAMED),
        ("barrier", Side.NAMED),
    )
)
"""Words that a range's name must all hold to be a wait, and the side that it waits on; the first row that fits counts."""

NOT_WAITS: Final = frozenset({"init", "arrive", "setup", "issue"})
"""Words that keep a name without `wait` or `acquire` from being a wait: `barrier_init`, `barrier_arrive`."""

SIGNALS: Final[tuple[tuple[frozenset[str], Side], ...]] = tuple(
    (frozenset(words.split()), side)
    for words, side in (
        ("commit", Side.FULL),
        ("release", Side.EMPTY),
        ("full", Side.FULL),
        ("empty", Side.EMPTY),
        ("cluster", Side.CLUSTER),
        ("barrier", Side.NAMED),
        ("sync", Side.NAMED),
    )
)
"""The same for markers, which are all signals: the side that they arrive on."""


def words_of(name: str) -> frozenset[str]:
    """The words of a name in lower case: `consumer_wait`, `consumerWait` and `Consumer-Wait` are the same two."""
    return frozenset(word.lower() for word in _WORDS.findall(name))


def wait_side(name: str) -> Side | None:
    """The side that a range of this name waits on, NONE where the name does not say; None: it is work."""
    words = words_of(split_barrier(name)[1])
    if words & NOT_WAITS and not words & {"wait", "acquire"}:
        return None
    return next((side for row, side in WAITS if row <= words), None)


def signal_side(name: str) -> Side:
    """The side that a marker of this name arrives on, NONE where the name does not say."""
    words = words_of(split_barrier(name)[1])
    return next((side for row, side in SIGNALS if row <= words), Side.NONE)


def split_barrier(name: str) -> tuple[str, str]:
    """Barrier and operation: of `K.consumer_wait` it is K, of a name without a dot there is none."""
    barrier, dot, operation = name.partition(".")
    return (barrier, operation) if dot and barrier and operation else ("", name)
