# SPDX-License-Identifier: Apache-2.0
"""Functions of CUDA C++ sources, with their calls and inline asm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.passes.cuda.asm_text import GAP, asm_parts
from autostamp.passes.cuda.functions import Asm, Call, Function, Index, bare, index
from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.source import parse

SCOPES = b"""\
#define API __device__ __forceinline__
#define ENTRY static __global__ __launch_bounds__(128)
namespace outer { namespace inner {
template <int N, class T>
struct Ring : public Base<T>, private detail::Other {
  T words[N];
  API static void wait(T* bar, int phase = 0, ...);
  __device__ bool operator()(int a, int, int (&z)[3]) const { return step(a); }
  Ring() : words{make(1)} { first(); }
};
template <int N, class T>
__device__ void Ring<N, T>::wait(T* bar, int phase, ...) { poll(bar); }
}}
template <class... Args> API int* spread(Args&&... args) { return run(args...); }
ENTRY void kernel(const __grid_constant__ CUtensorMap map, float* const out) {
  auto lambda = [&](int i) { inside(i); };
  struct Local { __device__ void method() { local(); } };
  outside();
}
void host(int n) { kernel<<<1, 128>>>(n); }
"""


def found_in(*texts: bytes) -> Index:
    macros = learn(texts)
    return index({Path(f"f{number}.cu"): parse(text, macros) for number, text in enumerate(texts)})


def named(found: Index, name: str) -> Function:
    (function,) = found.by_name[name]
    return function


def names(function: Function) -> list[str]:
    return [call.name for call in function.calls]


def test_scopes_owners_and_qualified_names():
    found = found_in(SCOPES)
    rows = [(each.qualified, each.owner) for each in found.functions]
    assert rows == [
        ("outer::inner::Ring::operator()", "Ring"),
        ("outer::inner::Ring::Ring", "Ring"),
        ("outer::inner::Ring::wait", "Ring"),
        ("spread", ""),
        ("kernel", ""),
        ("Local::method", "Local"),
        ("host", ""),
    ]
    (ring,) = found.types["Ring"]
    assert ring.bases == ("Base", "Other")
    assert ring.template_parameters == ("N", "T")


def test_qualifiers_are_those_behind_macros():
    found = found_in(SCOPES)
    kernel = named(found, "kernel")
    assert kernel.is_kernel
    assert kernel.is_device
    assert {"__device__", "__forceinline__"} <= named(found, "spread").qualifiers
    assert not named(found, "host").is_device
    assert not named(found, "kernel").is_template
    assert named(found, "wait").is_template
    assert named(found, "wait").template_parameters == ("N", "T")


def test_parameters():
    found = found_in(SCOPES)
    assert [(each.name, each.type) for each in named(found, "kernel").parameters] == [
        ("map", "const __grid_constant__ CUtensorMap"),
        ("out", "float* const"),
    ]
    assert [each.name for each in named(found, "operator()").parameters] == ["a", "", "z"]
    (pack,) = named(found, "spread").parameters
    assert (pack.name, pack.type[-3:]) == ("args", "...")
    assert named(found, "spread").accepts(9)


@pytest.mark.parametrize(("count", "is_accepted"), [(0, False), (1, True), (2, True), (3, False)])
def test_default_arguments_count(count, is_accepted):
    function = named(found_in(b"void f(int a, float b = g(1, 2)) {}"), "f")
    assert function.accepts(count) is is_accepted


def test_calls_belong_to_the_innermost_function_and_lambdas_to_theirs():
    found = found_in(SCOPES)
    assert names(named(found, "kernel")) == ["inside", "outside"]
    assert names(named(found, "method")) == ["local"]
    assert names(named(found, "operator()")) == ["step"]
    assert names(named(found, "wait")) == ["poll"]


def test_body_spans_its_braces():
    found = found_in(SCOPES)
    for function in found.functions:
        text = function.source.original[slice(*function.body)]
        assert (text[:1], text[-1:]) == (b"{", b"}")


CALLS = [
    ("f(a, g)", ("f", "", "", "", ("a", "g"))),
    ("f<0>(x)", ("f", "", "", "<0>", ("x",))),
    ("a::b::f(x)", ("f", "a::b", "", "", ("x",))),
    ("::a::f()", ("f", "::a", "", "", ())),
    ("A<T, 3>::f(x)", ("f", "A<T, 3>", "", "", ("x",))),
    ("A<T>::f<2>(x)", ("f", "A<T>", "", "<2>", ("x",))),
    ("obj.f(x)", ("f", "", "obj", "", ("x",))),
    ("obj->f(x)", ("f", "", "obj", "", ("x",))),
    ("s.bars[i + 1].f( x,\n  y )", ("f", "", "s.bars[i + 1]", "", ("x", "y"))),
    ("(*p)->f()", ("f", "", "(*p)", "", ())),
    ("obj.template f<T, 1>(x)", ("f", "", "obj", "<T, 1>", ("x",))),
    ("A::template f<T>(x)", ("f", "A", "", "<T>", ("x",))),
    ("get(1).f(/* none */)", ("f", "", "get(1)", "", ())),
    ("this->f(x /* the x */)", ("f", "", "this", "", ("x",))),
    ("f([&](int i) { return i; }, std::move(t))", ("f", "", "", "", ("[&](int i) { return i; }", "std::move(t)"))),
]


@pytest.mark.parametrize(("text", "expected"), CALLS, ids=[text for text, _ in CALLS])
def test_forms_of_calls(text, expected):
    function = named(found_in(b"__device__ void k() {\n  " + text.encode() + b";\n}"), "k")
    call = next(each for each in function.calls if each.name == "f")
    assert (call.name, call.qualifier, call.receiver, call.template, call.arguments) == expected
    assert function.source.original[call.start : call.end].decode() == text
    assert call.is_arrow is ("->" in text)


def test_calls_in_conditions_ternaries_and_initialisers_are_found():
    text = b"__device__ void k() { if (a()) b(); else c(); while (!d()) {} int x = p ? e() : f(); for (;;) { g(); break; } }"
    assert names(named(found_in(text), "k")) == list("abcdefg")


def test_a_macro_with_code_is_called_like_a_function():
    found = found_in(
        b'int a;\n#define WAIT(n, m) \\\n  asm volatile("cp.async.wait_group %0;" :: "n"(n)); done(m)\nint b;'
    )
    (macro,) = found.macros["WAIT"]
    assert macro.is_macro
    assert [each.name for each in macro.parameters] == ["n", "m"]
    (asm,) = macro.asms
    (call,) = macro.calls
    original = macro.source.original
    assert original[asm.start : asm.end].startswith(b"asm volatile(")
    assert original[call.start : call.end] == b"done(m)"
    assert (asm.operands, call.arguments) == (("n",), ("m",))


def test_what_no_function_holds_is_outside():
    found = found_in(b"int a = start(1);\nvoid f() { inside(); }\n")
    (call,) = found.outside[Path("f0.cu")]
    assert isinstance(call, Call)
    assert call.name == "start"


def test_device_code_is_followed_into_functions_without_qualifiers():
    found = found_in(
        b"constexpr int half(int n) { return quarter(n) * 2; }\n"
        b"constexpr int quarter(int n) { return n / 4; }\n"
        b"int unused(int n) { return n; }\n"
        b"__host__ int only_host(int n) { return n; }\n",
        b"__global__ void k(int n) { half(n); half(1, 2); only_host(n); }\n",
    )
    assert named(found, "half").is_device
    assert named(found, "quarter").is_device
    assert not named(found, "unused").is_device
    assert not named(found, "only_host").is_device


def test_a_function_without_qualifiers_that_holds_asm_is_device_code():
    found = found_in(b'template <class T> void f(T x) { asm("bar.sync 0;"); }\nvoid g() {}')
    assert named(found, "f").is_device
    assert not named(found, "g").is_device


ASM = [
    ('asm volatile("bar.sync %0, %1;" : : "r"(a), "n"(b + 1) : "memory")', "bar.sync %0, %1;", ("a", "b + 1"), 0),
    ('asm("x\\n" "y %0;\\t" :"=r"(out):"r"(in))', "x\ny %0;\t", ("out", "in"), 1),
    ('__asm__ __volatile__("z;")', "z;", (), 0),
    ('asm volatile("m" SCOPE ".b64 _, [%0];" ::"r"(f(a, b)))', f"m{GAP}.b64 _, [%0];", ("f(a, b)",), 0),
    ('asm volatile(OP " %0;" :: "r"(a::b))', f"{GAP} %0;", ("a::b",), 0),
    ('asm volatile("p;" : [o] "+r"(x[0]), "=l"(y) : [i] "l"(q ? 1 : 2))', "p;", ("x[0]", "y", "q ? 1 : 2"), 2),
    ('asm volatile(R"(wgmma "q";)")', 'wgmma "q";', (), 0),
    ('asm volatile("a;" // one\n "b; // two" /* three */ "c;")', "a;b; // twoc;", (), 0),
    ('asm volatile("a;"\n#ifdef X\n "b;"\n#else\n "c;"\n#endif\n)', "a;b;c;", (), 0),
]


@pytest.mark.parametrize(("text", "template", "operands", "outputs"), ASM, ids=[row[0][:40] for row in ASM])
def test_asm(text, template, operands, outputs):
    function = named(found_in(b"__device__ void k() {\n" + text.encode() + b";\n}"), "k")
    (asm,) = function.asms
    assert (asm.text, asm.operands, asm.outputs) == (template, operands, outputs)
    assert function.source.original[asm.start : asm.end].decode() == text


def test_asm_operands_keep_their_names():
    function = named(found_in(b'__device__ void k() { asm("" : [to] "=r"(a), "=r"(b) : [from] "r"(c)); }'), "k")
    assert function.asms[0].names == ("to", "", "from")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a :: B<T, C<2>> :: f", "a::B::f"),
        ("A<(x > 1)>::g", "A::g"),
        ("operator  ()", "operator()"),
        ("A<T>::operator<<", "A::operator<<"),
        ("B::template f", "B::f"),
    ],
)
def test_bare_names(text, expected):
    assert bare(text) == expected


EXPRESSION = st.sampled_from(["a", "a[1]", "f(a, b)", "x::y", "c ? d : e", "(uint32_t)p", "m{1, 2}", "s.t->u"])
PIECE = st.sampled_from(["bar.sync %0;", "\\n", "// %0 ::", "{ p, q }", '\\"', "[%1], %2;"])


@given(
    pieces=st.lists(PIECE, min_size=1, max_size=4),
    outputs=st.lists(EXPRESSION, max_size=3),
    inputs=st.lists(EXPRESSION, max_size=3),
    blank=st.sampled_from(["", " ", "\n  "]),
)
def test_asm_of_any_make_is_taken_apart(pieces, outputs, inputs, blank):
    """The parts go together by hand here, so what comes back must be them."""
    literals = blank.join(f'"{piece}"' for piece in pieces)
    out = ",".join(f'{blank}"=r"({each})' for each in outputs)
    into = ",".join(f'{blank}"r"({each})' for each in inputs)
    text = f'asm volatile({literals}{blank}:{out}{blank}:{into}{blank}:{blank}"memory")'
    source = parse(f"void f() {{ {text}; }}".encode())
    start = source.original.index(b"asm")
    span = slice(start, start + len(text.encode()))
    template, operands, count, _ = asm_parts(source.uncommented[span], source.code[span])
    assert template == "".join(pieces).replace("\\n", "\n").replace('\\"', '"')
    assert operands == (*outputs, *inputs)
    assert count == len(outputs)


def test_index_of_nothing():
    assert index({}).functions == ()


def test_pieces_are_in_source_order():
    function = named(found_in(b'__device__ void k() { b(a()); asm("x;"); c(); asm("y;"); }'), "k")
    assert [each.start for each in function.calls] == sorted(each.start for each in function.calls)
    assert [asm.text for asm in function.asms if isinstance(asm, Asm)] == ["x;", "y;"]
