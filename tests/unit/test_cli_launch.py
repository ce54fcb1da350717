# SPDX-License-Identifier: Apache-2.0
"""`autostamp launch`: what is compiled and launched in which order, what is compared and written, and every refusal."""

from __future__ import annotations

import ctypes
import json
import shutil
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from autostamp.cli import main
from autostamp.hooks import launch as launching
from autostamp.runtime.cuda import clusters, nvcc
from autostamp.runtime.cuda.symbols import functions
from autostamp.runtime.store import load_run
from tests.pretend_cupy import Pretend
from tests.simulator.tables import ring_kernel, ring_manifest, ring_region

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")

SOURCE = """\
#include "params.h"
extern "C" __global__ void twice(const float* in, float* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = 2 * in[threadIdx.x];
}
extern "C" __global__ void twice_params(Params p) {
    if (threadIdx.x < p.n) p.out[threadIdx.x] = 2 * p.in[threadIdx.x];
}
template <typename T> __global__ void fill(T* out, T value) { out[threadIdx.x] = value; }
"""
HEADER = "struct Params { const float* in; float* out; int n; };\n"
ARGUMENTS = ("--grid", "1", "--block", "32", "--arg", "n=4", "--arg", "in=[n]:arange", "--arg", "out=[n]")
KERNEL = ring_kernel()


def twice(path: str, values: list[bytes], memory) -> None:
    """What the kernel does."""
    memory.view(values[1], "f4")[:] = 2 * memory.view(values[0], "f4")


def elf(*symbols: str) -> bytes:
    """The smallest ELF file with a section `.text.SYMBOL` for each: header, section headers, names (elf(5))."""
    names = b"\0.shstrtab\0" + b"".join(f".text.{symbol}".encode() + b"\0" for symbol in symbols)
    offsets = [1] + [names.index(f".text.{symbol}\0".encode()) for symbol in symbols]
    count, table = 2 + len(symbols), 64
    data = table + 64 * count
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, count, 1)
    sections = [bytes(64), struct.pack("<IIQQQQIIQQ", offsets[0], 3, 0, 0, data, len(names), 0, 0, 1, 0)]
    sections += [struct.pack("<IIQQQQIIQQ", offset, 1, 6, 0, data, 0, 0, 0, 1, 0) for offset in offsets[1:]]
    return header + b"".join(sections) + names


class Compiler:
    """Stands in for nvcc: keeps what it was given, and writes a cubin with the right symbols."""

    def __init__(self) -> None:
        self.units: dict[str, tuple[bytes, nvcc.Flags, str, Sequence[str]]] = {}
        self.output = {"clean": "", "stamped": ""}
        self.fails: set[str] = set()

    def __call__(self, compiler, source, text, flags, folder, appendix="", before=()):
        self.units[folder.name] = (text, flags, appendix, before)
        output = self.output[folder.name]
        messages = tuple(nvcc.read_messages(output))
        if folder.name in self.fails:
            return nvcc.Compilation(None, messages, output)
        folder.mkdir(parents=True)
        cubin = folder / f"{source.stem}.cubin"
        cubin.write_bytes(elf("twice", "twice_params", "_Z4fillIfEvPT_S0_") + folder.name.encode())
        return nvcc.Compilation(cubin, messages, output)


