# SPDX-License-Identifier: Apache-2.0
"""`autostamp run -- ./app`: what the program is told, whose exit status it is, and what becomes of what it leaves.

The programs are scripts that leave a drain file, as a stamped program's host runtime would.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.hooks.native import NativeOptions, row_of, run
from autostamp.hooks.state import StateFolder
from autostamp.hooks.unit_texts import UnitPlace, find_units, texts_of
from autostamp.model.edit import Edit
from autostamp.model.manifest import Manifest
from autostamp.model.options import RecordOptions
from autostamp.model.sync import Kind, Side
from autostamp.passes import edits
from autostamp.runtime import store
from autostamp.runtime.manifest_file import write_manifest
from tests.cuda_drains import KEY, SIGNATURE, entry, region, site, unit_manifest, write_drain

VISIT = [(1100, 5), (1200, 6)]
THIRD = [(1001, 7), (1002, 8)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """An empty working folder and an empty state folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOSTAMP_STATE", str(tmp_path / "state"))
    return tmp_path


def app(place: Path, body: str, name: str = "app") -> str:
    """A program: a shell script, with DRAIN for the folder of drain files."""
    path = place / name
    path.write_text(f'#!/bin/sh\nDRAIN="$AUTOSTAMP_RUN"\n{body}\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def leaving(place: Path, end: str = "", drained: str = "exit", stem: str = "drain", **more: object) -> str:
    """A program that leaves the records of two kernels and then does `end`."""
    rows = [
        (entry(sequence=1, slot=1), region(0, {0: VISIT})),
        (entry(sequence=2, slot=2), region(1, {0: THIRD, 1: THIRD})),
    ]
    write_drain(place / "left.bin", rows, drained=drained, **more)
    return app(place, f'cp {place}/left.bin "$DRAIN/{stem}-77-0.bin"\n{end}')


def with_manifest(place: Path, manifest: Manifest | None = None) -> Path:
    path = place / "stamped" / "autostamp.manifest.json"
    write_manifest(path, manifest or unit_manifest())
    return path


def test_a_run_folder_is_made(place, capsys):
    program = leaving(place)
    assert (
        cli.main(["run", "-o", "OUT", "--manifest", str(with_manifest(place).parent), "--", program, "--size", "4"])
        == 0
    )
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "wrote OUT; read it with: autostamp summary OUT\n")
    data = store.load_run(Path("OUT"))
    assert [(trace.number, trace.kernel) for trace in data.manifest.traces] == [(1, "second"), (2, "third")]
    assert [len(trace.lanes) for trace in data.traces.values()] == [1, 2]
    assert data.facts.command == (program, "--size", "4")
    assert (data.facts.gpu, data.facts.sm_count, data.facts.versions["cuda_driver"]) == ("NVIDIA Test", 132, "13000")
    # 110 cycles in 55 ns, 12 in 6, twice.
    assert data.facts.sm_mhz == 2000.0
    assert cli.main(["summary", "OUT"]) == 0
    assert "__syncthreads" in capsys.readouterr().out


def test_what_the_program_is_told(place, capfd):
    program = app(
        place,
        'echo "$AUTOSTAMP_CAPACITY $AUTOSTAMP_BLOCK $AUTOSTAMP_LAUNCH $AUTOSTAMP_MEMORY"; ls -d "$DRAIN"; echo "$@"',
    )
    assert cli.main(["run", "-q", "--", program, "-o", "x"]) == 1
    told, folder, words = capfd.readouterr().out.splitlines()
    assert (told, words) == ("4096 0,0,0 last device", "-o x")
    assert not Path(folder).exists()
    cli.main(["run", "--capacity", "64", "--block", "1,2,3", "--launch", "7", "--mapped", "--", program])
    told, folder, _ = capfd.readouterr().out.splitlines()
    assert told == "64 1,2,3 7 mapped"
    # A file that a device writes to cannot lie on a disk.
    assert Path(folder).parent == Path("/dev/shm") or not os.access("/dev/shm", os.W_OK)
    cli.main(["run", "--launch", "all", "--", program])
    assert capfd.readouterr().out.split()[2] == "all"


