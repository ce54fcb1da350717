# SPDX-License-Identifier: Apache-2.0
"""What holds of the masked copy and the views of any text: lengths, line ends, offsets, and that no call gets lost."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_sitter import Query, QueryCursor

from autostamp.passes.cuda.macros import learn
from autostamp.passes.cuda.source import LANGUAGE, Source, parse
from autostamp.passes.cuda.views import views

CALLS = Query(LANGUAGE, "(call_expression) @call")
# Pieces of C++, whole and broken.
WRITTEN = (
    '/* c */ ¦ /* ¦ */ ¦ // c ¦ // c \\ ¦ "s" ¦ " ¦ \'c\' ¦ \' ¦ R"( ¦ )" ¦ R"x(a)x" ¦ 1\'000 ¦ \\ ¦ \\\n ¦ '
    "#define X ¦ #define F(a, b...) ¦ #define F( ¦ #if A ¦ #else ¦ #elif B ¦ #endif ¦ #pragma unroll ¦ # ¦ __device__ ¦ "
    'X ¦ F( ¦ ( ¦ ) ¦ { ¦ } ¦ [ ¦ ] ¦ < ¦ > ¦ ; ¦ : ¦ , ¦ = ¦ = {} ¦ = {1} ¦ ... ¦ -> ¦ :: ¦ >= ¦ extern "C" ¦ é ¦ '
    "typename ¦ typename T::X{} ¦ decltype(a) ¦ decltype( ¦ using typename ¦ template class ¦ .template f( ¦ enum : int { ¦ "
    'void f( ¦ void f() { ¦ asm( ¦ asm("a" X "b" :: "r"(x) "r"(y)); ¦ CHECK(a) ¦ CHECK ¦ MY_STATIC_ASSERT(a == 1); ¦ '
    "__launch_bounds__( ¦ alignas(8) ¦ operator()( ¦ typeid(\n ¦ typeid( double\n) ¦ unsigned(x) ¦ else ¦ for (;;) ¦ "
    "{% if %} ¦ {{ a\nb }} ¦ a.wait(1); ¦ delete; ¦ = delete; ¦ : 3, ¦ T* = nullptr ¦ \0 ¦ \x0c ¦ \n ¦ \r\n ¦ \n   ¦ \t"
)
PIECES = WRITTEN.split(" ¦ ")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).flatmap(
    lambda pieces: st.sampled_from(("", " ", "\n")).map(lambda between: between.join(pieces).encode())
)


def line_ends(data: bytes) -> list[int]:
    return [offset for offset, byte in enumerate(data) if byte == 0x0A]


@settings(max_examples=300, deadline=None)
@given(st.one_of(TEXTS, st.binary(max_size=200)))
@example(b"typeid(\n)")
@example(b"{{\n}}{%")
@example(b"\xef\xbb\xbf")
@example(b"CHECK(a)\n#")
def test_offsets_and_line_ends_stay(data):
    source = parse(data)
    for view in (source.masked, source.code, source.uncommented):
        assert len(view) == len(data)
        assert line_ends(view) == line_ends(data)
    assert source.tree.root_node.end_byte <= len(data)
    for before, after in zip(data, source.code, strict=True):
        assert after in (before, 0x20)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_what_is_blanked_is_remembered(data):
    source = parse(data)
    for spans in (source.blanked, source.erased):
        for start, end, text in spans:
            assert text.encode("utf-8", "surrogateescape") == data[start:end]
        assert list(spans) == sorted(spans)
    for start, end, _ in source.blanked:
        assert not source.masked[start:end].strip()
    ends = [end for _, end, _ in source.blanked]
    assert all(end <= start for end, (start, _, _) in zip(ends, source.blanked[1:], strict=False))


@settings(max_examples=150, deadline=None)
@given(TEXTS)
@example(b"CHECK(a)\n#pragma unroll")
def test_preprocessor_lines_lose_comments_only(data):
    data = data.replace(b"...", b"").replace(b"\xc3\xa9", b"").replace(b"\0", b"")
    source = parse(data)
    for directive in views(data).directives:
        line = slice(directive.start, directive.end)
        if directive.keyword == b"pragma":
            # A macro call before it that stands as a statement gets its `;` at the first place behind that is free.
            assert source.masked[line].strip(b" \n\r\\") in (b"", b";")
        else:
            assert source.masked[line] == source.uncommented[line] or not source.masked[line].strip()


PLAIN = st.sampled_from(["a", "f(b);", "1'000", "x / y", "#define Q 3", "R", "case", "{", "}", "L"])
COMMENTS = st.sampled_from(["/* a \" ' // */", "/* * / */", "/**/", "/* a\n b */"])
LITERALS = st.sampled_from(
    [
        '"a"',
        '"// a"',
        '"/* a"',
        '"\\""',
        "'\\''",
        "'\"'",
        "'a'",
        'R"(a " \\)"',
        'R"q()" // )q"',
        'L"a"',
        "u8'a'",
        '"\\\\"',
    ]
)
LINE_COMMENTS = st.sampled_from(["// a", "// \" ' /*", "//", "// a \\\n still"])


def blank(text: str) -> str:
    """Spaces, but for line ends and the backslash that joins lines in a comment."""
    kept = text.replace("\\\n", "\1\n")
    return "".join("\\" if each == "\1" else each if each == "\n" else " " for each in kept)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("pclz"), PLAIN, COMMENTS, LITERALS, LINE_COMMENTS), max_size=12))
def test_comments_and_literals_are_told_apart(tokens):
    text = code = uncommented = ""
    for kind, plain, comment, literal, line_comment in tokens:
        token = {"p": plain, "c": comment, "l": literal, "z": line_comment}[kind]
        text += token + "\n"
        code += (token if kind == "p" else blank(token)) + "\n"
        uncommented += (token if kind in "pl" else blank(token)) + "\n"
    view = views(text.encode())
    assert view.code.decode() == code
    assert view.uncommented.decode() == uncommented


DEFINES = (
    b"#define X_D __device__ inline\n#define X_G static __global__\n#define AL(n) __align__(n)\n#define CHECK_IT g(0);\n"
    b"#define SW(a, T, ...) { __VA_ARGS__ }\n#define ELIF(x) else if (x) {}\n"
)
HEADS = st.sampled_from(
    [
        ("X_D void f(int a) {", "}"),
        ("template <class T = void*>\nX_G void __launch_bounds__(128, 1)\nf(T t = {}, U = {1}) {", "}"),
        ("struct __align__(16) S : B { using typename B::X; X_D static X f(X* = nullptr) {", "} };"),
        ('namespace n { struct S { enum : int { A }; MY_STATIC_ASSERT(A == 8, ""); X_D void operator()() {', "}\n}; }"),
        ("#if A\nX_D void f(int a)\n#else\nX_D void f()\n#endif\n{", "}"),
    ]
)
STATEMENTS = st.sampled_from(
    [
        "{}",
        "if (a) {}",
        "CUTE_UNROLL\n  for (int i = 0; i < 4; ++i) { {} }",
        "CHECK(a)\n  {}",
        "CHECK_IT\n  {}",
        "CHECK_IT {}",
        "g(typename T::X{{}}, decltype(a){{}}); {}",
        "auto l = [&] __device__ (int b) { {} };",
        "if (a) g();\n#ifdef A\n else {}\n#endif\n",
        "#ifdef A\n  {}\n#else\n  {}\n#endif\n",
        'asm volatile("a" L2(128) "b" :: "r"(x) "r"(y)); {}',
        "SW(a, T, g<T>(1, 2); {} );",
        "if (a) {} ELIF(b) else {}",
        "while (a >= 3) { {} } // b.wait(0);",
        's = "b.wait(0);"; {}',
        "operator()(x); {}",
        "x |= (unsigned(y) << 3); {}",
        "reinterpret_cast<float(&)[2]>(x); {}",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(HEADS, st.lists(STATEMENTS, max_size=6)), min_size=1, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_call_is_found_where_it_stands(functions, line_end):
    text, count = DEFINES.decode(), 0
    for (head, tail), statements in functions:
        text += head + "\n"
        for statement in statements:
            pieces = statement.replace("{{}}", "\1").replace("{}", "\2").replace("\1", "{}").split("\2")
            for piece in pieces[:-1]:
                count += 1
                text += f"{piece}b.wait({count});"
            text += pieces[-1] + "\n"
        text += tail + "\n"
    data = text.replace("\n", line_end).encode()
    source = parse(data)
    found = [name for name in calls(source) if name.startswith("b.wait(")]
    assert found == [f"b.wait({number + 1})" for number in range(count)]
    assert source.error_count == 0


def calls(source: Source) -> list[str]:
    nodes = [node for each in QueryCursor(CALLS).captures(source.tree.root_node).values() for node in each]
    return [source.text(node) for node in sorted(nodes, key=lambda node: node.start_byte)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["__device__", "inline", "A", "B", "C", "D(1)", "x", '_Pragma("a")']), max_size=4))
def test_learning_is_the_same_in_any_order(body):
    lines = [f"#define A {' '.join(body)}\n", "#define B A __global__\n", "#define C\n", "#define D(n) alignas(n)\n"]
    one = learn(line.encode() for line in lines)
    other = learn(line.encode() for line in reversed(lines))
    assert one == other
    is_plain = not {"x", "A", "B"} & set(body)
    assert ("A" in one.qualifiers or "A" in one.empties) == is_plain
    assert ("B" in one.globals) == is_plain
