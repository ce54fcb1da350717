# SPDX-License-Identifier: Apache-2.0
"""Reading a kernel's signature: qualifiers, names, types, layouts, and what is refused, with its place."""

from __future__ import annotations

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.prototype import Scalar, Struct, spell
from autostamp.passes.cuda import c_types
from autostamp.passes.cuda.declarations import SourceText
from autostamp.passes.cuda.prototype import includes, parse_prototype


def read(text: str, kernel: str = "k", defines: dict[str, str] | None = None, headers: tuple[str, ...] = ()):
    before = [SourceText(f"h{number}.cuh", header) for number, header in enumerate(headers)]
    return parse_prototype([*before, SourceText("k.cu", text)], kernel, defines or {})


def types(text: str, **options) -> dict[str, str]:
    return {parameter.name: spell(parameter.type) for parameter in read(text, **options).parameters}


def refused(text: str, kernel: str = "k", **options):
    with pytest.raises(AutostampError) as caught:
        read(text, kernel, **options)
    return caught.value.diagnostic


def struct_of(text: str, **options) -> Struct:
    (parameter,) = read(text, **options).parameters
    assert isinstance(parameter.type, Struct)
    return parameter.type


def offsets(struct: Struct) -> dict[str, int]:
    return {field.name: field.offset for field in struct.fields}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("int n", {"n": "int"}),
        ("unsigned n", {"n": "unsigned int"}),
        ("long unsigned int long n", {"n": "unsigned long long"}),
        ("short int a, unsigned short b", {"a": "short", "b": "unsigned short"}),
        ("char a, signed char b, unsigned char c", {"a": "char", "b": "signed char", "c": "unsigned char"}),
        ("const float* __restrict__ a", {"a": "float const*"}),
        ("float const *const __restrict a", {"a": "float const*"}),
        ("float* const a", {"a": "float*"}),
        ("volatile int* flag", {"flag": "int volatile*"}),
        ("float a[], int b[4]", {"a": "float*", "b": "int*"}),
        ("float** pp", {"pp": "float**"}),
        ("const void* p", {"p": "void const*"}),
        ("size_t n, std::uint32_t m, ::std::int8_t b", {"n": "unsigned long", "m": "unsigned int", "b": "signed char"}),
        ("half a, __nv_bfloat16* b", {"a": "__half", "b": "__nv_bfloat16*"}),
        ("const cutlass::half_t* a", {"a": "cutlass::half_t const*"}),
        ("float4 v, const uint2* w, dim3 d", {"v": "float4", "w": "uint2 const*", "d": "dim3"}),
        ("bool flag = true", {"flag": "bool"}),
        ("[[maybe_unused]] int n", {"n": "int"}),
        ("int, float*", {"arg1": "int", "arg2": "float*"}),
        ("void", {}),
        ("", {}),
        ("int a /* , float b */, // int c\n int d", {"a": "int", "d": "int"}),
    ],
)
def test_parameters(declared, expected):
    assert types(f"__global__ void k({declared}) {{}}") == expected


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void __launch_bounds__(128, 1) k(int n) {}",
        "__launch_bounds__(128) __global__ void k(int n) {}",
        "static __global__ void k(int n);",
        '__global__ __cluster_dims__(2, 1, 1) void k(int n) { if (n) { n = ")"[0]; } }',
        "template __global__ void k<int>(float);\n__global__ void k(int n) {}",
        "#define KERNEL __global__ void\nKERNEL k(int n) {}",
        "#define NAMED(x) x\n__global__ void NAMED(other) k(int n) {}",
        "__global__ void k(int n) __attribute__((noinline));",
        "__global__ auto k(int n) -> void {}",
        "#if 0\n__global__ void k(float x) {}\n#else\n__global__ void k(int n) {}\n#endif",
        '// __global__ void k(float x)\nconst char* text = "__global__ void k(float x) {";\n__global__ void k(int n) {}',
        'const char* raw = R"(__global__ void k(float x) {})"; const int big = 1\'000;\n__global__ void k(int n) {}',
        "__global__ void k(int);\n__global__ void k(int n) {}",
        "void host() { struct Other { int a; }; }\n__global__ void k(int n) {}",
    ],
)
def test_the_kernel_is_found(text):
    assert types(text) == {"n": "int"}