class Unit:
    """What stamping gives, with the simulated ring kernel's records in the region that it binds."""

    text = b"// stamped\n" + SOURCE.encode()

    def __init__(self, pretend: Pretend, records: np.ndarray) -> None:
        self._pretend, self._records = pretend, records
        self.bound: list[tuple[str, str]] = []

    def nvcc_flags(self) -> list[str]:
        return ["-DAUTOSTAMP=1"]

    def bind(self, module, kernel, memory) -> int:
        self.bound.append((Path(module.path).parent.name, kernel))
        address = memory.allocate(self._records.size)
        self._pretend.memory.arrays[address][:] = self._records
        return address

    def manifest(self, kernel, records):
        assert records.tobytes() == self._records.tobytes()
        return ring_manifest(KERNEL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    Path("params.h").write_text(HEADER)
    return tmp_path


@pytest.fixture
def pretend(monkeypatch):
    found = Pretend(twice)
    found.install(monkeypatch)
    return found


@pytest.fixture
def compiler(monkeypatch):
    found = Compiler()
    monkeypatch.setattr(nvcc, "find", lambda: nvcc.Nvcc(Path("nvcc"), (13, 0)))
    monkeypatch.setattr(nvcc, "compile_unit", found)
    return found


@pytest.fixture
def unit(pretend, monkeypatch):
    found = Unit(pretend, ring_region(KERNEL))
    monkeypatch.setattr(launching, "STAMPER", lambda *_: found)
    return found


def run(capsys, *words: str, kernel: str = "twice", arguments: tuple[str, ...] = ARGUMENTS) -> tuple[int, str, str]:
    status = main(["launch", "k.cu", "--kernel", kernel, *arguments, *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def copies(pretend) -> list[str]:
    return [Path(launch.path).parent.name for launch in pretend.launches]


def test_the_whole_path(folder, pretend, compiler, unit, capsys):
    status, out, err = run(capsys)
    assert (status, err) == (0, "wrote RUN; read it with: autostamp summary RUN\n")
    assert out.splitlines() == [
        "twice (k.cu:2), sm_90a, grid 1,1,1, block 32,1,1",
        "",
        "             clean  stamped",
        "registers    40     40",
        "local bytes  0      0",
        "",
        "array  type       shape  changed  bit-equal",
        "in     const f32  4      no       yes",
        "out    f32        4      yes      yes",
    ]
    assert copies(pretend) == ["clean", "stamped"]
    assert unit.bound == [("stamped", "twice")]
    for launch in pretend.launches:
        assert (launch.symbol, launch.grid, launch.block, launch.shared_bytes) == ("twice", (1, 1, 1), (32, 1, 1), 0)
        assert [len(value) for value in launch.values] == [8, 8, 4]
        assert launch.values[2] == struct.pack("<i", 4)
    # Each copy has arrays of its own.
    assert len({value for launch in pretend.launches for value in launch.values[:2]}) == 4


def test_what_is_compiled(folder, pretend, compiler, unit, capsys):
    run(capsys, "-I", "inc", "-D", "N=4", "--std", "c++20", "--nvcc-option", "-lineinfo")
    flags = nvcc.Flags("sm_90a", "c++20", ("inc",), ("N=4",), ("-lineinfo",))
    text, of_clean, appendix, before = compiler.units["clean"]
    assert (text, of_clean, before) == (SOURCE.encode(), flags, ())
    assert "static_assert" in appendix
    assert compiler.units["stamped"] == (Unit.text, flags, "", ["-DAUTOSTAMP=1"])


def test_an_instance_of_a_template_is_asked_for_in_both_copies(folder, pretend, compiler, unit, capsys):
    pretend.kernel = lambda path, values, memory: None
    arguments = ("--grid", "1", "--block", "32", "--arg", "out=[32]", "--arg", "value=3")
    assert run(capsys, kernel="fill<float>", arguments=arguments)[0] == 0
    assert all("&::fill<float>;" in compiler.units[name][2] for name in ("clean", "stamped"))
    assert {launch.symbol for launch in pretend.launches} == {"_Z4fillIfEvPT_S0_"}


def test_the_run_folder(folder, pretend, compiler, unit, capsys):
    assert run(capsys, "-o", "out", "-q")[2] == ""
    data = load_run(Path("out"))
    assert data.traces[1].lanes
    assert data.facts.gpu == "Pretended GPU"
    assert data.facts.command == tuple(sys.argv)
    assert Path("out/clean.cubin").read_bytes().endswith(b"clean")
    assert Path("out/stamped.cubin").read_bytes().endswith(b"stamped")
    texts = {path.parts[-3]: path.read_bytes() for path in Path("out/sources").rglob("k.cu")}
    assert texts == {"stamped": Unit.text, "original": SOURCE.encode()}


def test_records_that_are_not_there(folder, pretend, compiler, monkeypatch, capsys):
    empty = Unit(pretend, np.zeros_like(ring_region(KERNEL)))
    monkeypatch.setattr(launching, "STAMPER", lambda *_: empty)
    status, _, err = run(capsys)
    assert status == 1
    assert "AS5003" in err


def test_other_results_of_the_stamped_kernel(folder, pretend, compiler, unit, capsys):
    def kernel(path, values, memory):
        twice(path, values, memory)
        if "stamped" in path:
            memory.view(values[1], "u4")[2] += 1

    pretend.kernel = kernel
    status, out, err = run(capsys)
    assert status == 1
    # 2 * 2 is 4.0, 0x40800000.
    assert (
        "AS8006 out: the stamped kernel left other bits in 1 of 4 elements, the first at [2]: 0x40800001, clean 0x40800000"
        in err
    )
    assert "no: 1 of 4 elements, the first at [2]: 0x40800000, 0x40800001" in out
    assert copies(pretend) == ["clean", "stamped", "clean"]  # the last one tells chance from stamps


def test_results_that_differ_by_chance(folder, pretend, compiler, unit, capsys):
    pretend.kernel = lambda path, values, memory: memory.view(values[1], "f4").fill(len(pretend.launches))
    status, _, err = run(capsys)
    assert status == 1
    assert "AS8007 out differs between two launches of the clean kernel: 4 of 4 elements" in err
    assert "AS8006" not in err


def test_a_const_array_that_was_written_to(folder, pretend, compiler, unit, capsys):
    pretend.kernel = lambda path, values, memory: memory.view(values[0], "f4").fill(9)
    status, _, err = run(capsys)
    assert status == 1
    assert "AS8006 in: it is const, and the kernel wrote to it" in err


def test_without_comparing(folder, pretend, compiler, unit, capsys):
    status, out, _ = run(capsys, "--no-compare")
    assert status == 0
    assert copies(pretend) == ["stamped"]
    assert "not compared" in out


def test_timed_launches(folder, pretend, compiler, unit, capsys):
    times = iter([9.0, 9.0, 0.010, 0.012, 0.030, 0.036, 0.020, 0.024])  # ms; the first two launches are not timed

    def kernel(path, values, memory):
        pretend.clock = next(times)
        twice(path, values, memory)

    pretend.kernel = kernel
    _, out, _ = run(capsys, "--repeat", "3")
    assert copies(pretend) == ["clean", "stamped"] * 4
    assert "µs, median of 3  20.0   24.0" in out
    assert "stamped ÷ clean         1.200" in out


def test_json(folder, pretend, compiler, unit, capsys):
    status, out, err = run(capsys, "--json", "--smem", "1024")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found["schema_version"] == 1
    assert (found["kernel"], found["arch"], found["grid"], found["shared_bytes"]) == (
        "twice",
        "sm_90a",
        [1, 1, 1],
        1024,
    )
    assert found["copies"]["stamped"]["registers"] == 40
    assert found["findings"] == []
    assert [(each["name"], each["is_const"], each["is_changed"], each["is_equal"]) for each in found["arrays"]] == [
        ("in", True, False, True),
        ("out", False, True, True),
    ]


def test_saved_arrays(folder, pretend, compiler, unit, capsys):
    run(capsys, "--save", "deep/arrays.npz")
    with np.load("deep/arrays.npz") as archive:
        assert archive["in"].tolist() == [0, 1, 2, 3]
        assert archive["out"].tolist() == [0, 2, 4, 6]


def test_a_struct_from_a_header(folder, pretend, compiler, unit, capsys):
    def kernel(path, values, memory):
        (value,) = values
        assert len(value) == 24
        twice(path, [value[:8], value[8:16]], memory)

    pretend.kernel = kernel
    arguments = ("--grid", "1", "--block", "32", "--arg", "p.n=4", "--arg", "p.in=[p.n]:arange", "--arg", "p.out=[4]")
    status, out, _ = run(capsys, kernel="twice_params", arguments=arguments)
    assert status == 0
    assert "p.out  f32        4      yes      yes" in out


def test_without_a_stamper(folder, pretend, compiler, monkeypatch, capsys):
    monkeypatch.setattr(launching, "STAMPER", lambda *_: None)
    status, out, err = run(capsys)
    assert status == 1
    assert "AS8009 there is no stamped copy of twice" in err
    assert "out    f32        4      yes      not compared" in out
    assert not Path("RUN").exists()


def test_a_launch_that_fails(folder, pretend, compiler, unit, capsys):
    def kernel(path, values, memory):
        raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    pretend.kernel = kernel
    status, out, err = run(capsys)
    assert (status, out) == (1, "")
    assert "AS8008 the clean kernel failed: cudaErrorIllegalAddress" in err
    assert not Path("RUN").exists()


def test_a_block_that_the_compiled_kernel_cannot_have(folder, pretend, compiler, unit, capsys):
    pretend.max_threads = 16
    status, _, err = run(capsys)
    assert status == 2
    assert "AS8005 cannot launch with this shape: 32 threads a block; this kernel, compiled, takes at most 16" in err


@pytest.mark.parametrize(("smem", "attributes"), [(49152, []), (49153, [("max_dynamic_shared_size_bytes", 49153)] * 2)])
def test_much_shared_memory_is_asked_for(folder, pretend, compiler, unit, capsys, smem, attributes):
    assert run(capsys, "--smem", str(smem))[0] == 0
    assert pretend.attributes == attributes
    assert [launch.shared_bytes for launch in pretend.launches] == [smem, smem]


def test_clusters_go_to_the_driver(folder, pretend, compiler, unit, monkeypatch, capsys):
    launched = []

    def launch(function, config, parameters):
        launched.append((function, config, parameters))
        twice("", parameters, pretend.memory)

    monkeypatch.setattr(clusters, "launch", launch)
    words = ("--cluster", "16", "--smem", "256")
    arguments = ("--grid", "32,2", *ARGUMENTS[2:])
    assert run(capsys, *words, arguments=arguments)[0] == 0
    assert pretend.launches == []
    assert pretend.attributes == [(clusters.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)] * 2
    function, config, parameters = launched[0]
    assert (function, [len(value) for value in parameters]) == (0xF00, [8, 8, 4])
    # CUlaunchConfig of cuda.h: 7 unsigned, padding, stream at 32, attributes at 40, their number at 48.
    words_of_config = struct.unpack("<7I4xQQI4x", bytes(config))
    assert words_of_config[:8] == (32, 2, 1, 32, 1, 1, 256, 7)
    assert words_of_config[9] == 1
    # CUlaunchAttribute: id at 0, value (64 bytes) at 8; cluster dimensions are attribute 4.
    attribute = ctypes.string_at(words_of_config[8], 72)
    assert struct.unpack("<I4x3I", attribute[:20]) == (4, 16, 1, 1)


@pytest.mark.parametrize(
    ("words", "detail"),
    [
        (("--block", "2048"), "block x is 2048, at most 1024"),
        (("--block", "1,1,65"), "block z is 65, at most 64"),
        (("--block", "64,32"), "2048 threads a block, at most 1024"),
        (("--grid", "1,65536"), "grid y is 65536, at most 65535"),
        (("--cluster", "2"), "cluster x 2 does not divide grid x 1"),
        (("--grid", "32", "--cluster", "32"), "32 CTAs a cluster, at most 16"),
    ],
)
def test_shapes_that_nothing_can_have(folder, pretend, compiler, unit, capsys, words, detail):
    status, _, err = run(capsys, *words)
    assert status == 2
    assert f"AS8005 cannot launch with this shape: {detail}" in err
    assert pretend.launches == []


@pytest.mark.parametrize("value", ["0", "1,2,3,4", "a", "-1", ""])
def test_sizes_that_cannot_be_read(folder, capsys, value):
    status, _, err = run(capsys, "--grid", value)
    assert status == 2
    assert "is not one to three sizes" in err


def test_without_cupy(folder, compiler, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    status, _, err = run(capsys)
    assert status == 3
    assert "AS5008" in err


def test_without_a_device(folder, pretend, compiler, capsys):
    pretend.devices = 0
    status, _, err = run(capsys)
    assert status == 3
    assert "AS5001" in err


def test_without_nvcc(folder, pretend, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    for home in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(home, raising=False)
    status, _, err = run(capsys)
    assert status == 3
    assert "AS4010" in err


@pytest.mark.parametrize(("capability", "arch"), [("90", "sm_90a"), ("100", "sm_100a"), ("89", "sm_89")])
def test_the_architecture_is_the_device_s(folder, pretend, compiler, unit, capsys, capability, arch):
    pretend.capability = capability
    run(capsys)
    assert compiler.units["clean"][1].arch == arch
    run(capsys, "--arch", "sm_80")
    assert compiler.units["clean"][1].arch == "sm_80"


def test_an_nvcc_too_old_for_the_architecture(folder, pretend, compiler, unit, monkeypatch, capsys):
    monkeypatch.setattr(nvcc, "find", lambda: nvcc.Nvcc(Path("nvcc"), (11, 7)))
    status, _, err = run(capsys)
    assert status == 3
    assert "AS4011 nvcc 11.7 is too old for sm_90a, which needs CUDA 12.0" in err


ERROR = 'k.cu(3): error: identifier "inn" is undefined\n    if (threadIdx.x < n) out[threadIdx.x] = 2 * inn[0];\n{}^\n'.format(
    " " * 48
)


@pytest.mark.parametrize(("copy", "code", "status"), [("clean", "AS4012", 1), ("stamped", "AS4013", 2)])
def test_a_copy_that_does_not_compile(folder, pretend, compiler, unit, capsys, copy, code, status):
    compiler.fails = {copy}
    compiler.output[copy] = ERROR + ERROR
    found, _, err = run(capsys)
    assert found == status
    assert err.startswith("k.cu:3:")
    assert f"{code} " in err
    assert 'identifier "inn" is undefined (and 1 more)' in err
    assert pretend.launches == []


def test_a_signature_that_the_compiler_reads_in_another_way(folder, pretend, compiler, unit, capsys):
    compiler.fails = {"clean"}
    compiler.output["clean"] = (
        'autostamp-checks(4): error: static assertion failed with "autostamp: its parameters are not (int)"\n'
    )
    status, _, err = run(capsys)
    assert status == 1
    assert "AS1028 the compiler does not agree with what was read of twice: its parameters are not (int)\n" in err


def test_an_advisory_of_the_stamped_copy_alone(folder, pretend, compiler, unit, capsys):
    both = "ptxas info    : (C7510) Potential Performance Loss: one\n"
    compiler.output = {"clean": both, "stamped": both + both.replace("C7510", "C7515").replace("one", "two")}
    status, _, err = run(capsys)
    assert status == 1
    assert err.count("AS3101 safety") == 1
    assert "ptxas says of the stamped kernel alone: (C7515) Potential Performance Loss: two" in err


def test_the_functions_of_an_elf_file():
    assert functions(elf("one", "_Z3twov")) == ["one", "_Z3twov"]


@needs_nvcc
def test_compile_only(folder, unit, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    status, out, err = run(capsys, "--compile-only", "-o", "out")
    assert (status, out) == (0, "")
    assert err.splitlines() == ["wrote out/clean.cubin", "wrote out/stamped.cubin"]
    for name in ("clean", "stamped"):
        assert "twice" in functions(Path(f"out/{name}.cubin").read_bytes())


@needs_nvcc
def test_compile_only_without_stamps(folder, monkeypatch, capsys):
    monkeypatch.setattr(launching, "STAMPER", lambda *_: None)
    status, _, err = run(capsys, "--compile-only", "-o", "out", "-q")
    assert status == 1
    assert err.startswith("AS8009")
    assert not Path("out/stamped.cubin").exists()
