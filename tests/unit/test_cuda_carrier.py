# SPDX-License-Identifier: Apache-2.0
"""Several files of CUDA C++ as one unit: carriers across files, numbers, what kernels reach, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import UnitFile
from autostamp.model.site import KernelDef
from autostamp.passes.cuda import instrument as module
from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument
from autostamp.passes.cuda.launches import is_repeatable, kernel_of, split
from autostamp.passes.cuda.reach import closure, declared
from autostamp.passes.stamped import key_of

MEET = (
    "__device__ int meet(int n) { __syncthreads(); for (int i = 0; i < n; ++i) n ^= i; __syncthreads(); return n; }\n"
)
KERNEL = "__global__ void work(int* out) { __syncthreads(); out[0] = 1; }\n"
LAUNCH = "void host(int* out) { work<<<1, 32>>>(out); }\n"


def stamp(
    files: dict[str, str], context: dict[str, str] | None = None, carrier: Carrier = Carrier.AUTO, **options: bool
) -> Project:
    return instrument(
        {Path(name): text.encode() for name, text in files.items()},
        {Path(name): text.encode() for name, text in (context or {}).items()},
        CudaOptions(carrier=carrier, **options),
    )


def text_of(project: Project, name: str) -> str:
    return project.stamped[Path(name)].text.decode()


def kernel_in(project: Project, name: str, at: int = 0) -> KernelDef:
    return project.stamped[Path(name)].file.kernels[at]


def skips_in(project: Project, name: str) -> list[tuple[int, str, str]]:
    return [(skip.span.line, skip.code, skip.reason) for skip in project.stamped[Path(name)].file.skips]


def test_a_launch_in_another_file_gets_the_argument() -> None:
    project = stamp({"work.cuh": KERNEL, "main.cu": '#include "work.cuh"\n' + LAUNCH})
    key = key_of(KERNEL.encode())
    assert kernel_in(project, "work.cuh").carrier == "param"
    assert kernel_in(project, "work.cuh").host == "host"
    assert f"work<<<1, 32>>>(out AUTOSTAMP_ARG({key},1,(0)));" in text_of(project, "main.cu")
    assert "work(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM" in text_of(project, "work.cuh")


def test_a_declaration_in_another_file_is_edited() -> None:
    declaration = "__global__ void work(int* out);\n"
    project = stamp({"work.h": declaration, "work.cu": '#include "work.h"\n' + KERNEL + LAUNCH})
    assert text_of(project, "work.h").splitlines()[2] == "__global__ void work(int* out AUTOSTAMP_PARAM);"


def test_a_header_that_is_only_read_and_names_the_kernel_forbids_the_parameter() -> None:
    project = stamp({"work.cu": KERNEL + LAUNCH}, {"api.h": "__global__ void work(int* out);\n"})
    kernel = kernel_in(project, "work.cu")
    assert (kernel.carrier, kernel.reason) == ("symbol", "a file that is not stamped names it")
    assert "AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out);" in text_of(project, "work.cu")


def test_the_symbol_can_be_asked_for() -> None:
    project = stamp({"work.cu": KERNEL + LAUNCH}, carrier=Carrier.SYMBOL)
    kernel = kernel_in(project, "work.cu")
    assert (kernel.carrier, kernel.reason) == ("symbol", "asked for")
    assert "AUTOSTAMP_PARAM" not in text_of(project, "work.cu")


def test_a_parameter_that_is_asked_for_and_cannot_be_is_refused() -> None:
    text = KERNEL + "void host(int* out) {\n  auto pointer = &work;\n  pointer<<<1, 32>>>(out);\n}\n"
    (finding,) = stamp({"work.cu": text}, carrier=Carrier.PARAM).findings
    assert finding.code == "AS1014"
    assert finding.message == "work cannot take its slot as a parameter: its address is taken (work.cu:3)"
    assert finding.position is not None
    assert (finding.position.line, finding.position.column) == (1, 17)
    assert stamp({"work.cu": KERNEL + LAUNCH}, carrier=Carrier.PARAM).findings == ()


def test_a_kernel_that_is_launched_nowhere_keeps_the_symbol() -> None:
    kernel = kernel_in(stamp({"work.cu": KERNEL}), "work.cu")
    assert (kernel.carrier, kernel.is_threaded) == ("symbol", False)
    assert kernel.reason == "it is launched nowhere in these files"


def test_device_code_that_launches_has_no_hook() -> None:
    text = KERNEL + "__global__ void parent(int* out) { work<<<1, 32>>>(out); }\n"
    project = stamp({"work.cu": text})
    assert kernel_in(project, "work.cu").reason == "device code launches it"
    assert "AUTOSTAMP_PREPARE" not in text_of(project, "work.cu")


def test_a_kernel_without_a_site_is_left_alone() -> None:
    project = stamp({"work.cu": KERNEL + "__global__ void idle(int* out) { out[0] = 3; }\n"})
    kernel = kernel_in(project, "work.cu", 1)
    assert (kernel.number, kernel.carrier, kernel.reason) == (2, "", "it reaches no site")
    assert text_of(project, "work.cu").count("AUTOSTAMP_BIND") == 1


@pytest.mark.parametrize(
    "kernel",
    [
        "template <class Op> __global__ void k(int* out) { Op op; out[0] = op(3); }\n",
        "template <class Op> __global__ void k(int* out) { out[0] = Op()(3); }\n",
        "template <class Op> __global__ void k(int* out) { out[0] = Op::run(3); }\n",
        "template <class Op> __global__ void k(Op op, int* out) { out[0] = op.run(3); }\n",
        "__global__ void k(int* out) { using Mine = Functor; Mine mine; out[0] = mine(3); }\n",
        "#define CALL(n) meet(n)\n__global__ void k(int* out) { out[0] = CALL(3); }\n",
        "#define ALIAS meet\n__global__ void k(int* out) { out[0] = ALIAS(3); }\n",
        "template <int (*F)(int)> __device__ int go() { return F(3); }\n__global__ void k(int* o) { o[0] = go<meet>(); }\n",
        "__global__ void k(int* out) { auto later = [&] { return meet(3); }; out[0] = later(); }\n",
    ],
)
def test_a_kernel_that_may_reach_a_site_binds(kernel: str) -> None:
    functor = "struct Functor {\n  __device__ int operator()(int n) const { return meet(n) + 1; }\n"
    functor += "  static __device__ int run(int n) { return meet(n) + 2; }\n};\n"
    project = stamp({"k.cu": MEET + functor + kernel})
    (found,) = project.stamped[Path("k.cu")].file.kernels
    assert found.carrier == "symbol"
    assert [number for _, number in found.reaches] == [1, 2]
    assert "AUTOSTAMP_INLINE __device__ int meet" in text_of(project, "k.cu")


def test_constructors_and_destructors_count_for_every_kernel() -> None:
    guard = "struct Guard { __device__ ~Guard() { __syncthreads(); __syncwarp(); } };\n"
    kernel = "template <class T> __global__ void k(int* out) { typename T::Held held; out[0] = 1; }\n"
    project = stamp({"k.cu": guard + kernel})
    assert kernel_in(project, "k.cu").carrier == "symbol"


def test_sites_that_no_kernel_reaches_are_listed() -> None:
    project = stamp({"meet.cu": MEET, "k.cu": KERNEL})
    assert skips_in(project, "meet.cu") == [(1, "AS2115", "no kernel of these files reaches it")] * 2
    assert not project.stamped[Path("meet.cu")].is_changed
    assert project.stamped[Path("k.cu")].is_changed


def test_what_headers_hold_is_stamped_for_kernels_of_files_that_include_them() -> None:
    project = stamp({"meet.cuh": MEET})
    assert skips_in(project, "meet.cuh") == []
    assert text_of(project, "meet.cuh").splitlines()[2].startswith("AUTOSTAMP_INLINE __device__ int meet")


def test_a_kernel_of_a_header_that_is_only_read_is_named() -> None:
    library = "template <class Op> __global__ void device_kernel(int* out) { Op op; op(out); }\n"
    own = "struct Op { __device__ void operator()(int* out) { __syncthreads(); out[0] = 1; __syncwarp(); } };\n"
    own += "void host(int* out) { device_kernel<Op><<<1, 32>>>(out); }\n"
    project = stamp({"op.cu": own}, {"lib.h": library})
    reason = "device_kernel of lib.h may reach it, a kernel that is not stamped"
    assert skips_in(project, "op.cu") == [(1, "AS2115", reason)] * 2
    unseen = "device_kernel may reach it, a kernel that is not stamped"
    assert skips_in(stamp({"op.cu": own + KERNEL}), "op.cu") == [(1, "AS2115", unseen)] * 2
    both = stamp({"op.cu": own, "lib.h": library})
    assert kernel_in(both, "lib.h").carrier == "param"
    assert len(both.stamped[Path("op.cu")].file.sites) == 2


def test_functions_of_headers_that_are_only_read_are_named() -> None:
    kernel = "__global__ void k(int* out) { __syncthreads(); out[0] = meet(3); }\n"
    project = stamp({"k.cu": kernel}, {"meet.cuh": MEET})
    assert project.outside == {Path("meet.cuh"): ("meet",)}
    assert stamp({"k.cu": kernel, "meet.cuh": MEET}).outside == {}


def test_linked_device_code_keeps_plain_functions_out_of_line() -> None:
    text = (
        MEET + "static " + MEET.replace("meet", "own") + "__global__ void k(int* out) { out[0] = meet(3) + own(4); }\n"
    )
    project = stamp({"k.cu": text}, without_calls_out_of_line=True)
    assert skips_in(project, "k.cu") == [(1, "AS2111", "with -rdc another file may call it")] * 2
    assert "AUTOSTAMP_INLINE static __device__ int own" in text_of(project, "k.cu")


def test_programs_side_by_side_may_have_kernels_of_one_name() -> None:
    other = KERNEL.replace("out[0] = 1", "out[0] = 2")
    project = stamp({"a/main.cu": KERNEL + LAUNCH, "b/main.cu": other + LAUNCH})
    for name in ("a/main.cu", "b/main.cu"):
        key = project.stamped[Path(name)].file.key
        assert kernel_in(project, name).carrier == "param"
        assert f"work<<<1, 32>>>(out AUTOSTAMP_ARG({key},1,(0)));" in text_of(project, name)
        assert "AUTOSTAMP_PREPARE" not in text_of(project, name)


@pytest.mark.parametrize(
    "extra",
    [
        {"both.cu": '#include "a.cu"\n#include "b.cu"\n'},  # then they are one program
        {"api.h": "__global__ void work(int* out);\n"},  # a declaration of which of the two?
        {"more.cuh": KERNEL},  # a header may be part of either
    ],
)
def test_kernels_of_one_name_in_one_program(extra: dict[str, str]) -> None:
    project = stamp({"a.cu": KERNEL + LAUNCH, "b.cu": KERNEL.replace("= 1", "= 2") + LAUNCH, **extra})
    kernel = kernel_in(project, "a.cu")
    reason = "another kernel has its name, and a launch does not say which it means"
    assert (kernel.carrier, kernel.reason) == ("symbol", reason)


@pytest.mark.parametrize(
    ("use", "is_stamped"),
    [
        ("__device__ int (*table)(int) = &meet;\n", False),
        ("__device__ int use() { int (*f)(int) = meet; return f(1); }\n", False),
        ("__device__ int use(int meet) { int a = meet; return a + meet; }\n", True),  # a variable of that name
        ("__device__ int use() { return Other::meet; }\n", True),  # a member of something else
        ("struct S { int meet; };\n__device__ int use(S s) { return s.meet; }\n", True),
        ("void host() { auto f = &meet; }\n", True),  # host code cannot call it
        (
            "template <int (*F)(int)> struct T {};\nusing U = T<meet>;\n",
            True,
        ),  # a template's argument is known in place
    ],
)
def test_functions_whose_address_is_taken(use: str, is_stamped: bool) -> None:
    project = stamp({"k.cu": MEET + use + "__global__ void k(int* out) { out[0] = meet(3); }\n"})
    expected = [] if is_stamped else [(1, "AS2111", "its address is taken")] * 2
    assert skips_in(project, "k.cu") == expected


def test_a_host_function_that_launches_is_no_caller() -> None:
    project = stamp({"k.cu": KERNEL + LAUNCH + 'int main() { m.def("host", &host); host(nullptr); }\n'})
    assert skips_in(project, "k.cu") == []
    assert "AUTOSTAMP_INLINE" not in text_of(project, "k.cu")


def test_an_uninlined_function_stops_only_what_it_calls_itself() -> None:
    queue = "struct Queue { __device__ int wait_all(int n) { __syncthreads(); n ^= 3; __syncwarp(); return n; } };\n"
    log = "struct Log { __device__ void wait_all(int n) {} };\n__noinline__ __device__ void say(Log log) { log.wait_all(3); }\n"
    kernel = "__global__ void k(int* out) { Queue queue; Log log; say(log); out[0] = queue.wait_all(3); }\n"
    assert skips_in(stamp({"k.cu": queue + log + kernel}), "k.cu") == []


def test_numbers_of_a_unit() -> None:
    files = {
        "a.cu": KERNEL,
        "b.cu": MEET + KERNEL.replace("work", "more") + KERNEL.replace("work", "third"),
        "c.cpp": "int x;\n",
    }
    project = stamp(files)
    keys = {name: key_of(text.encode()) for name, text in files.items()}
    # a.cu has 1 site and 1 kernel; b.cu has 4 sites (2 of meet, which no kernel reaches, keep their numbers) and 2 kernels.
    first, second = sorted([keys["a.cu"], keys["b.cu"]])
    events, slots = (2, 1) if first == keys["a.cu"] else (8, 2)
    assert project.unit.files == (UnitFile(first, 0, 0), UnitFile(second, events, slots))
    header = project.unit_header.decode()
    assert f"#define AUTOSTAMP_UNIT 0x{project.unit.signature:08x}u\n" in header
    assert "#define AUTOSTAMP_UNIT_SLOTS 3\n" in header
    assert f"#define AUTOSTAMP_EVENTS_{second} {events}\n" in header
    assert f"#define AUTOSTAMP_KERNELS_{second} {slots}\n" in header
    assert keys["c.cpp"] not in header


def test_other_stamps_in_the_same_files_make_another_unit() -> None:
    """Two builds of one file with other selections must not be decoded with each other's manifest."""
    text = KERNEL + "void host(int* out) { work<<<1, 1>>>(out); }\n"
    units = {
        stamp({"k.cu": text}).unit.signature,
        stamp({"elsewhere/k.cu": text}).unit.signature,
        stamp({"k.cu": text}, carrier=Carrier.SYMBOL).unit.signature,
        stamp({"k.cu": text + MEET}).unit.signature,
    }
    assert len(units) == 3  # the folder alone makes no other unit
    assert all(0 < signature < 1 << 32 for signature in units)