@pytest.mark.parametrize(
    ("kernel", "scope"), [("a::b::k", ("a", "b")), ("b::k", ("a", "b")), ("::a::b::k", ("a", "b")), ("c::k", ("c",))]
)
def test_namespaces(kernel, scope):
    text = """
        namespace a::b { inline namespace v1 { namespace { __global__ void k(int n) {} } } }
        namespace c { __global__ void k(float x) {} }
    """
    assert read(text, kernel).scope == scope


def test_extern_c():
    assert read('extern "C" __global__ void k(int n) {}').is_c
    assert read('extern "C" {\n__global__ void k(int n) {}\n}').is_c
    assert not read('extern "C" void f();\n__global__ void k(int n) {}').is_c


def test_places_are_those_of_the_names():
    text = "\r\n__global__ void k(const float*\tin,\r\n    int count = 4) {}"
    prototype = read(text)
    first, second = prototype.parameters
    assert (prototype.place.line, prototype.place.column, prototype.place.width) == (2, 17, 1)
    assert (first.place.line, first.place.column, first.place.width) == (2, 32, 2)
    assert (second.place.line, second.place.column, second.place.width) == (3, 9, 5)
    assert second.place.source == "    int count = 4) {}"


@pytest.mark.parametrize(
    ("default", "value"), [("1.5f", "1.5f"), ("nullptr", "nullptr"), ("N * 2", "8"), ("ns::M", "3"), ("true", "true")]
)
def test_default_arguments(default, value):
    text = f"constexpr int N = 4; namespace ns {{ const int M = 3; }}\n__global__ void k(int n = {default}) {{}}"
    assert read(text).parameters[0].default == value


def test_aliases():
    text = """
        namespace ns { using index_t = int64_t; typedef const float* in_t, unused; }
        using ns::index_t;
        typedef ns::index_t count_t;
        __global__ void k(count_t n, const ns::index_t* at, ns::in_t in) {}
    """
    assert types(text.replace(", unused", "")) == {"n": "long", "at": "long const*", "in": "float const*"}


def test_an_alias_of_a_const_type_makes_the_pointee_const():
    assert types("using cf = const float;\n__global__ void k(cf* a) {}") == {"a": "float const*"}


def test_enumerations():
    text = """
        enum Mode { PLAIN, FAST = 5, FASTER };
        enum class Small : unsigned char { X = 1 << 3, Y };
        __global__ void k(Mode m, Small s) {}
    """
    mode, small = (parameter.type for parameter in read(text).parameters)
    assert mode == Scalar("::Mode", "i32", 4, (("PLAIN", 0), ("FAST", 5), ("FASTER", 6)))
    assert small == Scalar("::Small", "u8", 1, (("X", 8), ("Y", 9)))


def test_struct_layout():
    text = """
        #define STAGES 4
        constexpr int DIM = STAGES * 2;
        namespace ns {
        struct alignas(16) Inner { float x; float4 v; __half h[DIM]; };
        struct Params {
            const float* __restrict__ in;
            float *out, scale[3];
            int n = 4, m{3};
            bool flag;
            static constexpr int K = 7;
            struct Deep { char c; double d; };
            Deep deep[2];
            Inner inner;
            struct { int a; short b; } unnamed;
            alignas(32) char big;
            uint8_t bytes[K + sizeof(int)];
            __host__ __device__ Params() : n(4), m{2} {}
            __device__ int size() const { return n; }
            int also(int) const;
            void* p;
        };
        }
        __global__ void k(ns::Params p) {}
    """
    struct = struct_of(text)
    assert offsets(struct) == {
        "in": 0,
        "out": 8,
        "scale": 16,  # 3 floats
        "n": 28,
        "m": 32,
        "flag": 36,
        "deep": 40,  # a multiple of 8; each Deep is 1 + 7 + 8 bytes
        "inner": 80,  # 40 + 32 = 72, rounded up to 16; x at 0, v at 16, h at 32 with 16 bytes: 48 in all
        "unnamed": 128,  # 4 + 2 bytes and 2 behind them
        "big": 160,  # 136, rounded up to 32
        "bytes": 161,  # 7 + 4 of them
        "p": 176,  # 172, rounded up to 8
    }
    assert (struct.size, struct.alignment) == (192, 32)
    assert struct.spelling == "ns::Params"


