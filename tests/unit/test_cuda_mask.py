# SPDX-License-Identifier: Apache-2.0
"""Masking and parsing CUDA C++: each rule on a text that the grammar trips over, and what is remembered of the original.

In what a rule must make of a text, `·` stands for a blank that was not there before.
"""

from __future__ import annotations

import pytest
from tree_sitter import Node, Parser, Query, QueryCursor

from autostamp.passes.cuda.macros import BUILTIN, definitions, learn
from autostamp.passes.cuda.source import LANGUAGE, Source, parse
from autostamp.passes.cuda.views import closing, conditionals, views
from tests.corpus import cuda_parse

# Rule, text, masked copy. Every text has errors as it is and none masked.
RULES = [
    ("qualifier", "#define XD inline __device__\nXD void f() {}", "#define XD inline __device__\n·· void f() {}"),
    (
        "learnt through another",
        "#define A __host__\n#define B A\nB int f();",
        "#define A __host__\n#define B A\n· int f();",
    ),
    ("learnt from a later line", "XD void f() {}\n#define XD __device__\n", "·· void f() {}\n#define XD __device__\n"),
    ("empty in one branch", "#if C\n#define Q __global__\n#else\n#define Q\n#endif\nQ void f() {}", "Q void|· void"),
    ("empty", "#define API\nAPI void f() {}", "API void|··· void"),
    ("standard attribute", "#define ND [[nodiscard]] inline\nND int f() { return 1; }", "ND int|·· int"),
    ("built in", "CUTLASS_DEVICE void f() {}", "·············· void f() {}"),
    ("before a loop", "void f() { CUTE_UNROLL\n for (;;) g(); }", "void f() { ···········\n for (;;) g(); }"),
    ("_Pragma", 'void f() { _Pragma("unroll") for (;;) g(); }', "void f() { ················· for (;;) g(); }"),
    ("attribute call", "struct __align__(8 * (1 + 1)) S { int x; };", "struct ······················ S { int x; };"),
    ("learnt call", "#define AL(n) alignas(n) static\nAL(16) float x[4];", "AL(16) float|······ float"),
    (
        "lambda",
        "void f() { g([] __host__ __device__ (int a) {}); }",
        "void f() { g([] ··················· (int a) {}); }",
    ),
    ("typename, argument", "void f() { g(typename T::X{}); }", "void f() { g(········ T::X{}); }"),
    ("typename, return", "auto f() { return typename T::X{1}; }", "auto f() { return ········ T::X{1}; }"),
    ("typename, nested", "void f() { g(a, typename T::template X<A<1>, 2>::Y{b}); }", "typename|········"),
    ("using typename", "struct S : B { using typename B::X; };", "struct S : B { using ········ B::X; };"),
    ("several in a using", "struct S { using B::x, C<T>::y; };", "struct S { using B::x·········; };"),
    ("decltype", "auto x = decltype(f(a, b)){};", "auto x = decltyp_·········{};"),
    ("decltype in another", "auto x = decltype(f(decltype(a){})){};", "auto x = decltyp_··················{};"),
    ("braced defaults", "void f(T t = {}, U u = {1, g(2)}) {}", "void f(T t ····, U u ···········) {}"),
    ("braced, unnamed", "struct S { S(A a, B = {}) : a(a) {} };", "struct S { S(A a, B ····) : a(a) {} };"),
    ("null, unnamed", "void f(T* = nullptr) {}", "void f(T* ·········) {}"),
    ("pointer default", "template <class T = void*> void f() {}", "template <class T = void·> void f() {}"),
    ("function default", "template <class F = R (*)(R)> void f() {}", "template <class F = R ······> void f() {}"),
    ("unnamed enum", "struct S { enum : int { A }; };", "struct S { enum ······{ A }; };"),
    ("later bit-field", "struct S { unsigned a : 14, : 2; };", "struct S { unsigned a : 14·····; };"),
    ("first bit-field", "struct S { uint8_t : 1, b : 3; };", "struct S { uint8_t ···· b : 3; };"),
    ("instantiation", "template class S<float>;", "········ class S<float>;"),
    ("deleted friend", "struct S { template <class T> friend void f(T) = delete; };", "= delete;|········;"),
    ("template without <>", "void f() { a.template g(x); }", "void f() { a.········ g(x); }"),
    ("call operator", "void f() { operator()(x); }", "void f() { operator__(x); }"),
    ("typeid", "bool f() { return typeid(T) == typeid(double); }", "typeid(double)|typeid(T·····)"),
    ("unsigned", "void f() { x |= (unsigned(y) << 3); }", "void f() { x |= (_nsigned(y) << 3); }"),
    (
        "static assertion",
        "struct S { MY_STATIC_ASSERT(a == 8, b); int c; };",
        "MY_STATIC_ASSERT(a == 8, b)|···························",
    ),
    ("more parameters", "#define MORE , int b\nvoid f(int a MORE) {}", "MORE)|····)"),
    (
        "else branch",
        "#define ELIF(x) else if (a == x) {}\nvoid f() { if (a) {} ELIF(3) else {} }",
        "ELIF(3) e|······· e",
    ),
    ("namespace", "#define NS_BEGIN namespace n {\n#define NS_END }\nNS_BEGIN\nint a;\nNS_END\n", None),
    ("named rest", "#define P(a, rest...) printf(a, ##rest)\n", "rest...)|····...)"),
    ("pragma", "void f() {\n if (a)\n#pragma unroll\n  for (;;) g();\n}", "#pragma unroll|··············"),
    ("macro without ;", "void f() { CHECK(a)\n  b.wait(x);\n}", "\n  b|\n; b"),
    ("macro before const", "void f() { CHECK(a)\n  const int b = 1;\n}", "\n  const|\n; const"),
    ("known macro without ;", "#define Do(x) g(x);\nvoid f() { Do(1) b.wait(x); }", "Do(1) b|Do(1);b"),
    ("name without ;", "void f() { CHECK_WARP\n  for (;;) g(); }", "\n  for|\n; for"),
    ("line after a macro", "void f() {\nCHECK(a)\n #undef CHECK\n g();\n}", "{\nCHECK(a)|{\n········"),
    ("no room for ;", "#define DEF(x) void x() {}\nDEF(a)\nDEF(b)\nint c;", "\nDEF(a)\nDEF(b)\n|\n······\n······\n"),
    (
        "code as argument",
        "#define SW(a, T, ...) { __VA_ARGS__ }\nvoid f() { SW(a, T, g<T>(1, 2); h();); }",
        "SW(a, T,|·······{",
    ),
    (
        "code after a call",
        "#define SW(a, T, ...) __VA_ARGS__\nvoid f() { SW(h(a, 1), T, g(1););}",
        "SW(h(a, 1), T, g(1););|·············{ g(1);};",
    ),
    (
        "two split lists",
        "#if A\n__global__ void k(\n#else\nvoid k(\n#endif\nint a,\n#if A\nint b,\n#else\nint c,\n#endif\nint d) {}",
        None,
    ),
    (
        "types as arguments",
        "#define INST(a, b) template f<a, b>();\nINST(float, unsigned int);",
        "float, unsigned int);|_loat, _nsigned ···);",
    ),
    ("operator as argument", "#define OP(o) bool operator o(S, S);\nOP(<<);", "(<<)|(_·)"),
    ("type by a macro", "#define CTX(a, b) C<a, b>\nvoid f() { CTX(1, x) ctx; }", "(1, x) ctx|······ ctx"),
    ("glued strings", 'void f() { printf("%7" PRIu32 " ", x); }', 'void f() { printf("%7" ······ " ", x); }'),
    ("glued asm", 'void f() { asm("a" L2(128) "b" :: "r"(x)); }', 'void f() { asm("a" ······· "b" :: "r"(x)); }'),
    ("comma in asm", 'void f() { asm("a" :: "r"(x) "h"(y)); }', 'void f() { asm("a" :: "r"(x),"h"(y)); }'),
    ("comparison", "using X = C<A::k >= 80 && B, D<1>>;", "using X = C<A::k == 80 && B, D<1>>;"),
    ("else in a branch", "void f() {\n if (a) g();\n#ifdef B\n else h(9);\n#endif\n}", None),
    ("branch in a construct", "void f() {\n#if A\n if (a) {\n#endif\n  g();\n#if A\n }\n#endif\n}", None),
    ("one of two branches", "#if A\nvoid f(int a)\n#else\nvoid f()\n#endif\n{ g(); }", None),
    ("Jinja", "void f() {\n{% if x %}\n g({{ y }});\n{%- endif %}\n}", "{{ y }}|_______"),
]
# Texts without errors, and some with, in which nothing must change.
SOUND = [
    "int a = {1}, b = {2};",
    "decltype(auto) f() { return 1; }",
    "template <typename T, typename U = int> void f(typename T::X x) {}",
    "template <class T>\nMY_REQUIRES(T)\n  void f() {}",
    "enum E { FIRST_ONE\n};",
    "enum E : int { AA };",
    "void f() { if (a == MAX_N\n  ) g(); }",
    "void f() { x = a ? FOO(a)\n  : BAR(b)\n  ; a.CHECK(b)\n  ; }",
    "void f() { CHECK(a)\n  .with(b); CHECK(a)\n  << c; CHECK(a)\n  { d(); } }",
    "struct S { int a : 3; S() = default; S(int) : a(1) {} };",
    "void f() { g(a ? 1 : 2, b >= c); switch (a) { case 1: 2; } }",
    'void f() { CHECK(a)\n"s t" b; }',
    "struct MY_TYPE { int a;\n  MY_TYPE(int b)\n    noexcept : a(b) {} };",
    "void f() { unsigned(*p)(int) = q; using A = B<C>; }",
    "#if A\nvoid f() { g(); }\n#else\nvoid f() { h(); }\n#endif\n",
]
# By hand where a text changes in more than one place.
BY_HAND = {
    "namespace": "#define NS_BEGIN namespace n {\n#define NS_END }\n········\nint a;\n······\n",
    "else in a branch": "void f() {\n if (a) g();\n········\n else h(9);\n······\n}",
    "branch in a construct": "void f() {\n·····\n if (a) {\n······\n  g();\n·····\n }\n······\n}",
    "one of two branches": "·····\nvoid f(int a)\n·····\n········\n······\n{ g(); }",
    "two split lists": "·····\n__global__ void k(\n·····\n·······\n······\nint a,\n"
    "·····\nint b,\n·····\n······\n······\nint d) {}",
    "code as argument": "#define SW(a, T, ...) { __VA_ARGS__ }\nvoid f() { ·······{ g<T>(1, 2); h();}; }",
    "Jinja": "void f() {\n··········\n g(_______);\n············\n}",
}
SILENT = {"else in a branch"}  # read as something else, without an error