def test_the_exit_status_is_the_programs(place, capsys):
    manifest = str(with_manifest(place))
    assert cli.main(["run", "-q", "--manifest", manifest, "--", leaving(place, "exit 7")]) == 7
    assert Path("RUN").is_dir()
    assert cli.main(["run", "-q", "--", app(place, "exit 3")]) == 3
    assert "AS5010" in (said := capsys.readouterr().err)
    assert "it ended with status 3, before a launch of a stamped kernel or without its exit handlers" in said
    assert "--mapped" in said


def test_a_program_without_stamps(place, capsys):
    assert cli.main(["run", "--", "ls"]) == 1
    assert "AS5010 ls recorded nothing: it came to no launch of a stamped kernel" in capsys.readouterr().err
    assert not Path("RUN").exists()


def test_a_block_that_is_in_no_grid(place, capsys):
    write_drain(place / "left.bin", [], unused=3, block=[9, 0, 0])
    assert cli.main(["run", "--", app(place, f'cp {place}/left.bin "$DRAIN/drain-77-0.bin"')]) == 1
    assert "of 3 regions that were given out, CTA 9,0,0 of no kernel wrote to one" in capsys.readouterr().err


def test_a_program_that_is_killed(place, capsys):
    assert cli.main(["run", "--", app(place, "kill -9 $$")]) == 128 + 9
    assert "app was ended by SIGKILL before its records were read" in capsys.readouterr().err
    assert not Path("RUN").exists()


def test_records_that_outlive_the_program(place, capsys):
    program = leaving(place, "kill -15 $$", drained="mapped", stem="mapped")
    assert cli.main(["run", "--mapped", "--manifest", str(with_manifest(place)), "--", program]) == 128 + 15
    said = capsys.readouterr().err
    assert "AS5012" in said
    assert "app was ended by SIGTERM; records of 2 kernel traces were saved" in said
    assert "wrote RUN" in said
    assert len(store.load_run(Path("RUN")).traces) == 2


def test_a_mapped_program_that_is_killed_before_a_launch(place, capsys):
    assert cli.main(["run", "--mapped", "--", app(place, "kill -9 $$")]) == 128 + 9
    assert "AS5011" in capsys.readouterr().err


def test_a_unit_whose_manifest_is_nowhere(place, capsys):
    assert cli.main(["run", "--", leaving(place)]) == 1
    assert "AS5013 no manifest of unit ffffffff was found, which /tmp/app holds" in capsys.readouterr().err
    assert not Path("RUN").exists()


def test_the_manifest_of_another_unit(place, capsys):
    with_manifest(place, unit_manifest(signature=5))
    assert cli.main(["run", "--manifest", "stamped", "--", leaving(place)]) == 1
    assert "AS5013" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_manifest_that_is_none(place, capsys, content):
    if content is not None:
        (place / "m.json").write_text(content, encoding="utf-8")
    assert cli.main(["run", "--manifest", "m.json", "--", leaving(place)]) in (1, 2)
    assert ("AS9002" if content is None else "AS6003") in capsys.readouterr().err


def test_the_program_names_its_manifest(place):
    manifest = with_manifest(place)
    (manifest.parent / "other.manifest.json").write_text("no manifest", encoding="utf-8")
    for named in (manifest, manifest.parent):
        units = [{"signature": SIGNATURE, "slots": 3, "launches": 1, "manifest": str(named)}]
        result = run([leaving(place, units=units)], Path("RUN"), NativeOptions())
        assert (result.status, result.findings, result.was_written) == (0, (), True)