@pytest.mark.parametrize(
    "declared",
    [
        "struct P { float x; int n; };",
        "typedef struct { float x; int n; } P;",
        "typedef struct Tag { float x; int n; } P;",
        "struct Q { float x; int n; }; using P = Q;",
        "struct __align__(4) P { float x; int n; };",
        "class P { public: float x; int n; };",
        "struct P { float x; private: static int hidden; public: int n; };",
    ],
)
def test_ways_to_declare_a_struct(declared):
    struct = struct_of(f"{declared}\n__global__ void k(const __grid_constant__ P p) {{}}")
    assert (offsets(struct), struct.size) == ({"x": 0, "n": 4}, 8)


def test_a_struct_that_points_to_itself():
    struct = struct_of("struct Node { int n; Node* next; };\n__global__ void k(Node p) {}")
    assert (offsets(struct), struct.size) == ({"n": 0, "next": 8}, 16)


def test_the_innermost_declaration_counts():
    text = """
        struct P { int a; };
        namespace ns { struct P { double a, b; }; __global__ void k(P p) {} }
        __global__ void other(P p) {}
    """
    assert struct_of(text, kernel="ns::k").size == 16
    assert struct_of(text, kernel="other").size == 4


@pytest.mark.parametrize(
    ("name", "size", "alignment"),
    # CUDA C++ Programming Guide, alignment requirements of the built-in vector types.
    [
        ("char2", 2, 2),
        ("char3", 3, 1),
        ("uchar4", 4, 4),
        ("short4", 8, 8),
        ("float3", 12, 4),
        ("float4", 16, 16),
        ("int2", 8, 8),
        ("uint4", 16, 16),
        ("longlong2", 16, 16),
        ("double1", 8, 8),
        ("double2", 16, 16),
        ("double3", 24, 8),
        ("dim3", 12, 4),
        ("half2", 4, 4),
    ],
)
def test_vector_types(name, size, alignment):
    assert (c_types.BUILTIN[name].size, c_types.BUILTIN[name].alignment) == (size, alignment)


def test_templates():
    text = (
        "template <typename T, int N = 4, class U = T>\n__global__ void k(T* a, const U* b, float (&&c)[N]) {}".replace(
            "(&&c)", "(c)"
        )
    )
    assert read(text, "k<float>").name == "k<float, 4, float>"
    assert types(text, kernel="k<half, 8, int>") == {"a": "__half*", "b": "int const*", "c": "float*"}
    finding = refused(text, "k")
    assert finding.code == "AS1023"
    assert "template <typename T, int N = 4, class U = T>" in finding.message
    assert refused(text, "k<float, 1, int, 2>").code == "AS1023"
    assert refused("__global__ void k(int n) {}", "k<float>").code == "AS1023"
    assert refused("template <class... T> __global__ void k(T... all) {}", "k<int>").code == "AS1023"


def test_a_template_with_a_length_in_a_struct_is_evaluated():
    text = "struct P { int a[4]; };\ntemplate <class T> __global__ void k(T p, int n = sizeof(T)) {}"
    prototype = read(text, "k<P>")
    assert [spell(parameter.type) for parameter in prototype.parameters] == ["::P", "int"]
    assert prototype.parameters[1].default == "16"