def expected(name: str, text: str, after: str | None) -> str:
    """The masked copy: written out, or as `old|new`."""
    written = BY_HAND.get(name) or after
    assert written is not None
    if "|" in written and written.count("|") == 1 and len(written) != len(text):
        old, new = written.split("|")
        assert text.count(old) == 1, "ambiguous"
        written = text.replace(old, new)
    return written.replace("·", " ")


def nodes(source: Source, pattern: str) -> list[Node]:
    captures = QueryCursor(Query(LANGUAGE, f"{pattern} @found")).captures(source.tree.root_node)
    return sorted(captures.get("found", []), key=lambda node: node.start_byte)


@pytest.mark.parametrize("text", SOUND)
def test_what_must_stay(text):
    assert parse(text.encode()).masked.decode() == text


@pytest.mark.parametrize(("name", "text", "after"), RULES, ids=[rule[0] for rule in RULES])
def test_rule(name, text, after):
    source = parse(text.encode())
    assert source.masked.decode() == expected(name, text, after)
    assert source.error_count == 0
    assert Parser(LANGUAGE).parse(text.encode()).root_node.has_error or name in SILENT


# Text, and the code view with `·` for what is taken out: literals with their quotes and prefixes, comments, nothing else.
CODE = [
    ("a // b\nc", "a ····\nc"),
    ("a // b \\\n wait();\nc", "a ·····\\\n········\nc"),
    ("a /* b\n * c */ d", "a ····\n······· d"),
    ("a /* never closed", "a ···············"),
    ('f("x // y", "\\"z")', "f(········, ·····)"),
    ('f("a\\\nb", c)', "f(··\\\n··, c)"),
    ('f(L"a", u8"b", R"(c)")', "f(····, ·····, ······)"),
    ('f(R"x(a)" /* " b)x", c)', "f(·················, c)"),
    ('f(u8R"(\n#define X\n)", c)', "f(·····\n·········\n··, c)"),
    ('FOOR"(a)" b', "FOOR····· b"),
    ("f('a', '\\'', '\"', L'x', u8'y')", "f(···, ····, ···, ····, ·····)"),
    ("1'000'000 + 0xFF'FFu; 'a'", "1'000'000 + 0xFF'FFu; ···"),
    ("case'a': return'b';", "case···: return···;"),
    ("#error don't\n#if 0\nit's\n#endif\n", "#error don't\n#if 0\nit's\n#endif\n"),
    ("a / b /c; d = e/f", "a / b /c; d = e/f"),
    ('#define A /* b \\\n c */ d("e") \\\n f', "#define A ·····\\\n····· d(···) \\\n f"),
]