def test_the_state_folder_has_manifest_and_texts(place):
    state = StateFolder.of(os.environ)
    write_manifest(state.manifest(SIGNATURE), unit_manifest())
    for kind in ("original", "stamped"):
        path = state.texts(SIGNATURE) / kind / KEY / "first.cuh"
        path.parent.mkdir(parents=True)
        path.write_text(f"// {kind}\n", encoding="utf-8")
    assert run([leaving(place)], Path("RUN"), NativeOptions()).was_written
    sources = Path("RUN/sources")
    found = {path.relative_to(sources).as_posix(): path.read_text(encoding="utf-8") for path in sources.rglob("*.cu*")}
    assert found == {f"original/{KEY}/first.cuh": "// original\n", f"stamped/{KEY}/first.cuh": "// stamped\n"}


def test_what_the_user_names_comes_first(place):
    state = StateFolder.of(os.environ)
    write_manifest(state.manifest(SIGNATURE), unit_manifest())
    given = with_manifest(place)
    assert find_units([SIGNATURE], [given], [], state)[SIGNATURE].path == given
    assert find_units([SIGNATURE], [], [given], state)[SIGNATURE].path == given
    kept = find_units([SIGNATURE], [], [], state)[SIGNATURE]
    assert (kept.path, kept.texts) == (state.manifest(SIGNATURE), state.texts(SIGNATURE))
    assert find_units([3], [], [place / "nosuch"], state) == {}


def test_texts_beside_the_manifest(place):
    original = b"__global__ void k() {}\n"
    stamped = edits.apply(original, [Edit(0, 0, "/* stamps */ ")], comment="//")
    first = replace(unit_manifest().files[0], sha256=hashlib.sha256(original).hexdigest(), path="src/first.cuh")
    manifest = replace(unit_manifest(), files=(first,))
    folder = place / "out"
    (folder / "src").mkdir(parents=True)
    unit = UnitPlace(manifest, folder / "autostamp.manifest.json")
    assert texts_of(unit, {KEY}) == {}
    (folder / "src/first.cuh").write_bytes(stamped)
    assert texts_of(unit, {KEY}) == {
        f"original/{KEY}/first.cuh": original.decode(),
        f"stamped/{KEY}/first.cuh": stamped.decode(),
    }
    assert texts_of(unit, {"another"}) == {}
    (folder / "src/first.cuh").write_bytes(stamped + b"// edited\n")
    assert texts_of(unit, {KEY}) == {}


def test_broken_records_cost_only_their_own_kernel(place, capsys):
    # A clock that goes back in a released lane, and an event that no site has.
    rows = [
        (entry(sequence=1, slot=1), region(0, {0: [(1200, 5), (1100, 6)]})),
        (entry(sequence=2, slot=2), region(1, {0: THIRD})),
        (entry(sequence=3, slot=0), region(SIGNATURE, {0: [(1001, 60)]})),
    ]
    write_drain(place / "left.bin", rows)
    program = app(place, f'cp {place}/left.bin "$DRAIN/drain-77-0.bin"')
    assert cli.main(["run", "--manifest", str(with_manifest(place)), "--", program]) == 1
    said = capsys.readouterr().err
    assert (
        "AS5015 records of second are doubtful: lane 0: the clock of record 1 is earlier than that of record 0" in said
    )
    assert "AS5015 records of ns::first are doubtful: event 60 is not in the manifest" in said
    assert [trace.kernel for trace in store.load_run(Path("RUN")).manifest.traces] == ["third"]


