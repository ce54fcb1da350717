# SPDX-License-Identifier: Apache-2.0
"""`autostamp instrument` and `autostamp strip` as a user types them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from autostamp import cli
from autostamp.passes.edits import is_stamped, strip
from autostamp.runtime.manifest_file import read_manifest

KERNEL = """\
import cutlass.cute as cute


class K:
    @cute.jit
    def __call__(self, a):
        self.kernel(a).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, pipe, state):
        warp_idx = cute.arch.warp_idx()
        if warp_idx == self.load_warp_id:
            pipe.producer_acquire(state)
            pipe.producer_try_acquire(state)
        else:
            pipe.consumer_wait(state)
            pipe.consumer_release(state)
        cute.arch.sync_threads()
"""
HELPER = "import cutlass.cute as cute\n\n\ndef meet(bar):\n    bar.arrive_and_wait()\n"
NO_KERNEL = "import cutlass\n\nx = 1\n"
NO_SITE = "import cutlass.cute as cute\n\n\n@cute.kernel\ndef copy(a, b):\n    b[0] = a[0]\n"
BROKEN = "import cutlass.cute as cute\n\n\ndef f(p):\n    p.wait(]\n"
PLAIN = "def add(a, b):\n    return a + b\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def type_in(monkeypatch):
    """Put bytes on stdin, and give what is written to stdout's buffer back."""

    def put(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def write(path: str, text: str | bytes) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def everything(folder: str | Path = ".") -> dict[str, bytes]:
    root = Path(folder)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def run(*arguments: str | Path) -> int:
    return cli.main([str(argument) for argument in arguments])


def test_a_file_is_stamped_into_a_folder_with_its_manifest(capsys):
    write("src/kernel.py", KERNEL)
    assert run("instrument", "src/kernel.py") == 0
    printed = capsys.readouterr()
    assert set(everything("stamped")) == {"kernel.py", "kernel.manifest.json"}
    assert strip(Path("stamped/kernel.py").read_bytes(), "x").decode() == KERNEL
    assert Path("src/kernel.py").read_text(encoding="utf-8") == KERNEL
    manifest = read_manifest(Path("stamped/kernel.manifest.json"))
    (file,) = manifest.files
    assert file.path == str(Path("src/kernel.py").resolve())
    assert [(site.method, site.role) for site in file.sites] == [
        ("producer_acquire", "load"),
        ("consumer_wait", "consumer"),
        ("consumer_release", "consumer"),
        ("sync_threads", ""),
    ]
    assert manifest.traces == ()
    header, row = (line.split("  ") for line in printed.out.splitlines()[:2])
    assert [cell.strip() for cell in header if cell.strip()] == [
        "file", "kernels", "waits", "signals", "roles", "skipped",
    ]  # fmt: skip
    assert [cell.strip() for cell in row if cell.strip()] == [
        "src/kernel.py", "1", "3", "1", "consumer 2, load 1, by caller 1", "AS2101 1",
    ]  # fmt: skip
    assert "kernel K.kernel at src/kernel.py:10" in printed.out
    assert "are listed in the manifest and by --json" in printed.out
    assert [(skip.code, skip.span.line, skip.span.column) for skip in file.skips] == [("AS2101", 14, 13)]
    assert "wrote 1 stamped file and stamped/kernel.manifest.json" in printed.err


def test_the_folder_is_chosen_with_o(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "-o", "a/b", "-q") == 0
    assert set(everything("a/b")) == {"kernel.py", "kernel.manifest.json"}
    assert capsys.readouterr() == ("", "")


def test_several_files_and_one_manifest():
    write("kernel.py", KERNEL)
    write("helper.py", HELPER)
    assert run("instrument", "kernel.py", "helper.py", "kernel.py", "-o", "out") == 0
    assert set(everything("out")) == {"kernel.py", "helper.py", "autostamp.manifest.json"}
    names = [Path(file.path).name for file in read_manifest(Path("out/autostamp.manifest.json")).files]
    assert sorted(names) == ["helper.py", "kernel.py"]


def test_a_folder_keeps_its_shape_and_leaves_out_what_has_no_stamp():
    write("pkg/__init__.py", "")
    write("pkg/kernel.py", KERNEL)
    write("pkg/deep/er/helper.py", HELPER)
    write("pkg/plain.py", PLAIN)
    write("pkg/.hidden/kernel.py", KERNEL)
    write("pkg/__pycache__/kernel.py", KERNEL)
    write("pkg/data.txt", KERNEL)
    assert run("instrument", "pkg", "-o", "out") == 0
    assert set(everything("out")) == {"kernel.py", "deep/er/helper.py", "autostamp.manifest.json"}


def test_a_second_run_does_not_stamp_what_the_first_one_wrote():
    write("kernel.py", KERNEL)
    assert run("instrument", ".") == 0
    first = everything()
    assert run("instrument", ".") == 0
    assert everything() == first


def test_a_folder_can_be_stamped_in_place_and_stripped_again():
    write("pkg/kernel.py", KERNEL)
    write("pkg/deep/helper.py", HELPER)
    write("pkg/plain.py", PLAIN)
    before = everything("pkg")
    assert run("instrument", "pkg", "-o", "pkg") == 0
    stamped = everything("pkg")
    assert is_stamped(stamped["kernel.py"])
    assert is_stamped(stamped["deep/helper.py"])
    assert stamped["plain.py"] == before["plain.py"]
    assert run("instrument", "pkg", "-o", "pkg") == 0
    assert everything("pkg") == stamped
    assert run("strip", "pkg") == 0
    after = everything("pkg")
    del after["autostamp.manifest.json"]
    assert after == before


def test_two_files_that_would_be_written_to_one_place(capsys):
    write("a/kernel.py", KERNEL)
    write("b/kernel.py", HELPER)
    assert run("instrument", "a/kernel.py", "b/kernel.py", "-o", "out") == 2
    assert "AS9001 a/kernel.py and b/kernel.py would both be written to out/kernel.py" in capsys.readouterr().err
    assert not Path("out").exists()


def test_an_installed_module_and_package(monkeypatch):
    write("site/pkgauto/__init__.py", "")
    write("site/pkgauto/sub/__init__.py", "")
    write("site/pkgauto/sub/kernel.py", KERNEL)
    write("site/pkgauto/sub/helper.py", HELPER)
    write("site/modauto.py", HELPER)
    monkeypatch.syspath_prepend(str(Path("site").resolve()))
    assert run("instrument", "pkgauto", "-o", "one") == 0
    assert set(everything("one")) == {
        "pkgauto/sub/kernel.py",
        "pkgauto/sub/helper.py",
        "autostamp.manifest.json",
    }
    assert run("instrument", "pkgauto.sub.kernel", "-o", "two") == 0
    assert set(everything("two")) == {"kernel.py", "kernel.manifest.json"}
    assert run("instrument", "pkgauto.sub", "modauto", "-o", "three") == 0
    assert set(everything("three")) == {"sub/kernel.py", "sub/helper.py", "modauto.py", "autostamp.manifest.json"}


def test_diff_prints_and_writes_nothing(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--diff") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("--- a/kernel.py\n+++ b/kernel.py\n@@ ")
    assert "-        cute.arch.sync_threads()\n" in printed
    assert "+        _as.enter(4, text='CTA'); cute.arch.sync_threads(); _as.exit(4); _as.release()\n" in printed
    assert set(everything()) == {"kernel.py"}


def test_check_says_whether_anything_would_change():
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--check") == 1
    assert set(everything()) == {"kernel.py"}
    assert run("instrument", "kernel.py", "-o", ".") == 0
    assert run("instrument", "kernel.py", "--check") == 0
    assert run("instrument", "kernel.py", "--check", "--skip", "kind=signal") == 1


def test_json_describes_files_and_findings(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--json") == 0
    printed = capsys.readouterr()
    value = json.loads(printed.out)
    assert printed.err == ""
    assert value["schema_version"] == 1
    assert value["findings"] == []
    (file,) = value["files"]
    assert file["kernels"] == [{"name": "K.kernel", "line": 10, "threaded": True}]
    assert (file["path"], file["sites"]) == ("kernel.py", 4)
    assert file["by_kind"] == {"wait": 3, "signal": 1}
    assert file["by_role"] == {"load": 1, "consumer": 2, "(by caller)": 1}
    assert file["skipped"] == {"AS2101": 1}
    (skip,) = file["skips"]
    assert (skip["line"], skip["column"], skip["code"]) == (14, 13, "AS2101")
    assert skip["call"] == "pipe.producer_try_acquire(state)"
    assert Path("stamped/kernel.py").is_file()


def test_json_of_a_finding(capsys):
    write("broken.py", BROKEN)
    assert run("instrument", "broken.py", "--json") == 1
    value = json.loads(capsys.readouterr().out)
    (finding,) = value["findings"]
    assert (finding["code"], finding["path"], finding["line"], finding["column"]) == ("AS1001", "broken.py", 5, 12)
    assert value["files"] == []


def test_only_and_skip(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--only", "kind=wait,role=load", "--only", "kind=signal", "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["by_kind"] == {"wait": 1, "signal": 1}
    assert file["skipped"] == {"AS2101": 1, "AS2106": 2}


def test_the_table_in_pyproject_counts(capsys):
    write("pyproject.toml", '[tool.autostamp]\nskip = ["kind=signal"]\n')
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["by_kind"] == {"wait": 3}


def test_a_wrong_key_in_pyproject(capsys):
    write("pyproject.toml", '[tool.autostamp]\nskp = ["kind=signal"]\n')
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py") == 2
    printed = capsys.readouterr().err
    assert "AS9003 unknown key skp in [tool.autostamp]" in printed
    assert "Did you mean skip?" in printed


def test_a_wrong_term(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "--only", "colour=red") == 2
    assert "AS9001" in capsys.readouterr().err


def test_stdin_to_stdout(type_in, capfdbinary):
    type_in(KERNEL.encode())
    assert run("instrument", "-") == 0
    sys.stdout.flush()
    printed = capfdbinary.readouterr()
    assert strip(printed.out, "x").decode() == KERNEL
    assert printed.err == b""
    assert everything() == {}


def test_stdin_with_diff_check_and_json(type_in, capsys):
    type_in(KERNEL.encode())
    assert run("instrument", "-", "--diff", "--stdin-filename", "my/kernel.py") == 0
    assert capsys.readouterr().out.startswith("--- a/my/kernel.py\n+++ b/my/kernel.py\n@@ ")
    type_in(KERNEL.encode())
    assert run("instrument", "-", "--check", "-q") == 1
    assert capsys.readouterr().out == ""
    type_in(KERNEL.encode())
    assert run("instrument", "-", "--json", "--stdin-filename", "my/kernel.py") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["path"], file["sites"]) == ("my/kernel.py", 4)


@pytest.mark.parametrize(("text", "code"), [(BROKEN, "AS1001"), (NO_KERNEL, "AS1003"), (NO_SITE, "AS1004")])
def test_stdin_with_nothing_to_stamp(type_in, capsys, text, code):
    type_in(text.encode())
    assert run("instrument", "-", "--stdin-filename", "k.py") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert code in printed.err
    assert "k.py" in printed.err


def test_a_file_that_is_not_python(capsys):
    write("good.py", KERNEL)
    write("broken.py", BROKEN)
    assert run("instrument", "good.py", "broken.py") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("broken.py:5:12: AS1001 broken.py is not Python")
    assert lines[1] == "    5 |     p.wait(]"
    assert lines[2] == "      |            ^"
    assert lines[3].startswith("help: ")
    assert set(everything()) == {"good.py", "broken.py"}


def test_a_folder_with_one_broken_file_is_not_written_at_all(capsys):
    write("pkg/good.py", KERNEL)
    write("pkg/broken.py", BROKEN)
    assert run("instrument", "pkg") == 1
    printed = capsys.readouterr()
    assert "pkg/broken.py:5:12: AS1001" in printed.err
    assert "pkg/good.py" in printed.out
    assert not Path("stamped").exists()


def test_a_file_that_is_not_utf_8(capsys):
    write("latin.py", b"import cutlass\nx = '\xe9'\ndef f(p):\n    p.wait()\n")
    assert run("instrument", "latin.py") == 1
    assert "AS1002 latin.py is not UTF-8 text" in capsys.readouterr().err
    assert set(everything()) == {"latin.py"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (NO_KERNEL, "AS1003 no kernel in x.py"),
        (PLAIN, "AS1003 no kernel in x.py"),
        ("", "AS1003 no kernel in x.py"),
        (NO_SITE, "AS1004 no sync call in x.py"),
    ],
)
def test_a_file_without_anything_to_stamp(capsys, text, code):
    write("x.py", text)
    assert run("instrument", "x.py") == 1
    assert code in capsys.readouterr().err
    assert set(everything()) == {"x.py"}


@pytest.mark.parametrize(
    "files", [{}, {"pkg/plain.py": PLAIN}, {"pkg/poll.py": "import cute\ndef f(p): p.try_wait()\n"}]
)
def test_a_folder_without_anything_to_stamp(capsys, files):
    Path("pkg").mkdir()
    for name, text in files.items():
        write(name, text)
    assert run("instrument", "pkg") == 1
    assert "AS1004 no sync call in pkg" in capsys.readouterr().err
    assert set(everything()) == set(files)


@pytest.mark.parametrize(
    "name", ["nosuch.py", "no.such.module", "nosuch", "a/b/c.py", "-x.py/", "specless", "../nosuch", "a b"]
)
def test_a_name_that_is_nothing(capsys, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "specless", ModuleType("specless"))
    write("kernel.py", KERNEL)
    assert run("instrument", "--", "kernel.py", name) == 2
    assert f"AS9002 {name}: no such file, folder or installed module" in capsys.readouterr().err
    assert set(everything()) == {"kernel.py"}


def test_no_name_is_wrong_usage(capsys):
    assert run("instrument") == 2
    assert "Usage: autostamp instrument" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(capsys):
    write("kernel.py", KERNEL)
    write("helper.py", HELPER)
    write("blocked", "a file where a folder should be")
    before = everything()
    assert run("instrument", "kernel.py", "helper.py", "-o", "blocked/out") == 2
    assert "AS7001 cannot write blocked/out/kernel.py: Not a directory" in capsys.readouterr().err
    assert everything() == before


def test_nothing_is_written_when_one_file_cannot_be(capsys):
    write("a.py", KERNEL)
    write("b.py", HELPER)
    Path("out/b.py").mkdir(parents=True)
    assert run("instrument", "a.py", "b.py", "-o", "out") == 2
    assert "AS7001 cannot write out/b.py: Is a directory" in capsys.readouterr().err
    assert everything("out") == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(capsys):
    write("kernel.py", KERNEL)
    Path("closed").mkdir(mode=0o500)
    assert run("instrument", "kernel.py", "-o", "closed") == 2
    assert "AS7001" in capsys.readouterr().err


def test_instrumenting_a_stamped_file_changes_nothing():
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "-o", "one") == 0
    assert run("instrument", "one/kernel.py", "-o", "two") == 0
    assert everything("two")["kernel.py"] == everything("one")["kernel.py"]


def test_instrumenting_a_stamped_file_that_was_edited(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "-o", ".") == 0
    edited = write("kernel.py", Path("kernel.py").read_bytes().replace(b"sync_threads", b"sync_warp"))
    assert run("instrument", "kernel.py", "-o", "out") == 1
    assert "AS3002 kernel.py holds stamps but was edited" in capsys.readouterr().err
    assert run("strip", edited) == 1
    assert "AS3002" in capsys.readouterr().err


def test_strip_restores_in_place(capsys):
    write("kernel.py", KERNEL)
    assert run("instrument", "kernel.py", "-o", ".", "-q") == 0
    assert run("strip", "kernel.py") == 0
    assert Path("kernel.py").read_text(encoding="utf-8") == KERNEL
    assert "restored 1 file" in capsys.readouterr().err


def test_strip_into_another_folder():
    write("pkg/a/kernel.py", KERNEL)
    write("pkg/helper.py", HELPER)
    assert run("instrument", "pkg", "-o", "stamped") == 0
    before = everything("stamped")
    assert run("strip", "stamped", "-o", "out", "-q") == 0
    assert everything("out") == everything("pkg")
    assert everything("stamped") == before


def test_strip_check_says_which_files_hold_stamps(capsys):
    write("kernel.py", KERNEL)
    assert run("strip", "kernel.py", "--check") == 0
    assert run("instrument", "kernel.py", "-o", ".", "-q") == 0
    capsys.readouterr()
    assert run("strip", ".", "--check") == 1
    assert capsys.readouterr().out == "kernel.py holds stamps\n"
    assert is_stamped(Path("kernel.py").read_bytes())


def test_strip_of_a_file_without_stamps(capsys):
    write("kernel.py", KERNEL)
    assert run("strip", "kernel.py") == 1
    assert "AS3005 kernel.py holds no stamps to strip" in capsys.readouterr().err


def test_strip_restores_all_files_or_none(capsys):
    write("pkg/a.py", KERNEL)
    write("pkg/b.py", HELPER)
    assert run("instrument", "pkg", "-o", "pkg", "-q") == 0
    write("pkg/b.py", Path("pkg/b.py").read_bytes().replace(b"meet", b"meat"))
    before = everything("pkg")
    assert run("strip", "pkg") == 1
    assert "AS3002 pkg/b.py" in capsys.readouterr().err
    assert everything("pkg") == before


def test_strip_of_nothing(capsys):
    assert run("strip", "nosuch.py") == 2
    assert "AS9002 nosuch.py" in capsys.readouterr().err
    Path("dangling.py").symlink_to("nowhere")
    assert run("strip", ".") == 2
    assert "AS9002 dangling.py: No such file" in capsys.readouterr().err


def test_strip_from_stdin_to_stdout(type_in, capfdbinary):
    type_in(KERNEL.encode())
    assert run("instrument", "-") == 0
    sys.stdout.flush()
    type_in(capfdbinary.readouterr().out)
    assert run("strip", "-") == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out.decode() == KERNEL


def test_in_a_shell():
    """The whole way through a pipe: what goes in comes out."""
    python = f"{sys.executable} -m autostamp"
    line = f"{python} instrument - | {python} strip -"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(line, shell=True, input=KERNEL.encode(), capture_output=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, KERNEL, b"")