@pytest.mark.parametrize(("text", "code"), CODE, ids=[repr(text) for text, _ in CODE])
def test_code_view(text, code):
    source = parse(text.encode())
    assert source.code.decode() == code.replace("·", " ")
    assert views(text.encode()).code == source.code


def test_uncommented_keeps_literals_and_search_drops_preprocessor_lines():
    view = views(b'#define A(x) f("s", \\\n x) // c\ng("t"); // d\n  #  pragma once\n')
    assert view.uncommented == b'#define A(x) f("s", \\\n x)     \ng("t");     \n  #  pragma once\n'
    assert view.search == b" " * 21 + b"\n" + b" " * 8 + b"\ng(   );     \n" + b" " * 16 + b"\n"
    assert [(each.keyword, each.start, each.end) for each in view.directives] == [
        (b"define", 0, 30),
        (b"pragma", 44, 60),
    ]
    assert view.strings == ((15, 18), (33, 36))


def test_conditionals_come_inner_first():
    view = views(b"#if A\n#ifdef B\n#else\n#endif\n#elif C\n#endif\n#endif\n")
    found = [[line.keyword.decode() for line in group] for group in conditionals(view.directives)]
    assert found == [["ifdef", "else", "endif"], ["if", "elif", "endif"]]


def test_closing_bracket():
    assert closing(b"f(a(b)[c) ]) + (d", 1) == 9
    assert closing(b"f(a(b)[c ]) + (d", 15) == -1
    assert closing(b"f(a)", 0) == -1


