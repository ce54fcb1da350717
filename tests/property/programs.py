# SPDX-License-Identifier: Apache-2.0
"""Random kernels as text, composed of the statements that real ones hold."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

SYNC = (
    "pipe.consumer_wait(state)",
    "pipe.consumer_release(state)",
    "pipe.producer_acquire(state, pipe.producer_try_acquire(state))",
    "handle = consumer.wait_and_advance()",
    "handle: int = producer.acquire_and_advance()",
    "producer.acquire_and_advance().commit()",
    "use(consumer.wait_and_advance(), producer.acquire())",
    "use(consumer.wait_and_advance().release())",
    "pipe.consumer_wait(use(consumer.wait_and_advance()))",
    "cute.arch.sync_threads()",
    "cute.arch.mbarrier_wait(bar + i, state.phase)",
    "cute.arch.mbarrier_arrive(bar)",
    "cute.arch.barrier(barrier_id=int(i) + 1, number_of_threads=64)",
    "pipe.consumer_wait_w_index_phase(state.index, state.phase)",
    "pipes[0].consumer_wait(state)",
    "pipes[i].consumer_wait(state)",
    "use(i).arrive_and_wait()",
    "(pipe or consumer).producer_tail(state)",
    "x = [each.wait() for each in pipes]",
    "x = consumer.wait() if flag else producer.acquire()",
    "x = consumer.wait() and not producer.acquire()",
    "x = {1: pipe.consumer_try_wait(state)}[1]",
    "x, y = consumer.wait(), producer.acquire()",
    "run = lambda s: pipe.consumer_wait(s)",
    "x = (lambda: consumer.wait())()",
    "x += consumer.wait()",
    "assert consumer.wait() is not None",
    "del handles[consumer.wait()]",
    "pipe.consumer_wait(\n  state,  # the stage\n)",
    "x = (\n\n    consumer.wait()\n  )",
    "hook = cute.arch.cluster_wait",
)
PLAIN = ("x = 1", "pass", "use(i)", "...", "'pipe.consumer_wait(state)'", "x = '''\n  pipe.wait()\n'''", "y = i; x = y")
TESTS = (
    "flag",
    "warp_idx == self.load_warp_id",
    "warp_idx < self.num_mma_warps and flag",
    "is_tma_warp",
    "warp_idx == 0",
    "not is_dma_warp",
    "cutlass.const_expr(self.has_bias)",
    "consumer.wait()",
    "pipe.consumer_try_wait(state)",
)
POLLS = (
    "not cute.arch.mbarrier_try_wait(bar, state.phase)",
    "not pipe.consumer_try_wait(state)",
    "pipes[0].try_wait() == 0",
)
HEADERS = (
    "def {name}(i):",
    "def {name}(\n    i,  # the only one\n):",
    "def {name}(i, j=lambda x: x):",
    "def {name}(i, *args, k=(1), **kwargs):",
    "def {name}(i, /) -> None:",
    "def {name}(i, *, k: int = 1,):",
)
DECORATORS = ("", "@cute.kernel", "@cute.kernel()", "@cute.jit")
COMMENT = "# größer → 🚀"

Lines = list[tuple[int, str]]


@dataclass(frozen=True)
class Program:
    """The text, its functions that are kernels, and the function that launches them."""

    text: bytes
    kernels: tuple[str, ...]
    functions: tuple[str, ...]


@st.composite
def _simple(draw: st.DrawFn, leaves: tuple[str, ...]) -> str:
    parts = draw(st.lists(st.sampled_from(SYNC + PLAIN), min_size=1, max_size=3))
    if draw(st.integers(0, 7)) == 0 and leaves:
        parts = [*parts[1:], draw(st.sampled_from(leaves))]
    line = "; ".join(parts)
    return line + draw(st.sampled_from(("", "", ";", "  # pipe.wait()", " ;  # done")))


@st.composite
def _gap(draw: st.DrawFn, depth: int) -> Lines:
    return draw(st.lists(st.sampled_from(((0, ""), (depth, COMMENT), (0, COMMENT), (depth + 1, COMMENT))), max_size=2))


@st.composite
def _body(draw: st.DrawFn, depth: int, leaves: tuple[str, ...], level: int) -> Lines:
    """Statements of one block, each with blank lines and comments before it."""
    lines: Lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(_gap(depth))
        is_compound = level > 0 and draw(st.booleans())
        lines += draw(_compound(depth, leaves, level)) if is_compound else [(depth, draw(_simple(leaves)))]
    return lines


@st.composite
def _suite(draw: st.DrawFn, depth: int, head: str, leaves: tuple[str, ...], level: int) -> Lines:
    """A header with a body, on one line or below it."""
    if draw(st.integers(0, 3)) == 0:
        return [(depth, f"{head} {draw(_simple(leaves))}")]
    return [
        (depth, head + draw(st.sampled_from(("", "  # load", "# noqa")))),
        *draw(_body(depth + 1, leaves, level - 1)),
    ]


@st.composite
def _compound(draw: st.DrawFn, depth: int, leaves: tuple[str, ...], level: int) -> Lines:
    kind = draw(st.sampled_from(("if", "if", "poll", "poll", "for", "while", "with", "try", "def")))
    if kind == "if":
        lines = draw(_suite(depth, f"if {draw(st.sampled_from(TESTS))}:", leaves, level))
        if draw(st.booleans()):
            lines += draw(_suite(depth, f"elif {draw(st.sampled_from(TESTS))}:", leaves, level))
        return lines + (draw(_suite(depth, "else:", leaves, level)) if draw(st.booleans()) else [])
    if kind == "poll":
        head = f"while {draw(st.sampled_from(POLLS))}:"
        return draw(st.sampled_from(([(depth, f"{head} pass")], [(depth, head), (depth + 1, "pass")])))
    if kind in ("for", "while"):
        loop_leaves = (*(leaf for leaf in leaves if leaf.startswith("return")), "break", "continue")
        head = "for k in pipes:" if kind == "for" else f"while {draw(st.sampled_from(TESTS))}:"
        return draw(_suite(depth, head, loop_leaves, level))
    if kind == "with":
        return draw(_suite(depth, "with cute.arch.elect_one():", leaves, level))
    if kind == "try":
        return draw(_suite(depth, "try:", leaves, level)) + draw(_suite(depth, "finally:", (), level))
    inner = draw(_body(depth + 1, ("return", "return consumer.wait()"), level - 1))
    return [(depth, "def inner(a, b=1):"), *inner, (depth, "inner(i)")]


@st.composite
def _function(draw: st.DrawFn, name: str) -> tuple[Lines, bool]:
    decorator = draw(st.sampled_from(DECORATORS))
    lines: Lines = [(0, decorator)] if decorator else []
    lines.append((0, draw(st.sampled_from(HEADERS)).format(name=name)))
    if draw(st.booleans()):
        lines.append((1, draw(st.sampled_from(('"""Doc."""', '"""Doc.\n\n    More."""', "'Doc.'; x = 2")))))
    lines += draw(_body(1, ("return", "return consumer.wait()", "return"), 3))
    return lines, decorator.startswith("@cute.kernel")


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A module of one to three functions and a host that launches those that are kernels."""
    lines: Lines = [(0, text) for text in draw(st.sampled_from(((), ('"""Module."""',), (COMMENT,), (COMMENT, ""))))]
    if draw(st.booleans()):
        lines.append((0, "from __future__ import annotations"))
    names = [f"work{number}" for number in range(draw(st.integers(1, 3)))]
    kernels = []
    for name in names:
        function, is_kernel = draw(_function(name))
        lines += function + draw(st.sampled_from(([], [(0, "")], [(0, ""), (0, "")], [(0, "x = 1")])))
        kernels += [name] if is_kernel else []
    launches = [(1, f"{name}(1).launch(grid=[1, 1, 1])") for name in kernels]
    lines += [(0, "@cute.jit"), (0, "def host(i):"), *(launches or [(1, "pass")]), (0, "# cutlass")]
    unit = draw(st.sampled_from(("    ", "  ", " ", "\t")))
    text = "".join(f"{unit * depth}{line}\n" for depth, line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    text = text.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))
    mark = draw(st.sampled_from((b"", b"\xef\xbb\xbf")))
    return Program(mark + text.encode(), tuple(kernels), tuple(names))
