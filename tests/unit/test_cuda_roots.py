# SPDX-License-Identifier: Apache-2.0
"""Operands: what may be evaluated again, how a reader would write them, what they go back to; and what stands before a place."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.model.sync import Side
from autostamp.passes.cuda.functions import Index, index
from autostamp.passes.cuda.guards import Guards
from autostamp.passes.cuda.neighbours import Neighbours
from autostamp.passes.cuda.nodes import chain_to
from autostamp.passes.cuda.operands import Purity, label, names_in, one_line
from autostamp.passes.cuda.roots import Roots, path_of, twins
from autostamp.passes.cuda.scopes import Scopes
from autostamp.passes.cuda.source import parse
from autostamp.passes.cuda.uses import stage_of

PURITY = Purity(Index((), {}))

_LEAVES = st.sampled_from(
    ("s", "full", "this->bar", "4", "0x1fu", "kStages", "Traits::kCount", "threadIdx.x", "state.index()")
)
_FORMS = (
    "{}[{}]",
    "({} + {})",
    "{} * ({})",
    "({} ? {} : 0)",
    "reinterpret_cast<Barrier<4>*>({} + {})",
    "(uint64_t*)({} + {})",
    "static_cast<uint32_t>({}) ^ {}",
    "&{}[({}) % 4]",
    "{} << 3 | {} >= 2",
    "__cvta_generic_to_shared({} - {})",
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda form, left, right: form.format(left, right), st.sampled_from(_FORMS), inner, inner)


EXPRESSIONS = st.recursive(_LEAVES, _combined, max_leaves=6)
EFFECTS = st.sampled_from(
    ("s++", "--s", "(s = 3)", "(s += 1)", "(s <<= 1)", "next(s)", "std::move(s)", "[&]{ return s; }()", "new int")
)


@given(EXPRESSIONS)
def test_expressions_that_only_compute_are_pure(text: str) -> None:
    assert PURITY.is_pure(text)


@given(EXPRESSIONS, EXPRESSIONS, EFFECTS, st.sampled_from(_FORMS), st.booleans())
def test_an_effect_anywhere_is_seen(left: str, right: str, effect: str, form: str, is_left: bool) -> None:
    inner = form.format(effect, right) if is_left else form.format(left, effect)
    assert not PURITY.is_pure(form.format(left, inner))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f(s)",
        "b[f()]",
        '"text"',
        "a<b>(c)",
        "(f)(x)",
        "x.add(1)",
        "make_state<Pipeline>()",
        "a, b = c",
        "X{f()}",
        "#if",
    ],
)
def test_what_is_not_known_to_compute_is_not_pure(text: str) -> None:
    assert not PURITY.is_pure(text)


@pytest.mark.parametrize(
    "text", ["a == b", "a <= b", "a != b", "a->b", "a::b", "a - -b", "X{}", "Int<0>{}", "a<b", "-1"]
)
def test_operators_that_look_like_effects(text: str) -> None:
    assert PURITY.is_pure(text)


def test_functions_of_the_project_are_looked_into() -> None:
    source = parse(
        b"__device__ int twice(int x) { return 2 * x; }\n"
        b"__device__ int deep(int x) { return twice(x) + 1; }\n"
        b"__device__ int counted(int& x) { return x++; }\n"
        b"__device__ int two(int x) { int y = x; return y; }\n"
        b"__device__ int loop(int x) { return loop(x); }\n"
    )
    purity = Purity(index({Path("a.cu"): source}))
    assert [purity.is_pure(f"{name}(s)") for name in ("twice", "deep", "counted", "two", "loop")] == [
        *(True, True),
        *(False, False, False),
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("&full_barriers[stage]", "full_barriers[stage]"),
        ("reinterpret_cast<uint64_t*>(&bar[ i ])", "bar[i]"),
        ("static_cast<uint32_t>(FwdNamedBarriers::QueryEmpty)", "FwdNamedBarriers::QueryEmpty"),
        ("static_cast<int>(Ids::A) - 1 + wg", "Ids::A - 1 + wg"),
        ("this->pipeline . bars  [ s ]", "pipeline.bars[s]"),
        ("(*full)", "full"),
        ("__cvta_generic_to_shared(&full[0])", "full[0]"),
        ("plan->bar_k[i]  // of k\n", "plan->bar_k[i]"),
        ("1.5 + x", "1.5 + x"),
    ],
)
def test_label(text: str, short: str) -> None:
    assert label(text) == short


@given(EXPRESSIONS)
def test_a_label_is_its_own_label(text: str) -> None:
    assert label(label(text)) == label(text)


def test_names() -> None:
    assert names_in("plan->full[s + k.index()] + A::b(0x1fu) + 8u") == {"plan", "s", "k", "A"}
    assert one_line("a /* b */ +\n  c // d\n") == "a + c"


@pytest.mark.parametrize(
    ("text", "parts", "has_offset"),
    [
        ("full[s]", ("full",), False),
        ("&plan.bars.full[s][1]", ("plan", "bars", "full"), False),
        ("this->full", ("full",), False),
        ("pipeline.producer_get_barrier(state)", ("pipeline",), False),
        ("storage->bar(i)", ("storage", "bar()"), False),
        ("bar + 8 * s", ("bar",), True),
        ("reinterpret_cast<Barrier*>(smem + 16)", ("smem",), True),
        ("(uint64_t*)bars", ("bars",), False),
        ("ns::full[s]", ("full",), False),
    ],
)
def test_path(text: str, parts: tuple[str, ...], has_offset: bool) -> None:
    names = path_of(text)
    assert names is not None
    assert (names.parts, names.has_offset) == (parts, has_offset)


@pytest.mark.parametrize("text", ["1", "", "a ? b : c", "s == 0", "[&]{ return b; }()"])
def test_no_path(text: str) -> None:
    assert path_of(text) is None


@pytest.mark.parametrize(
    ("full", "empty"),
    [
        ("full", "empty"),
        ("full_barriers", "empty_barriers"),
        ("bar_full", "bar_empty"),
        ("barFull", "barEmpty"),
        ("BAR_FULL", "BAR_EMPTY"),
        ("fullBars", "emptyBars"),
        ("inputs_arrived", "inputs_finished"),
        ("bar_k_ready", "bar_k_free"),
        ("filled_mbar", "consumed_mbar"),
        ("full_barrier_ptr_", "empty_barrier_ptr_"),
    ],
)
def test_the_names_of_a_pair_lead_to_each_other(full: str, empty: str) -> None:
    assert (Side.FULL, empty) in [each[:2] for each in twins(full)]
    assert (Side.EMPTY, full) in [each[:2] for each in twins(empty)]


def test_no_pair() -> None:
    assert twins("barrier_q") == []
    assert twins("carefully") == []  # a word inside of a word


KERNELS = {
    Path("mainloop.cuh"): b"""