def test_macros_are_learnt_until_nothing_more_is():
    macros = learn(
        [
            b"#define A B C\n#define B __device__\n#define V 3\n#define W static V\n",
            b"#if X\n#define C __attribute__((always_inline))\n#else\n#  define C inline \\\n  static // c\n#endif\n",
            b"#define ALIGN(n) __align__(n)\n#define G(n) __global__ ALIGN(n)\n#define F(x) x\n#define S(x) g(x);\n",
        ]
    )
    assert {"A", "B", "C"} <= macros.qualifiers
    assert not {"V", "W", "F", "S", "ALIGN"} & macros.qualifiers
    assert macros.calls - BUILTIN.calls == {"ALIGN", "G"}
    assert macros.globals - BUILTIN.globals == {"G"}
    assert macros.devices - BUILTIN.devices == {"A", "B"}
    assert macros.inlines - BUILTIN.inlines == {"A", "C"}
    assert macros.statics - BUILTIN.statics == {"A", "C"}
    assert macros.statements == {"S"}
    assert macros.leading == {"F": 0, "S": 0}
    assert BUILTIN.qualifiers <= macros.qualifiers


@pytest.mark.parametrize(
    "text",
    [
        "#define X __device__\n#define X f()\n",  # two meanings
        "#define X __device__\n#define X(a) __device__\n",  # two kinds
        '#define X "text"\n',
        "#define X __launch_bounds__\n",
        "#define inline __device__\n",
    ],
)
def test_names_that_are_no_qualifiers(text):
    macros = learn([text.encode()])
    assert not {"X", "inline"} & (macros.qualifiers | macros.calls | macros.empties)