def test_kernels_and_launches_that_are_wanted(place, capsys):
    manifest = str(with_manifest(place))
    assert cli.main(["run", "-q", "--manifest", manifest, "--kernel", "^th", "--", leaving(place)]) == 0
    assert [trace.kernel for trace in store.load_run(Path("RUN")).manifest.traces] == ["third"]
    assert cli.main(["run", "-o", "NONE", "--manifest", manifest, "--kernel", "gemm", "--", leaving(place)]) == 1
    assert (
        "AS5018 nothing was recorded of a kernel named like 'gemm': recorded were: second, third"
        in capsys.readouterr().err
    )
    assert not Path("NONE").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--instrument", "flash"], "--instrument: CUDA C++ is stamped when it is built"),
        (["--only", "kind=wait", "--no-stage"], "--only, --no-stage: CUDA C++ is stamped when it is built"),
        (["--launch", "0"], "'0' is not last, all or a number from 1"),
        (["--launch", "first"], "'first' is not last, all or a number from 1"),
        (["--kernel", "("], "'(' is not a regular expression"),
    ],
)
def test_options_that_mean_nothing_to_a_native_program(place, capsys, options, said):
    assert cli.main(["run", *options, "--", "ls"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"), [(["--launch", "2"], "--launch"), (["--mapped", "--kernel", "x"], "--kernel, --mapped")]
)
def test_options_that_mean_nothing_to_a_python_program(place, capsys, options, named):
    assert cli.main(["run", *options, "--", "bench.py"]) == 2
    assert f"{named}: for programs that hold stamped CUDA C++" in capsys.readouterr().err


def test_what_cannot_be_started(place, capsys):
    (place / "text").write_text("no program\n", encoding="utf-8")
    for name, why in (("./nosuch", "No such file"), ("./text", "Permission denied")):
        assert cli.main(["run", "--", name]) == 2
        said = capsys.readouterr().err
        assert f"AS5007 cannot run {name}: {why}" in said


def test_a_python_program_that_loads_stamped_libraries(place, capfd):
    leaving(place)
    script = place / "bench.py"
    lines = (
        "import os, shutil, sys",
        f"shutil.copy({str(place / 'left.bin')!r}, os.environ['AUTOSTAMP_RUN'] + '/drain-1-0.bin')",
        "print(sys.argv[1:])",
    )
    text = "\n".join((*lines, ""))
    script.write_text(text, encoding="utf-8")
    manifest = str(with_manifest(place))
    for words in (["bench.py"], [sys.executable, "-W", "ignore", "bench.py"], ["-m", "bench"]):
        assert cli.main(["run", "-q", "--native", "--manifest", manifest, "--", *words, "7"]) == 0
        assert capfd.readouterr().out == "['7']\n"
        assert len(store.load_run(Path("RUN")).traces) == 2


def test_an_interrupt_from_the_keyboard_leaves_the_records(place):
    """Ctrl-C reaches both processes; ours waits for the program and reads what it left."""
    program = leaving(place, f"kill -INT {os.getpid()}; kill -INT $$", drained="mapped", stem="mapped")
    options = NativeOptions(is_mapped=True, manifests=(with_manifest(place),))
    before = signal.getsignal(signal.SIGINT)
    result = run([program], Path("RUN"), options)
    assert signal.getsignal(signal.SIGINT) is before
    assert (result.status, [finding.code for finding in result.findings]) == (-signal.SIGINT, ["AS5012"])
    assert result.was_written


def test_the_environment_of_a_choice():
    options = NativeOptions(RecordOptions(32, (1, 0, 2)), "3", is_mapped=True)
    assert options.environment(Path("/x")) == {
        "AUTOSTAMP_RUN": "/x",
        "AUTOSTAMP_CAPACITY": "32",
        "AUTOSTAMP_BLOCK": "1,0,2",
        "AUTOSTAMP_LAUNCH": "3",
        "AUTOSTAMP_REPEAT": "1",
        "AUTOSTAMP_MEMORY": "mapped",
    }
    assert (options.wanted.keep, options.wanted.launch) == ("one", 3)
    assert NativeOptions(launch="all").wanted.keep == "all"


def test_rows_of_the_catalogue():
    assert row_of(site(1, "__syncthreads", Kind.WAIT, owner="cuda", side=Side.CTA)).signals == (Side.CTA,)  # type: ignore[union-attr]
    grid = row_of(site(1, "sync", Kind.WAIT, owner="cooperative_groups", side=Side.GRID))
    assert grid is not None
    assert grid.side is Side.GRID
    assert row_of(site(1, "my_wait", Kind.WAIT, owner="mine")) is None