struct Mainloop {
  template <class Pipeline> __device__ void load(Pipeline pipeline_k, int n) { work(n); pipeline_k.wait(n); }
  template <class Pipeline> __device__ void mma(Pipeline pipeline, int n) { work(n); pipeline.wait(n); }
  __device__ void tail(int n);
};
struct Other {
  template <class Pipeline> __device__ void load(Pipeline pipeline_k, int n) { work(n); pipeline_k.wait(n); }
};
""",
    Path("kernel.cu"): b"""
__global__ void kernel(int n) {
  Pipeline first(n), second(n);
  Mainloop mainloop;
  mainloop.load(first, n);
  mainloop.mma(first, n);
  mainloop.mma(second, n);
  mainloop.tail(n);
}
__global__ void other(int n) {
  Pipeline third(n);
  Other mine;
  mine.load(third, n);
}
""",
}


def test_parameters_stand_for_what_all_callers_give() -> None:
    """`first` is line 3 of kernel.cu and all that `load` of Mainloop gets, by the methods that its object has."""
    sources = {path: parse(data) for path, data in KERNELS.items()}
    functions = index(sources)
    scopes = Scopes(functions, sources)
    roots = Roots(functions, Guards(functions, scopes), scopes)

    def key(owner: str, name: str) -> str:
        function = next(each for each in functions.by_name[name] if each.owner == owner)
        call = next(each for each in function.calls if each.name == "wait")
        return roots.of(call.receiver, function, chain_to(function.node, call.node)).key

    assert key("Mainloop", "load") == "kernel.cu:3:first"
    assert key("Mainloop", "mma") == "mainloop.cuh:4:pipeline"


@pytest.mark.parametrize(
    ("barrier", "state", "stage"),
    [
        ("full[stage]", "", "stage"),
        ("grid[a][b[1]]", "", "b[1]"),
        ("pipeline", "smem_pipe_read", "smem_pipe_read.index()"),
        ("pipeline", "make_state(x)", ""),
        ("bar + 8 * s", "", "s"),
        ("bar + s * sizeof(uint64_t)", "", "s"),
        ("bar + 8", "", ""),
        ("bar", "", ""),
    ],
)
def test_stage(barrier: str, state: str, stage: str) -> None:
    assert stage_of(barrier, state) == stage


# What stands before a place, whichever branches are compiled: all ways through random conditionals, taken one by one here.
_TOKENS = st.integers(0, 10**6)
_GROUPS = st.recursive(
    st.lists(_TOKENS, max_size=2),
    lambda inner: st.lists(
        st.one_of(_TOKENS, st.tuples(st.lists(inner, min_size=1, max_size=3), st.booleans())), max_size=3
    ),
    max_leaves=8,
)


def _written(items: list[object], lines: list[str]) -> None:
    for item in items:
        if isinstance(item, int):
            lines.append(f"t{item};")
            continue
        branches, has_else = item  # type: ignore[misc]
        for at, branch in enumerate(branches):
            is_last = has_else and at == len(branches) - 1 and at > 0
            lines += ["#if A \\", "  && B"] if at == 0 else ["#else"] if is_last else [f"# elif C{at}"]
            _written(branch, lines)
        lines.append("#endif")


def _ways(items: list[object]) -> list[list[int]]:
    """The tokens of each way through the conditionals."""
    ways: list[list[int]] = [[]]
    for item in items:
        if isinstance(item, int):
            ways = [[*way, item] for way in ways]
            continue
        branches, has_else = item  # type: ignore[misc]
        inner = [way for branch in branches for way in _ways(branch)]
        if not (has_else and len(branches) > 1):
            inner.append([])
        ways = [[*way, *more] for way, more in itertools.product(ways, inner)]
    return ways


@settings(max_examples=200)
@given(_GROUPS)
def test_what_may_stand_before_a_place(items: list[object]) -> None:
    lines = ["{"]
    _written(items, lines)
    text = "\n".join([*lines, "here();"]).encode()
    found = {
        re.findall(rb"\w+;|\{", text[:end])[-1].decode()
        for end in Neighbours(parse(text)).ends_before(text.rindex(b"here"))
    }
    assert found == {f"t{way[-1]};" if way else "{" for way in _ways(items)}
