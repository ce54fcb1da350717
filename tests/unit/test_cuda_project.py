# SPDX-License-Identifier: Apache-2.0
"""`autostamp instrument` and `strip` on CUDA C++: files with their headers, folders, projects as shadow trees."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.hooks import shadow as shadows
from autostamp.passes.cuda.includes import Closure, closure, includes, is_toolkit
from autostamp.passes.cuda.project import Entry, shadow
from autostamp.passes.edits import is_stamped, strip
from autostamp.passes.stamped import key_of
from autostamp.runtime.manifest_file import read_manifest

KERNEL = (
    "__global__ void work(int* out) { __syncthreads(); out[0] = 1; }\nvoid host(int* out) { work<<<1, 32>>>(out); }\n"
)
MEET = (
    "#pragma once\n__device__ int meet(int n) { __syncthreads(); for (int i = 0; i < n; ++i) n ^= i; __syncwarp();"
    " return n; }\n"
)
CALLER = "__global__ void call(int* out) { out[0] = meet(3); }\nvoid run(int* out) { call<<<1, 32>>>(out); }\n"
GENERATED = {
    f"autostamp{part}.cuh" for part in ("", "_payload", "_lean", "_host", "_settings", "_drain", "_forms", "_unit")
}
PYTHON = "import cutlass.cute as cute\n\n\ndef meet(bar):\n    bar.arrive_and_wait()\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str | bytes = "") -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def everything(folder: str | Path = ".") -> dict[str, bytes]:
    root = Path(folder)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def run(*arguments: str | Path) -> int:
    return cli.main([str(argument) for argument in arguments])


def test_a_file_is_stamped_with_the_headers_that_it_needs(capsys):
    write("src/work.cu", KERNEL)
    assert run("instrument", "src/work.cu") == 0
    printed = capsys.readouterr()
    assert set(everything("stamped")) == {"work.cu", "work.manifest.json", *GENERATED}
    text = Path("stamped/work.cu").read_bytes()
    assert text.startswith(b'#include "autostamp.cuh"\n#line 1\n__global__')
    assert strip(text, "x").decode() == KERNEL
    assert Path("src/work.cu").read_text(encoding="utf-8") == KERNEL
    manifest = read_manifest(Path("stamped/work.manifest.json"))
    (file,) = manifest.files
    assert (file.language, file.path) == ("cuda", str(Path("src/work.cu").resolve()))
    assert manifest.unit is not None
    assert [each.key for each in manifest.unit.files] == [key_of(KERNEL.encode())]
    assert f"0x{manifest.unit.signature:08x}u" in Path("stamped/autostamp_unit.cuh").read_text(encoding="utf-8")
    assert "kernel work at src/work.cu:1: by parameter" in printed.out
    assert "compile with -DAUTOSTAMP=1" in printed.err


def test_headers_beside_the_file_come_with_it():
    write("src/call.cu", '#include "parts/meet.cuh"\n#include "plain.h"\n' + CALLER)
    write("src/parts/meet.cuh", '#include "../plain.h"\n' + MEET)
    write("src/plain.h", "#pragma once\n")
    write("src/apart.h", MEET)
    assert run("instrument", "src/call.cu", "-q") == 0
    written = everything("stamped")
    assert set(written) == {"call.cu", "parts/meet.cuh", "plain.h", "autostamp.manifest.json", *GENERATED}
    assert written["parts/meet.cuh"].startswith(b'#include "../autostamp.cuh"\n')
    assert written["plain.h"] == b"#pragma once\n"
    manifest = read_manifest(Path("stamped/autostamp.manifest.json"))
    assert sorted(Path(file.path).name for file in manifest.files) == ["call.cu", "meet.cuh"]


def test_headers_of_other_folders_are_read_and_their_sync_ops_listed(capsys):
    write("src/call.cu", '#include "meet.cuh"\n' + CALLER.replace("out[0]", "__syncthreads(); out[0]"))
    write("include/meet.cuh", MEET)
    assert run("instrument", "src/call.cu", "-I", "include") == 0
    assert set(everything("stamped")) == {"call.cu", "call.manifest.json", *GENERATED}
    assert "not stamped, outside: meet in include/meet.cuh" in capsys.readouterr().out
    assert run("instrument", "src/call.cu", "-I", "include", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outside"] == {"include/meet.cuh": ["meet"]}


def test_a_header_in_quotes_that_is_not_there(capsys):
    write("call.cu", '#include <nosuch>\n#ifdef X\n#include "perhaps.h"\n#endif\n#include "parts/meet.cuh"\n' + CALLER)
    write("parts/meet.cuh", '#include "gone.h"\n' + MEET)
    before = everything()
    assert run("instrument", "call.cu") == 1
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == "parts/meet.cuh:1:10: AS1010 parts/meet.cuh includes gone.h, which was not found"
    assert printed[1:3] == ['    1 | #include "gone.h"', "      |          ^^^^^^^^"]
    assert everything() == before
    write("other/gone.h")
    assert run("instrument", "call.cu", "-I", "other") == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("int x;\n", "AS1003 no kernel in x.cu"),
        (MEET, "AS1003 no kernel in x.cu"),
        ("__global__ void k(int* out) { out[0] = 1; }\n", "AS1004 no sync call in x.cu"),
        ("#define AUTOSTAMP_OPEN\n" + KERNEL, "x.cu:1:9: AS1013 x.cu has a name AUTOSTAMP_OPEN of its own"),
    ],
)
def test_what_cannot_be_stamped(capsys, text, code):
    write("x.cu", text)
    assert run("instrument", "x.cu") == 1
    assert code in capsys.readouterr().err
    assert set(everything()) == {"x.cu"}


def test_a_parameter_that_cannot_be(capsys):
    write("x.cu", 'extern "C" ' + KERNEL)
    assert run("instrument", "x.cu", "--carrier", "param") == 1
    expected = 'AS1014 work cannot take its slot as a parameter: it is extern "C", so it may be loaded by its name'
    assert expected in capsys.readouterr().err
    assert set(everything()) == {"x.cu"}
    assert run("instrument", "x.cu", "--carrier", "auto", "--json") == 0
    ((kernel,),) = [file["kernels"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert kernel == {
        "name": "work", "line": 1, "threaded": True, "number": 1, "carrier": "symbol",
        "reason": 'it is extern "C", so it may be loaded by its name',
    }  # fmt: skip


def test_a_kernel_that_is_launched_nowhere_is_noted(capsys):
    write("x.cu", KERNEL.splitlines()[0] + "\n")
    assert run("instrument", "x.cu") == 0
    assert "kernel work at x.cu:1: by symbol, AS2113 it is launched nowhere in these files" in capsys.readouterr().out


def test_a_folder_with_both_languages(capsys):
    write("pkg/work.cu", KERNEL)
    write("pkg/deep/meet.cuh", MEET)
    write("pkg/deep/call.cu", '#include "meet.cuh"\n' + CALLER)
    write("pkg/helper.py", PYTHON)
    write("pkg/plain.cpp", "int x;\n")
    write("pkg/.hidden/work.cu", KERNEL)
    assert run("instrument", "pkg", "-o", "out") == 0
    names = {"work.cu", "deep/meet.cuh", "deep/call.cu", "helper.py", "autostamp.manifest.json"}
    assert set(everything("out")) == names | GENERATED
    manifest = read_manifest(Path("out/autostamp.manifest.json"))
    languages = {Path(file.path).name: file.language for file in manifest.files}
    assert languages == {"work.cu": "cuda", "meet.cuh": "cuda", "call.cu": "cuda", "helper.py": "cutedsl"}
    assert "wrote 4 stamped files" in capsys.readouterr().err


def test_in_place_and_back():
    write("pkg/work.cu", KERNEL)
    write("pkg/deep/meet.cuh", MEET)
    write("pkg/deep/call.cu", '#include "meet.cuh"\n' + CALLER)
    before = everything()
    assert run("instrument", "pkg", "--in-place", "-q") == 0
    stamped = everything()
    assert is_stamped(stamped["pkg/work.cu"])
    assert stamped["pkg/deep/call.cu"].startswith(b'#include "../autostamp.cuh"\n')
    assert set(stamped) - set(before) == {f"pkg/{name}" for name in (*GENERATED, "autostamp.manifest.json")}
    assert run("instrument", "pkg", "--in-place", "--check", "-q") == 0
    assert run("instrument", "pkg", "--in-place", "-q") == 0
    assert everything() == stamped
    assert run("strip", "pkg", "--check") == 1
    assert run("strip", "pkg", "-q") == 0
    assert {path: data for path, data in everything().items() if path in before} == before
    assert run("strip", "pkg", "--check") == 0


def test_one_file_in_place():
    write("src/work.cu", KERNEL)
    assert run("instrument", "src/work.cu", "--in-place", "-q") == 0
    assert set(everything("src")) == {"work.cu", "work.manifest.json", *GENERATED}
    assert run("strip", "src/work.cu", "-q") == 0
    assert Path("src/work.cu").read_text(encoding="utf-8") == KERNEL


def test_diff_and_check(capsys):
    write("work.cu", KERNEL)
    assert run("instrument", "work.cu", "--diff") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("--- a/work.cu\n+++ b/work.cu\n")
    assert "__syncthreads(); AUTOSTAMP_WARP_EXIT" in printed
    assert run("instrument", "work.cu", "--check", "-q") == 1
    assert set(everything()) == {"work.cu"}


def test_stdin_to_stdout(monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(KERNEL.encode())))
    assert run("instrument", "-", "--stdin-filename", "my/work.cu") == 0
    sys.stdout.flush()
    printed = capfdbinary.readouterr().out
    assert printed.startswith(b'#include "autostamp.cuh"\n')
    assert strip(printed, "x").decode() == KERNEL
    assert everything() == {}


def test_possible_misses_are_said_and_fail_a_check(capsys):
    # The parser takes the first line of the body for a declaration; the text has a call of that name all the same.
    text = (
        KERNEL
        + "#define OPEN(n) for (int i = 0; i < n; ++i) {\n__global__ void k(int n) { OPEN(n) __syncthreads(); }\n}\n"
    )
    write("k.cu", text)
    assert run("instrument", "k.cu", "--json") == 0
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert codes <= {"AS1011", "AS1012"}


def test_a_second_run_leaves_the_output_of_the_first_alone():
    write("work.cu", KERNEL)
    assert run("instrument", ".", "-o", "out", "-q") == 0
    first = everything()
    assert run("instrument", ".", "-o", "out", "-q") == 0
    assert everything() == first


def project() -> Path:
    write("proj/src/call.cu", '#include "../include/lib/meet.cuh"\n' + CALLER)
    write("proj/include/lib/meet.cuh", MEET)
    write("proj/include/lib/plain.h", "#pragma once\n")
    write("proj/docs/deep/page.md", "page")
    write("proj/README.md", "readme")
    write("proj/.git/config", "x")
    Path("proj/src/lib").symlink_to("../include/lib")
    Path("proj/src/out.h").symlink_to(write("elsewhere.h").resolve())
    return Path("proj").resolve()


def test_a_project_becomes_a_shadow_tree(capsys):
    root = project()
    assert run("instrument", "--project", "proj", "-o", "shadow") == 0
    printed = capsys.readouterr()
    assert "wrote 2 stamped files and shadow/autostamp.manifest.json" in printed.err
    links = {
        path.relative_to("shadow").as_posix(): str(path.readlink())
        for path in Path("shadow").rglob("*")
        if path.is_symlink()
    }
    assert links == {
        "README.md": str(root / "README.md"),
        "docs": str(root / "docs"),
        "include/lib/plain.h": str(root / "include/lib/plain.h"),
        "src/lib": "../include/lib",
        "src/out.h": str(Path("elsewhere.h").resolve()),
    }
    call = Path("shadow/src/call.cu").read_text(encoding="utf-8")
    assert call.startswith(
        f'#include "../autostamp.cuh"\n#line 1 "{root}/src/call.cu"\n#include "../include/lib/meet.cuh"\n'
    )
    assert (
        Path("shadow/include/lib/meet.cuh").read_text(encoding="utf-8").startswith('#include "../../autostamp.cuh"\n')
    )
    assert {path.name for path in Path("shadow").iterdir()} >= GENERATED
    manifest = read_manifest(Path("shadow/autostamp.manifest.json"))
    assert sorted(file.path for file in manifest.files) == [f"{root}/include/lib/meet.cuh", f"{root}/src/call.cu"]
    assert not Path("shadow/.git").exists()


def test_a_shadow_is_brought_up_to_date():
    project()
    write("proj/old/gone.cu", KERNEL)
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    write("shadow/build/object.o", "mine")
    unchanged = Path("shadow/src/call.cu")
    written = unchanged.stat().st_mtime_ns
    before = everything("shadow")
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    assert everything("shadow") == before
    assert unchanged.stat().st_mtime_ns == written
    Path("proj/old/gone.cu").unlink()
    Path("proj/old").rmdir()
    Path("proj/README.md").unlink()
    write("proj/docs/now.cuh", "#pragma once\n")
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    assert not Path("shadow/old").exists()
    assert not Path("shadow/README.md").is_symlink()
    assert not Path("shadow/docs").is_symlink()
    assert Path("shadow/docs/now.cuh").is_symlink()
    assert Path("shadow/docs/deep").is_symlink()
    assert Path("shadow/build/object.o").read_text(encoding="utf-8") == "mine"


def test_taking_files_out_never_follows_a_link_out_of_the_shadow():
    project()
    write("proj/old/gone.cu", KERNEL)
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    outside = write("outside/gone.cu", "precious")
    Path("shadow/old/gone.cu").unlink()
    Path("shadow/old").rmdir()
    Path("shadow/old").symlink_to(outside.parent.resolve())
    listing = json.loads(Path("shadow/autostamp.files.json").read_text(encoding="utf-8"))
    listing["files"] += ["../outside/gone.cu", str(outside.resolve()), "src/lib/../../../outside/gone.cu"]
    write("shadow/autostamp.files.json", json.dumps(listing))
    Path("proj/old/gone.cu").unlink()
    Path("proj/old").rmdir()
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    assert outside.read_text(encoding="utf-8") == "precious"


def test_a_link_in_place_of_a_file_is_not_written_through():
    root = project()
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    original = (root / "src/call.cu").read_bytes()
    Path("shadow/src/call.cu").unlink()
    Path("shadow/src/call.cu").symlink_to(root / "src/call.cu")
    assert run("instrument", "--project", "proj", "-o", "shadow", "-q") == 0
    assert (root / "src/call.cu").read_bytes() == original
    assert is_stamped(Path("shadow/src/call.cu").read_bytes())


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("proj/shadow", "lies in the project"),
        ("proj", "would overwrite the project"),
        (".", "would overwrite the project"),
        ("full", "is not empty and holds no shadow that autostamp wrote"),
        ("file", "is not a folder"),
    ],
)
def test_places_where_no_shadow_goes(capsys, target, reason):
    project()
    write("full/mine.txt", "mine")
    write("file", "mine")
    before = everything()
    assert run("instrument", "--project", "proj", "-o", target, "-q") == 2
    assert reason in capsys.readouterr().err
    assert everything() == before


def test_a_shadow_below_build_is_no_part_of_the_project():
    root = project()
    assert run("instrument", "--project", "proj", "-o", "proj/build/shadow", "-q") == 0
    first = everything("proj/build/shadow")
    assert run("instrument", "--project", "proj", "-o", "proj/build/shadow", "-q") == 0
    assert everything("proj/build/shadow") == first
    assert run("instrument", "--project", "proj", "-o", "other", "-q") == 0
    manifest = read_manifest(Path("other/autostamp.manifest.json"))
    assert sorted(file.path for file in manifest.files) == [f"{root}/include/lib/meet.cuh", f"{root}/src/call.cu"]


def test_a_project_without_sync_calls(capsys):
    write("proj/plain.cu", "int x;\n")
    assert run("instrument", "--project", "proj", "-o", "shadow") == 1
    assert "AS1004 no sync call in proj" in capsys.readouterr().err
    assert not Path("shadow").exists()


@pytest.mark.parametrize("arguments", [("a.cu", "--project", "."), ("--project", ".", "--in-place"), ("-o", "x")])
def test_wrong_usage(capsys, arguments):
    assert run("instrument", *arguments) == 2
    assert "Usage: autostamp instrument" in capsys.readouterr().err


def test_the_plan_of_a_shadow():
    root = Path("/root")
    entries = [
        Entry(Path("a"), True), Entry(Path("a/x.cu"), False), Entry(Path("a/notes"), True), Entry(Path("a/notes/n.txt"), False),
        Entry(Path("b"), True), Entry(Path("b/n.txt"), False),
        Entry(Path("c"), True), Entry(Path("c/deep"), True), Entry(Path("c/deep/y.h"), False),
        Entry(Path("inward"), True, Path("/root/b/sub")), Entry(Path("outward"), True, Path("/usr/include")),
    ]  # fmt: skip
    found = shadow(root, entries, {Path("a/x.cu"): b"stamped", Path("autostamp.cuh"): b"header"})
    assert found.folders == {Path("a"), Path("b"), Path("c"), Path("c/deep")}
    assert found.links == {
        Path("a/notes"): root / "a/notes",
        Path("b/n.txt"): root / "b/n.txt",
        Path("c/deep/y.h"): root / "c/deep/y.h",
        Path("outward"): Path("/usr/include"),
    }
    assert found.inner == {Path("inward"): Path("b/sub")}


def test_a_broken_listing_removes_nothing(tmp_path):
    for text in (b"", b"[]", b'{"files": 3}', b"\xff"):
        (tmp_path / "kept").write_bytes(b"mine")
        (tmp_path / "autostamp.files.json").write_bytes(text)
        shadows.write(tmp_path, shadow(tmp_path / "root", [], {Path("new.cu"): b"x"}))
        assert (tmp_path / "kept").read_bytes() == b"mine"


def closure_of(texts: dict[str, str], root: str, *folders: str) -> Closure:
    def read(path: Path) -> bytes | None:
        text = texts.get(path.as_posix())
        return None if text is None else text.encode()

    return closure({Path(root): Path(root).parent}, [Path(folder) for folder in folders], read)


def test_where_headers_are_found():
    texts = {
        "p/k.cu": '#include "a.h"\n#include <b.h>\n#include "../up.h"\n#include "c.h"\n',
        "p/a.h": '#include "sub/d.h"\n',
        "p/sub/d.h": '#include "../a.h"\n#include "e.h"\n',
        "up.h": '#include "p/f.h"\n',
        "p/f.h": "",
        "inc/b.h": '#include "g.h"\n',
        "inc/c.h": "",
        "inc/e.h": "",
        "inc/g.h": "",
    }
    found = closure_of(texts, "p/k.cu", "inc")
    assert {path.as_posix() for path in found.own} == {"p/a.h", "p/sub/d.h"}
    # up.h lies above the file's folder, and what it includes is its own business.
    assert {path.as_posix() for path in found.context} == {"up.h", "p/f.h", "inc/b.h", "inc/c.h", "inc/e.h", "inc/g.h"}
    assert found.missing == []


def test_which_missing_headers_count():
    text = (
        '#ifndef GUARD_H\n#define GUARD_H\n#include "one.h"\n#include <two.h>\n#if X\n#include "three.h"\n#endif\n'
        '#include "cuda_runtime.h"\n#include "stdio.h"\n#include "autostamp.cuh"\n// #include "four.h"\n#include MACRO\n#endif\n'
    )
    found = closure_of({"k.cuh": text}, "k.cuh")
    assert [(path.name, include.name) for path, include in found.missing] == [("k.cuh", "one.h")]


def test_names_and_places_of_includes():
    data = b'  #  include <a/b.h>  // "no"\n#include "c.h"\n'
    first, second = includes(data)
    assert (first.name, first.is_quoted, data[first.offset : first.offset + 7]) == ("a/b.h", False, b"<a/b.h>")
    assert (second.name, second.is_quoted, data[second.offset : second.offset + 5]) == ("c.h", True, b'"c.h"')


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        ("cuda_fp16.h", True), ("cublas_v2.h", True), ("cooperative_groups/reduce.h", True), ("mma.h", True),
        ("math.h", True), ("vector", True), ("thrust/sort.h", True), ("cutlass/cutlass.h", False), ("mine.h", False),
        ("sync.cuh", False), ("common.h", False),
    ],
)  # fmt: skip
def test_headers_of_the_toolkit(name, is_known):
    assert is_toolkit(name) is is_known