def test_a_project_teaches_what_a_file_uses():
    macros = learn([b"#define LAUNCH(n) __global__ __launch_bounds__(n)\n"])
    text = b"LAUNCH(128) void k() {}"
    assert parse(text, macros).masked == b"            void k() {}"
    assert parse(text, macros).blanked == ((0, 11, "LAUNCH(128)"),)
    assert parse(text).blanked == ()


def test_macro_bodies_are_kept_and_can_be_parsed_alone():
    text = b"#define N 4\n#define W(b, ...) /* c */ wait(b, \\\n  __VA_ARGS__); // d\n  #define X sync()\nW(b, 1);\n"
    source = parse(text)
    first, second = source.macro_bodies
    assert (first.name, first.parameters, second.name, second.parameters) == ("W", ("b", "..."), "X", None)
    assert text[first.start : first.end] == b"wait(b, \\\n  __VA_ARGS__);"
    assert first.text == b"wait(b,  \n  __VA_ARGS__);"
    assert text[second.start : second.end] == second.text == b"sync()"
    assert source.masked[first.start : first.end] == text[first.start : first.end]


def test_definitions_give_the_span_of_the_body():
    text = b"int a;\n# define F( \\\n x) \\\n  x + 1\n#define E\n"
    one, two = definitions(text)
    assert (one.name, one.parameters, one.body, text[one.start : one.end]) == ("F", ("x",), b"x + 1", b"x + 1")
    assert (two.name, two.parameters, two.body, two.start) == ("E", None, b"", two.end)


def test_nothing_inside_a_define_changes():
    text = b"#define XD __device__\n#define K(T) XD void T##f() { \\\n g(typename T::X{}, decltype(a){}); \\\n}\nXD int a;\n"
    assert parse(text).masked == text.replace(b"\nXD int", b"\n   int")


def test_erased_macro_calls_are_listed():
    source = parse(b"#define DEF(x) void x() {}\nDEF(a)\nDEF(b)\n#define MORE , int d\nint c(int e MORE);\n")
    assert source.erased == ((27, 33, "DEF(a)"), (34, 40, "DEF(b)"), (74, 78, "MORE"))
    assert source.error_count == 0


def test_a_branch_that_holds_statements_is_never_erased():
    text = b"void f() {\n#if A\n if (a) { b.wait(1);\n#else\n while (c) { d.wait(2);\n#endif\n }\n}\n"
    source = parse(text)
    calls = [source.text(node) for node in nodes(source, "(call_expression)")]
    assert calls == ["b.wait(1)", "d.wait(2)"]
    assert source.erased == ()


def test_a_macro_before_a_closing_brace_stays_a_call():
    source = parse(b"void f() {\nDISPATCH(a, b)\n}\n")
    assert [source.text(node) for node in nodes(source, "(call_expression)")] == ["DISPATCH(a, b)"]
    assert source.erased == ()


