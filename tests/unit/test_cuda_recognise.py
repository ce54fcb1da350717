# SPDX-License-Identifier: Apache-2.0
"""Which calls and asm of CUDA C++ are sync ops: the cases in tests/cases/cuda/recognise, and what holds of the catalogue.

`name.expected` lists, written by hand, `wrapper NAME` for every function whose calls stand for its body, and for every other
sync op `LINE METHOD KIND SIDE OPERAND-KIND [BARRIER] [| PHASE-OR-STATE]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.cuda.catalogue import ENTRIES, ROWS, Way
from autostamp.passes.cuda.expressions import filled, template, template_arguments, without_casts
from autostamp.passes.cuda.functions import Asm, Function, Index, index
from autostamp.passes.cuda.recognise import Recognised, Recognizer
from autostamp.passes.cuda.source import parse

FOLDER = Path(__file__).parents[1] / "cases" / "cuda" / "recognise"
NAMES = sorted(path.stem for path in FOLDER.glob("*.cu"))


def project(*texts: str, ops: tuple[SyncOp, ...] = ()) -> tuple[Index, Recognizer]:
    sources = {Path(f"f{number}.cu"): parse(text.encode()) for number, text in enumerate(texts)}
    found = index(sources)
    return found, Recognizer(found, sources, ops)


def sites(found: Index, recognizer: Recognizer) -> Iterator[tuple[int, Function, Recognised]]:
    for function in found.functions:
        if recognizer.is_wrapper(function):
            continue
        pieces = sorted((*function.calls, *function.asms), key=lambda piece: piece.start)
        for piece in pieces:
            is_asm = isinstance(piece, Asm)
            what = recognizer.asm(piece, function) if is_asm else recognizer.call(piece, function)
            if what is not None:
                yield function.source.original.count(b"\n", 0, piece.start) + 1, function, what


def only(text: str, ops: tuple[SyncOp, ...] = ()) -> Recognised | None:
    """What the one sync op in `text` is, None when there is none."""
    found = [what for _, _, what in sites(*project(text, ops=ops))]
    assert len(found) < 2
    return found[0] if found else None


def line_of(line: int, what: Recognised) -> str:
    op = what.op
    text = f"{line} {op.method} {op.kind.value} {op.side.value} {what.operand_kind.value} {what.barrier}".rstrip()
    second = what.state or what.phase
    return f"{text} | {second}" if second else text


def listing(found: Index, recognizer: Recognizer) -> list[str]:
    macros = [macro for group in found.macros.values() for macro in group]
    everything = sorted((*found.functions, *macros), key=lambda function: function.start)
    wrappers = [function for function in everything if recognizer.is_wrapper(function)]
    names = ["::".join(filter(None, (function.owner, function.name))) for function in wrappers]
    return [
        *(f"wrapper {name}" for name in names),
        *(line_of(line, what) for line, _, what in sites(found, recognizer)),
    ]


def test_cases_were_found():
    assert len(NAMES) >= 9


@pytest.mark.parametrize("name", NAMES)
def test_case(name):
    expected = (FOLDER / f"{name}.expected").read_text(encoding="utf-8").splitlines()
    assert listing(*project((FOLDER / f"{name}.cu").read_text(encoding="utf-8"))) == expected


SEMAPHORE = "struct Sem { uint64_t word; };\n"


@pytest.mark.parametrize(
    "text",
    [
        "void f(cudaStream_t stream, Event& event) { stream.wait(event); event.wait(); }",
        "__host__ void f(cuda::barrier<cuda::thread_scope_system>& bar) { bar.arrive_and_wait(); }",
        "__global__ void f(std::future<int>& x) { x.wait(); }",
        "__global__ void f(Timer& timer) { timer.wait(); timer.arrive(); timer.sync(); }",
        "__global__ void f(Queue& q) { q.commit(); q.release(); }",
        "__global__ void f(float x) { wait(x, 1); arrive(x); sync(x); }",
        "struct K { __device__ void sync() { x = 1; } int x; };\n__global__ void f(K& block) { block.sync(); }",
        "__device__ void cluster_wait() { x = y; g(x); }\n__global__ void f() { cluster_wait(); }",
        "__global__ void f(int* p) { int x = __shfl_sync(0xffffffff, *p, 0); }",
    ],
)
def test_a_name_alone_is_no_sync(text):
    assert list(sites(*project(text))) == []


def test_a_class_that_is_known_says_what_its_method_is():
    known = "struct Bar { __device__ void wait(int n) { total += n; } int total; };\n"
    assert only(known + "__global__ void f(Bar& full) { full.wait(1); }") is None
    assert only("__global__ void f(Bar& full) { full.wait(1); }") is not None


def test_the_row_of_the_users_table_wins():
    op = SyncOp("", "my_gate", Kind.WAIT, Side.FLAG, StageFrom.POINTER, group="gate")
    found = only("__global__ void f(int* word) { my_gate(word + 1, 2); }", (op,))
    assert found == Recognised(op, "word + 1", group="gate")
    named = SyncOp("Gate", "open", Kind.SIGNAL, Side.MBARRIER, StageFrom.OBJECT)
    assert only("__global__ void f(A& a) { a.open(1); }", (named,)) is None
    assert only("__global__ void f() { Gate::open(b); }", (named,)) is not None


def test_the_users_row_makes_its_function_a_wrapper():
    op = SyncOp("", "gate", Kind.WAIT, Side.FLAG, StageFrom.POINTER)
    text = "__device__ void gate(int* w) { for (int i = 0; i < 3; i++) __syncthreads(); }\n__global__ void f() { gate(p); }"
    assert [what.op for _, _, what in sites(*project(text, ops=(op,)))] == [op]


def test_a_number_in_place_of_a_state_is_no_state():
    text = "__global__ void f(Pipe& pipe, {} s) {{ pipe.consumer_wait(s, phase); }}"
    state = only(text.format("State"))
    number = only(text.format("uint32_t"))
    assert state is not None
    assert number is not None
    assert (state.operand_kind.value, state.state) == ("pipeline", "s")
    assert (number.operand_kind.value, number.state) == ("none", "")


def test_a_pipeline_behind_a_pointer_is_written_as_an_object():
    found = only("__global__ void f(Pipe* pipe, State s) { pipe->producer_acquire(s); }")
    assert found is not None
    assert found.barrier == "(*pipe)"


def test_the_class_of_a_pipeline_is_told_from_its_alias():
    text = "using P = cutlass::{}<4>;\n__global__ void f(P p, State s) {{ p.producer_commit(s); }}"
    store = only(text.format("PipelineTmaStore"))
    umma = only(text.format("PipelineUmmaAsync"))
    assert store is not None
    assert umma is not None
    assert (store.op.owner, store.op.side, store.group) == ("PipelineTmaStore", Side.ASYNC_GROUP, "cp.async.bulk")
    assert (umma.op.owner, umma.op.is_async) == ("PipelineUmmaAsync", True)


def test_overloads_for_numbers_and_barriers_are_told_apart():
    overloads = (
        SEMAPHORE
        + '__device__ void arrive(Sem& s) { asm("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(to_shared(&s.word))); }\n'
        + '__device__ void arrive(int id) { asm("bar.arrive %0, 64;" :: "r"(id)); }\n'
    )
    barrier = only(overloads + "__global__ void f(Sem& ready) { arrive(ready); }")
    number = only(overloads + "__global__ void f(int n) { arrive(3); }")
    assert barrier is not None
    assert number is not None
    assert (barrier.op.side, barrier.barrier) == (Side.MBARRIER, "ready")
    assert (number.op.side, number.barrier) == (Side.NAMED, "3")


def test_functions_of_the_same_file_come_first():
    wait = '__device__ void hold(int id) {{ asm volatile("{}" :: "r"(id)); }}\n'
    one = wait.format("bar.sync %0, 64;")
    two = wait.format("bar.arrive %0, 64;") + "__global__ void f() { hold(2); }"
    ((_, _, what),) = sites(*project(one, two))
    assert what.op.kind is Kind.SIGNAL


def test_a_wrapper_in_another_file_is_found():
    one = 'namespace ptx { __device__ void hold(int id) { asm volatile("bar.sync %0, 64;" :: "r"(id)); } }'
    ((_, _, what),) = sites(*project(one, "__global__ void f() { ptx::hold(2); }"))
    assert (what.op.owner, what.op.method, what.barrier) == ("ptx", "hold", "2")


def test_an_operand_with_effects_reaches_the_caller_as_it_is_written():
    text = "__global__ void f(Bars& full_bars, int& s) { full_bars.get(s++).wait(flip(s)); }"
    found = only(text)
    assert found is not None
    assert (found.barrier, found.phase) == ("full_bars.get(s++)", "flip(s)")


def test_functions_that_call_each_other_are_no_wrappers():
    text = "__device__ void a(int n) { if (n) b(n - 1); }\n__device__ void b(int n) { a(n); __syncthreads(); }"
    assert [(function.name, what.op.method) for _, function, what in sites(*project(text))] == [("b", "__syncthreads")]


def test_set_up_names_barriers_and_counts():
    text = (
        '__device__ void init(uint32_t bar, int n) { asm("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"(n)); }'
    )
    found, recognizer = project(text)
    assert recognizer.setups(found.functions[0]) == (("bar", "n"),)
    assert not recognizer.is_wrapper(found.functions[0])


def test_kernels_are_never_wrappers():
    found, recognizer = project("__global__ void k() { __syncthreads(); }")
    assert not recognizer.is_wrapper(found.functions[0])


def test_rows_are_those_of_the_entries():
    assert [entry.op for entry in ENTRIES] == list(ROWS)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.op.owner}::{entry.op.method}")
def test_entry(entry):
    assert entry.op.owner
    assert entry.op.method
    assert 0 <= entry.least <= entry.most
    places = [place for place in (entry.barrier, entry.phase, entry.state) if place not in ("", "receiver")]
    assert all(int(place) < entry.most for place in places)
    assert (entry.op.stage_from is StageFrom.STATE) is bool(entry.state)
    assert entry.is_certain is (entry.evidence is None)
    if "receiver" in (entry.barrier, entry.state):
        assert entry.way is Way.METHOD
    if (
        entry.op.side in (Side.CTA, Side.WARP, Side.CLUSTER, Side.GRID, Side.ASYNC_GROUP)
        and entry.op.kind is not Kind.FENCE
    ):
        assert entry.op.group
    if entry.op.kind in (Kind.POLL, Kind.FENCE):
        assert not entry.op.signals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("static_cast<uint32_t>(__cvta_generic_to_shared(bar))", "bar"),
        ("(uint32_t)__cvta_generic_to_shared(&bars[i])", "&bars[i]"),
        ("cute::cast_smem_ptr_to_uint(reinterpret_cast<void const*>(p + 1))", "p + 1"),
        ("((a))", "a"),
        ("(a) + (b)", "(a) + (b)"),
        ("bar & 0xFEFFFFFF", "bar"),
        ("bar & cute::Sm100MmaPeerBitMask", "bar"),
        ("offset(bar, 1)", "offset(bar, 1)"),
        ("smem_ptr_at(bar, 1)", "smem_ptr_at(bar, 1)"),
    ],
)
def test_casts_are_taken_off(text, expected):
    assert without_casts(text) == expected


@pytest.mark.parametrize(
    ("text", "arguments", "receiver", "expected"),
    [
        ("bar", ("&full[i]",), "", "&full[i]"),
        ("&bar.value", ("full",), "", "full"),
        ("addr", ("words",), "", "words"),  # a local: the parameter, converted
        ("bar + 8 * n", ("base", "s ^ 1"), "", "(base) + 8 * (s ^ 1)"),
        ("this", (), "ring", "ring"),
        ("&this->only", (), "ring", "ring"),
        ("bars[n]", (), "", ""),  # what the wrapper's own file knows means nothing where it is called
        ("pick(bar)", ("b",), "", ""),
        ("global_bar", ("b",), "", ""),
        ("bar", (), "", ""),
    ],
)
def test_an_operand_is_rewritten_for_its_caller(text, arguments, receiver, expected):
    made = template(text, ["bar", "n"], {"addr": "to_shared(bar)"}, lambda name: name == "only")
    assert filled(made, arguments, receiver) == expected


def test_template_arguments():
    assert template_arguments("<2, A<B, C>, f(1, 2)>") == ("2", "A<B, C>", "f(1, 2)")
    assert template_arguments("") == ()