def test_files_of_equal_text_share_their_numbers() -> None:
    project = stamp({"a/k.cu": KERNEL, "b/k.cu": KERNEL})
    assert project.unit.files == (UnitFile(key_of(KERNEL.encode()), 0, 0),)
    assert "#define AUTOSTAMP_UNIT_SLOTS 1\n" in project.unit_header.decode()


def test_launch_hooks_are_counted() -> None:
    hooks = "void host(int* out) { auto p = work; p<<<1, 32>>>(out); work<<<1, 32>>>(out); idle<<<1, 1>>>(); }\n"
    project = stamp({"k.cu": KERNEL + "__global__ void idle() {}\n" + hooks})
    assert "#define AUTOSTAMP_UNIT_LAUNCHES 2\n" in project.unit_header.decode()


def test_too_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVENT_LIMIT", 3)
    assert stamp({"k.cu": KERNEL}).changed
    with pytest.raises(AutostampError, match="AS4004 too many stamps in one kernel trace: 4 events, at most 3"):
        stamp({"k.cu": KERNEL.replace("out[0] = 1;", "out[0] = 1; __syncthreads();")})


def test_a_name_of_the_authors_that_stamps_use() -> None:
    text = "// AUTOSTAMP_OFF is no name here\n#define AUTOSTAMP_ENTER 1\n" + KERNEL
    (finding,) = stamp({"k.cu": text}).findings
    assert finding.code == "AS1013"
    assert finding.position is not None
    assert (finding.position.line, finding.position.column, finding.position.width) == (2, 9, 15)
    assert stamp({"k.cu": "#ifdef AUTOSTAMP\n#endif\n" + KERNEL}).findings == ()