KERNELS = [
    ('#define X_GLOBAL extern "C" __global__\nX_GLOBAL void k() {}', {"X_GLOBAL", "__global__", "extern", '"C"'}),
    ("#define X_K static X_G\n#define X_G __global__\nX_K void __launch_bounds__(1) k() {}", {"__global__", "static"}),
    (
        "template <int N = 3> // __noinline__\n__device__ __forceinline__ int *k(int a) { return 0; }",
        {"__device__", "__forceinline__"},
    ),
    ('extern "C" CUTLASS_GLOBAL void k() {}', {"__global__", "extern", '"C"', "static"}),
    ('extern "C" {\nint a;\n__global__ void k() {}\n}', {"__global__", "extern", '"C"'}),
    ("struct S { int a; CUTLASS_DEVICE static S &k() { } };", {"__device__", "__forceinline__", "static"}),
    ("__global__ int a;\n#define D __device__\n#ifdef D\nvoid k() {}\n#endif", set()),
    ("#define KDEF(x) x void a() {}\nKDEF( __global__ )\nvoid k() {}", set()),
]


@pytest.mark.parametrize(("text", "words"), KERNELS, ids=[text[-40:] for text, _ in KERNELS])
def test_qualifiers_before_a_function(text, words):
    source = parse(text.encode())
    (function,) = nodes(source, "(function_definition)")
    known = {"__global__", "__device__", "__forceinline__", "__noinline__", "static", "extern", '"C"', "X_GLOBAL"}
    assert known & set(source.qualifiers_before(function).split()) == words


def test_qualifiers_before_a_declaration():
    source = parse(b"void a();\n__global__ void k(int);\n")
    texts = [source.qualifiers_before(node) for node in nodes(source, "(declaration)")]
    assert texts == ["void", "__global__ void"]


ODD = [
    b"\xef\xbb\xbf__global__ void k() { b.wait(1); }\r\n",
    b'// caf\xe9\r\n#define XD __device__ \\\r\n  inline\r\nXD void f() {\r\n s = "\xff";\r\n CHECK(a)\r\n b.wait(1);\r\n}',
    'void f() { größe.wait(1); /* ✓ */ s = "✓"; }'.encode(),
    b"void f() {\0 b.wait(1); }\x1a",
    b"void f() {\f\v b.wait(1); }",
]


@pytest.mark.parametrize("data", ODD, ids=["BOM", "Latin-1 and CRLF", "UTF-8", "NUL", "form feed"])
def test_any_encoding_keeps_its_bytes_and_offsets(data):
    source = parse(data)
    assert source.original == data
    assert len(source.masked) == len(source.code) == len(source.uncommented) == len(data)
    (call,) = [node for node in nodes(source, "(call_expression)") if source.text(node).endswith("wait(1)")]
    assert data[call.end_byte - 7 : call.end_byte] == b"wait(1)"
    assert source.text(call).encode("utf-8", "surrogateescape") == data[call.start_byte : call.end_byte]
    assert source.error_count == 0 or b"\x1a" in data


def test_text_of_a_node_is_the_original_not_the_copy():
    source = parse(b"void f() { g(typename T::X{}, decltype(a){}); }")
    (call,) = nodes(source, "(call_expression)")
    assert source.text(call) == "g(typename T::X{}, decltype(a){})"


def test_corpus_check_counts_and_limits(tmp_path, capsys):
    (tmp_path / "macros.h").write_text("#define XD __device__\n")
    (tmp_path / "plain.h").write_text("int a;\n")
    (tmp_path / "good.cu").write_text(
        'XD void f() { b.wait(1); // b.wait(2)\n asm("bar.sync 0;"); }\nvoid wait(int);\n'
    )
    assert cuda_parse.main([str(tmp_path), "--max-errors", "0", "--max-lost", "0"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    # files, with a sync call, error nodes raw (the unknown XD) and masked, bad files, calls, found, lost, asm, lost
    assert row[1:] == ["3", "1", "1", "0", "0", "1", "1", "0", "1", "0"]
    (tmp_path / "bad.cu").write_text("void f() { b.wait(1); ) }\n")
    assert cuda_parse.main([str(tmp_path), "--max-errors", "0"]) == 1
    assert cuda_parse.main([str(tmp_path), "--max-lost", "0"]) == 0
