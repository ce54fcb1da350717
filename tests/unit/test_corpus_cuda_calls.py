# SPDX-License-Identifier: Apache-2.0
"""The count that recognition of CUDA C++ is compared with: what it takes for a sync call, from text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.passes.cuda.source import parse
from tests.corpus.cuda_calls import check, hits, main

KERNEL = "__global__ void kernel(int* p) {{ {} }}"


def counted(text: str) -> list[str]:
    return [name for _, name in hits(text.encode())]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("__syncthreads();", ["__syncthreads"]),
        ("bars[i].wait(0); // bar.wait(1);\n", ["wait"]),
        ("pipe->template consumer_wait<1>(s);", ["consumer_wait"]),
        ('asm volatile("bar.sync 0;" /* barrier.sync */);', ["bar.sync"]),
        ('asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b));', []),
        ('printf("wait(1) mbarrier.arrive");', []),
        ("if (p) arrive(b); else sync();", ["arrive", "sync"]),
        ("auto sync = [&] { __syncwarp(); }; sync();", ["__syncwarp"]),
        ("waiting(1); my_wait(2); sync_all();", []),
    ],
)
def test_hits_in_a_kernel(body, names):
    assert counted(KERNEL.format(body)) == names


@pytest.mark.parametrize(
    "text",
    [
        "void host(Stream s) { s.wait(1); }",
        "__device__ void wait(int* bar);",
        "#define SYNC() __syncthreads()\n",
        "struct Bar { __device__ bool try_wait(int phase) { return true; } };",
        "int wait(int x);",
    ],
)
def test_no_hits(text):
    assert counted(text) == []


def test_offsets_are_those_of_the_text():
    text = b'// \xc3\xa9 wait(1)\n__device__ void f() {\n  bar.wait(1);\n  asm("bar.sync 0;");\n}\n'
    assert [text[at : at + 4] for at, _ in hits(text)] == [b"wait", b"asm("]


def test_what_becomes_of_hits():
    text = (
        '__device__ void hold() { asm volatile("bar.sync 1, 64;"); }\n'
        "__device__ void both(Bar& full) { full.wait(0); full.arrive(); work(); }\n"
        "__global__ void k(Bar& full, Odd& odd) { hold(); __syncthreads(); full.wait(1); odd.sync(); }\n"
    )
    path = Path("k.cu")
    count = check("one", {path: parse(text.encode())})
    assert (count.counted, count.recognised, count.in_wrappers) == (6, 4, 1)
    (missed,) = count.missed
    assert missed == "k.cu:3: sync: sync(); }"
    assert count.share == 1 / 6


def test_exit_status_tells_whether_all_is_recognised(tmp_path, capsys):
    good = tmp_path / "good"
    bad = tmp_path / "bad"
    for folder, body in ((good, "__syncthreads();"), (bad, "odd.sync();")):
        folder.mkdir()
        (folder / "k.cu").write_text(KERNEL.format(body), encoding="utf-8")
    assert main([str(good)]) == 0
    assert main([str(good), str(bad)]) == 1
    assert "k.cu:1: sync: sync(); }" in capsys.readouterr().out
