# SPDX-License-Identifier: Apache-2.0
"""The independent count, on every way of writing a sync call that real kernels use. Expectations are counted by hand."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.corpus.count import BEYOND_LIST, LISTED, CallClass, count, listed_totals
from tests.corpus.packages import PACKAGES, listed_files

# Name of the shape, source, expected calls as "line name class" with an s where the loop spins on the call.
SHAPES = [
    (
        "statement",
        "pipe.consumer_wait(state)\npipe.consumer_release(state)",
        ["1 consumer_wait b", "2 consumer_release s"],
    ),
    ("assigned handle", "h = c.wait_and_advance()\nh.release()", ["1 wait_and_advance b", "2 release s"]),
    ("assigned state", "s = order.arrive()", ["1 arrive s"]),
    (
        "assigned token",
        "token = pipe.consumer_try_wait(st)\npipe.consumer_wait(st, token)",
        ["1 consumer_try_wait p", "2 consumer_wait b"],
    ),
    ("augmented and annotated", "x: object = c.wait_and_advance()", ["1 wait_and_advance b"]),
    (
        "wait loop",
        "while not prims.mbarrier_try_wait_parity(bar, phase):\n    pass",
        ["1 mbarrier_try_wait_parity p spin"],
    ),
    ("wait loop on one line", "while not bar.try_wait(0, phase): pass", ["1 try_wait p spin"]),
    (
        "wait loop on a wait",
        "while not prims.mbarrier_wait_parity(bar, phase):\n    pass",
        ["1 mbarrier_wait_parity b spin"],
    ),
    ("wait loop with back-off", "while not bar.test_wait(0, p):\n    prims.nanosleep(20)", ["1 test_wait p spin"]),
    ("poll in a loop that works", "while not bar.try_wait(0, p):\n    work()", ["1 try_wait p"]),
    ("wait inside a tile loop", "while tile.is_valid:\n    c.wait()\n    tile = nxt()", ["2 wait b"]),
    ("lambda body", "if_generate(cond, lambda: self.sync_object_full.wait(i, p))", ["1 wait b"]),
    ("lambda inside def", "def w(self):\n    f(lambda: self.bar.arrive(0), else_=lambda: None)", ["2 arrive s"]),
    (
        "argument of another wait",
        "pipe.consumer_wait(st, pipe.consumer_try_wait(st))",
        ["1 consumer_wait b", "1 consumer_try_wait p"],
    ),
    (
        "two waits in one call",
        "f(a.wait_and_advance(), b.wait_and_advance())",
        ["1 wait_and_advance b", "1 wait_and_advance b"],
    ),
    ("chained", "x.acquire_and_advance().commit()", ["1 acquire_and_advance b", "1 commit s"]),
    ("function reference", "f(hook_fn=cute.arch.cluster_wait if const_expr(n > 1) else None)", []),
    ("partial of a method", "release = partial(pipe.consumer_release, state)\nrelease()", ["2 release s"]),
    ("bound method as callback", "load(acquire=pipe.producer_acquire)", []),
    ("one-line if", "if is_last: cute.arch.sync_threads()", ["1 sync_threads b"]),
    ("two statements on a line", "cute.arch.fence_proxy(); bar.arrive_and_wait()", ["1 arrive_and_wait b"]),
    (
        "const_expr guard",
        "if const_expr(n > 1):\n    cute.arch.cluster_arrive()\nelse:\n    pass",
        ["2 cluster_arrive s"],
    ),
    ("condition of an if", "if pipe.try_wait():\n    pass", ["1 try_wait p"]),
    ("ternary", "t = pipe.producer_try_acquire(s) if more else True", ["1 producer_try_acquire p"]),
    ("returned", "def f(p):\n    return p.wait_and_advance()", ["2 wait_and_advance b"]),
    ("bare name", "from cutlass.cute.arch import sync_threads\nsync_threads()", ["2 sync_threads b"]),
    (
        "list item and dotted receivers",
        "pipes[i].consumer_wait(s)\nparams.mma.producer_tail(s)",
        ["1 consumer_wait b", "2 producer_tail b"],
    ),
    ("receiver that is a call", "with_phase(bar, phase).arrive_and_wait()", ["1 arrive_and_wait b"]),
    ("receiver in parentheses", "(a if flag else b).commit()", ["1 commit s"]),
    (
        "subclass forms",
        "p.producer_acquire_w_index_phase(i, ph)\np.producer_commit_w_index(i)",
        ["1 producer_acquire_w_index_phase b", "2 producer_commit_w_index s"],
    ),
    ("mbarrier array", "pipe.sync_object_empty.wait(0, phase)", ["1 wait b"]),
    (
        "expect_tx under elect_one",
        "with cute.arch.elect_one():\n    cute.arch.mbarrier_arrive_and_expect_tx(bar, n)",
        ["2 mbarrier_arrive_and_expect_tx s"],
    ),
    (
        "groups",
        "warpgroup.commit_group()\nwarpgroup.wait_group(0)\ntcgen05.commit(bar)",
        ["1 commit_group s", "2 wait_group b", "3 commit s"],
    ),
    ("griddepcontrol waits", "prims.griddepcontrol(kind=prims.GridDepAction.WAIT)", ["1 griddepcontrol b"]),
    ("griddepcontrol waits by string", 'griddepcontrol("wait")', ["1 griddepcontrol b"]),
    ("griddepcontrol launches", "prims.griddepcontrol(prims.GridDepAction.LAUNCH_DEPENDENTS)", ["1 griddepcontrol s"]),
    ("semaphore", "sem.wait_eq(1)\nsem.release_add()", ["1 wait_eq b", "2 release_add s"]),
    ("schedule function", "def load_schedule(a):\n    a.acquire()\n    a.commit()", ["2 acquire b", "3 commit s"]),
    ("definition", "def wait(self):\n    pass", []),
    ("fence and init", "cute.arch.mbarrier_init(p, 1)\ncute.arch.fence_view_async_shared()", []),
    ("text", 'llvm.inline_asm("bar.sync 1, 128;")\n# pipe.wait()\n"pipe.wait()"', []),
    ("host processes", "dist.barrier(group)\ntorch.distributed.barrier()", []),
    ("nested function", "def k():\n    def inner():\n        c.wait()\n    inner()", ["3 wait b"]),
    ("comprehension", "hs = [c.wait_and_advance() for _ in range(2)]", ["1 wait_and_advance b"]),
]

_LETTER = {CallClass.BLOCKING: "b", CallClass.POLL: "p", CallClass.SIGNALLING: "s"}


@pytest.mark.parametrize(("source", "expected"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_shape(source: str, expected: list[str]) -> None:
    found = [
        f"{call.line} {call.name} {_LETTER[call.kind]}{' spin' if call.is_spin else ''}"
        for call in count(source.encode())
    ]
    assert sorted(found) == sorted(expected)


def test_chained_calls_share_a_start_and_differ_in_their_end() -> None:
    source = b"x = p.acquire_and_advance().commit()\n"
    inner, outer = count(source)
    assert (inner.start, inner.column) == (outer.start, outer.column) == (4, 4)
    assert source[inner.start : inner.end] == b"p.acquire_and_advance()"
    assert source[outer.start : outer.end] == b"p.acquire_and_advance().commit()"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_offsets_are_bytes_of_the_file(newline: str, mark: bytes) -> None:
    text = 'bar.wait()\nname = "é→"; bar.arrive(\n    0,\n    "\x0c",\n)\nif x:\n\tbar.sync()\n'
    source = mark + text.replace("\n", newline).encode()
    calls = count(source)
    assert [source[call.start : call.end].split(b"(")[0] for call in calls] == [b"bar.wait", b"bar.arrive", b"bar.sync"]
    assert all(source[call.end - 1 : call.end] == b")" for call in calls)
    assert [(call.line, call.column, call.end_line) for call in calls] == [(1, 0, 1), (2, 16, 5), (7, 1, 7)]


def test_spun_on_polls_are_counted_and_other_polls_are_not() -> None:
    source = b"while not bar.try_wait(0, p):\n    pass\ntoken = bar.try_wait(0, p)\nbar.wait(0, p)\n"
    assert [call.is_counted for call in count(source)] == [True, False, True]


def test_listed_totals_follow_the_list() -> None:
    source = dedent(
        """\
        prims.griddepcontrol(kind=prims.GridDepAction.WAIT)
        pipe.producer_cpasync_commit(state)
        pipe.consumer_wait(state)
        token = pipe.consumer_try_wait(state)
        """
    )
    # The list counts griddepcontrol as signalling whatever it does, and does not know producer_cpasync_commit.
    assert listed_totals(count(source.encode())) == (1, 1, 1)


def test_names_have_one_class() -> None:
    assert not LISTED.keys() & BEYOND_LIST.keys()


def test_the_list_names_pinned_packages_and_each_file_once() -> None:
    files = listed_files()
    assert {file.package for file in files} == {package.name for package in PACKAGES}
    assert len({file.path for file in files}) == len(files) == 561
    assert all(sum(file.totals) > 0 and file.path.endswith(".py") for file in files)