def test_line_names_and_the_place_of_the_header() -> None:
    options = CudaOptions(with_line_names=True, headers={Path("a/b/k.cu"): "../../autostamp.cuh"})
    project = instrument({Path("a/b/k.cu"): KERNEL.encode()}, {}, options)
    assert text_of(project, "a/b/k.cu").splitlines()[:2] == ['#include "../../autostamp.cuh"', '#line 1 "a/b/k.cu"']


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("stream", True),
        ("config.stream", True),
        ("(&config)->stream", True),
        ("at::cuda::getCurrentCUDAStream()", True),
        ("static_cast<cudaStream_t>(handle)", True),
        ("streams[i % 2]", True),
        ("", False),
        ("streams[i++]", False),
        ("pool.next()", False),
        ("last = stream", False),
        ("a == b ? s : t", True),
        ("[&] { return s; }()", False),
    ],
)
def test_which_streams_are_evaluated_again(text: str, is_safe: bool) -> None:
    assert is_repeatable(text) is is_safe


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("k", "k"),
        ("&k", "k"),
        ("ns::k<int, 3>", "k"),
        ("(void*)k", "k"),
        ("(const void *)&ns::k<T>", "k"),
        ("reinterpret_cast<const void*>(&k<T>)", "k"),
        ("k + 1", ""),
        ("f(k)", ""),
    ],
)
def test_the_kernel_that_an_argument_names(text: str, name: str) -> None:
    assert kernel_of(text) == name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (b"a, b>>>", [b"a", b"b"]),
        (
            b"f(a, b), dim3{1, 2}, g<c, d>(e), n < 3 ? x : y >>>",
            [b"f(a, b)", b"dim3{1, 2}", b"g<c, d>(e)", b"n < 3 ? x : y"],
        ),
        (b">>>", []),
        (b"a >> 2, b>>>", [b"a >> 2", b"b"]),
        (b"a[b, c]; d>>>", []),
    ],
)
def test_execution_configurations_are_split_at_their_commas(text: bytes, parts: list[bytes]) -> None:
    assert [text[start:end] for start, end in split(text, 0, b">>>")[0]] == parts


def test_closure_of_a_graph() -> None:
    # 0 -> 1 <-> 2 -> 3, 4 alone
    edges = [frozenset({1}), frozenset({2}), frozenset({1, 3}), frozenset[int](), frozenset[int]()]
    assert closure(edges) == [0b01111, 0b01110, 0b01110, 0b01000, 0b10000]


def test_names_that_code_declares() -> None:
    code = b"int a = b; const T* c; auto& d = e; Op<3> f(g); return h; foo(&i, *j); x = &k; for (auto l : m) {}"
    assert declared(code) >= {b"a", b"c", b"d", b"f", b"l"}
    assert not declared(code) & {b"b", b"e", b"g", b"h", b"i", b"j", b"k", b"m"}
