# SPDX-License-Identifier: Apache-2.0
"""`autostamp demo`: the whole path on the bundled GEMM, as far as this machine can go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import click

from autostamp.cli.options import no_color_option
from autostamp.diagnostics import AutostampError

KERNEL = "autostamp.kernels.cutedsl.gemm_ws"
PROGRAM = ("-m", "autostamp.kernels.cutedsl.gemm_ws_reference", "--m", "256", "--n", "256", "--k", "2048")
ARCH = "sm_90a"


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Where to write."
)
@no_color_option
def command(out: Path) -> int:
    """Stamp the bundled warp-specialized GEMM, compile it, run it (or replay a recorded H200 trace), and report."""
    out.mkdir(parents=True, exist_ok=True)
    click.echo("1. Stamp the kernel: nothing in it was written for autostamp.\n")
    _autostamp("instrument", KERNEL, "-o", str(out / "source"))
    click.echo(f"\n2. Compile it for {ARCH}, clean and stamped, and compare. No GPU is needed.\n")
    clean, stamped = _compile(out / "clean"), _compile(out / "stamped", _stamping(out / "compiled"))
    compared = _compare(out, clean, stamped)
    run = _run(out / "RUN")
    click.echo("\n4. Where the time went.\n")
    _autostamp("summary", str(run), "--top", "8")
    page, picture, trace = out / "report.html", out / "gemm.svg", out / "gemm.pftrace"
    forms = ("-o", str(page), "--svg", str(picture), "--perfetto", str(trace))
    click.echo()
    _autostamp("report", str(run), *forms, "--safety", str(compared), "-q")
    click.echo("\nFiles:")
    for path, what in (
        (page, "the report: open it in a browser; it needs no network"),
        (out / "source", "stamped source and manifest"),
        (stamped, "stamped cubin, PTX beside it"),
        (run, "run folder: manifest, records, machine facts"),
        (picture, "timeline as a picture"),
        (trace, "timeline, for a Perfetto viewer"),
    ):
        click.echo(f"  {path}  ({what})")
    return 0


def _compare(out: Path, clean: Path, stamped: Path) -> Path:
    """Show what the stamps changed in the cubin, and return the file that holds it for the report."""
    compared = out / "safety.json"
    files = ("--clean", str(clean), "--stamped", str(stamped), "--ptx", str(stamped.with_suffix(".ptx")))
    words = ("safety", *files, "--manifest", str(out / "compiled" / "manifest.json"))
    _autostamp(*words, may_find=True)
    _autostamp(*words, "--json", may_find=True, into=compared)
    return compared


def _autostamp(*words: str, may_find: bool = False, into: Path | None = None) -> None:
    """Run one of our own commands as a user would, and keep what it prints where `into` says so. Its findings (status 1) may be
    part of the show.
    """
    click.echo(f"$ autostamp {' '.join(words)}" + (f" > {into}" if into else ""))
    done = subprocess.run([sys.executable, "-m", "autostamp", *words], check=False, stdout=PIPE if into else None)
    if done.returncode > may_find:
        raise AutostampError.of("AS4003", tool="autostamp " + words[0], detail=f"exit status {done.returncode}")
    if into:
        from autostamp.runtime.manifest_file import write_whole

        write_whole(into, done.stdout)


def _stamping(folder: Path) -> list[str]:
    return [
        "-m",
        "autostamp",
        "run",
        "-q",
        "--instrument",
        KERNEL,
        "--compile-only",
        "-o",
        str(folder),
        "--",
        sys.executable,
    ]


def _compile(folder: Path, prefix: list[str] | None = None) -> Path:
    """Compile the GEMM in a process of its own and return its cubin, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    environment = {
        **os.environ,
        "CUTE_DSL_ARCH": ARCH,
        "CUTE_DSL_KEEP": "ptx,cubin",
        "CUTE_DSL_DUMP_DIR": str(folder),
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
    }
    command_line = [sys.executable, *(prefix or []), "-m", KERNEL]
    done = subprocess.run(command_line, env=environment, capture_output=True, text=True, check=False)
    cubins = sorted(folder.glob("*.cubin"))
    if done.returncode or not cubins:
        lines = done.stderr.strip().splitlines() or ["no cubin was written"]
        code = "AS4001" if "No module named 'cutlass" in done.stderr else "AS4003"
        raise AutostampError.of(code, tool="compiling the sample kernel", detail=lines[-1])
    cubin, ptx = folder / "gemm.cubin", folder / "gemm.ptx"
    cubins[0].rename(cubin)
    next(iter(folder.glob("*.ptx"))).rename(ptx)
    return cubin


def _run(folder: Path) -> Path:
    """A run on this machine's GPU, else the recorded one."""
    from autostamp.runtime.devices import find_gpus

    if find_gpus()[0]:
        click.echo("\n3. Run it on this GPU; the program compares the result with a reference.\n")
        _autostamp("run", "--instrument", KERNEL, "-o", str(folder), "--", sys.executable, *PROGRAM)
        return folder
    recorded = Path(__file__).parent.parent / "kernels" / "cutedsl" / "recorded" / "gemm_ws_h200"
    click.echo("\n3. No GPU here: replaying the trace of the same program that was recorded on an H200.\n")
    return recorded