@pytest.mark.parametrize(
    ("text", "defines", "expected"),
    [
        ("#ifdef WIDE\nusing T = double;\n#else\nusing T = float;\n#endif", {"WIDE": "1"}, "double"),
        ("#ifndef WIDE\nusing T = float;\n#else\nusing T = double;\n#endif", {"WIDE": "1"}, "double"),
        ("#if defined(WIDE)\nusing T = double;\n#elif 1\nusing T = float;\n#endif", {"WIDE": ""}, "double"),
        ("#define ON 0\n#if ON\nusing T = double;\n#else\nusing T = float;\n#endif", {}, "float"),
        ("#define T float", {}, "float"),
        ("#define T U\n#define U \\\n  float", {}, "float"),
        ("#define T float", {"T": "double"}, "double"),
        ("#ifdef __CUDACC__\nusing T = float;\n#endif", {}, "float"),
    ],
)
def test_macros(text, defines, expected):
    assert types(f"{text}\n__global__ void k(T x) {{}}", defines=defines) == {"x": expected}


def test_headers_come_before_the_file():
    header = "#define STAGES 3\nstruct P { int a[STAGES]; };"
    assert struct_of("__global__ void k(P p) {}", headers=(header,)).size == 12


def test_includes():
    text = '#include "a.h"\n # include <b/c.h>\n// #include "no.h"\n#if 0\n#include "dead.h"\n#endif\n'
    assert [(each.name, each.is_quoted) for each in includes(text, {})] == [("a.h", True), ("b/c.h", False)]


@pytest.mark.parametrize(
    ("declared", "code", "column"),
    [
        ("int& n", "AS1024", 19),
        ("float x, const CUtensorMap* m", "AS1024", 28),
        ("float x, const CUtensorMap& m", "AS1024", 28),
        ("cudaTextureObject_t t", "AS1024", 19),
        ("std::array<float, 4> a", "AS1024", 19),
        ("void (*f)(int)", "AS1024", 19),
        ("int a, foo_t b", "AS1026", 26),
        ("const ns::foo_t* b", "AS1026", 19),
        ("PARAM(float) x", "AS1022", 19),
    ],
)
def test_what_cannot_be_given_is_refused_at_its_place(declared, code, column):
    finding = refused(f"__global__ void k({declared}) {{}}")
    assert (finding.code, finding.position.line, finding.position.column) == (code, 1, column)
    assert finding.position.path == "k.cu"


@pytest.mark.parametrize(
    ("declared", "code", "word"),
    [
        ("struct B {}; struct P : B { int a; };", "AS1025", "base"),
        ("struct P { virtual void f(); int a; };", "AS1025", "virtual"),
        ("struct P { int a : 3; };", "AS1025", "bit-field"),
        ("struct P { union { int a; float b; }; };", "AS1025", "union"),
        ("union P { int a; };", "AS1025", "union"),
        ("struct P { private: int a; };", "AS1025", "public"),
        ("class P { int a; };", "AS1025", "public"),
        ("struct __attribute__((packed)) P { int a; };", "AS1025", "packed"),
        ("template <class T> struct P { T a; };", "AS1024", "template"),
        ("struct P { int a[WHAT]; };", "AS1027", "WHAT"),
        ("struct P { int a[1 / 0]; };", "AS1027", "1 / 0"),
        ("struct P { int a; };\nstruct P { float b; };", "AS1021", "k.cu:2"),
    ],
)
def test_structs_that_are_refused(declared, code, word):
    finding = refused(f"{declared}\n__global__ void k(P p) {{}}")
    assert finding.code == code
    assert word in finding.message
    assert finding.position.source == "__global__ void k(P p) {}"


def test_no_such_kernel():
    finding = refused("__global__ void ring(int n) {}\nnamespace ns { __global__ void twice(int n) {} }", "rign")
    assert finding.code == "AS1020"
    assert finding.message == "no kernel rign in k.cu: it has ring, ns::twice; did you mean ring?"
    assert "no kernel at all" in refused("int x;", "ring").message


def test_several_kernels_of_one_name():
    overloads = refused("__global__ void k(int n) {}\n__global__ void k(float n) {}")
    assert overloads.code == "AS1021"
    assert "k.cu:1" in overloads.message
    assert "k.cu:2" in overloads.message
    text = "namespace a { __global__ void k(int n) {} }\nnamespace b { __global__ void k(int n) {} }"
    assert refused(text).code == "AS1021"
    assert read(text, "b::k").scope == ("b",)
    assert read(f"{text}\n__global__ void k(int n) {{}}").scope == ()
