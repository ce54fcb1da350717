# SPDX-License-Identifier: Apache-2.0
"""`autostamp demo`: the whole path on the bundled GEMM, as far as this machine can go."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import click

from autostamp.cli.options import no_color_option
from autostamp.diagnostics import AutostampError

KERNELS = Path(__file__).parent.parent / "kernels" / "cuda"
KERNEL = KERNELS / "gemm" / "gemm_plain.cu"
RECORDED = KERNELS / "recorded" / "gemm_plain_h200"
INSTANCE = "gemm_plainIf"
"""What the symbol of the kernel for TF32, which runs, holds; the other is for bf16."""
SHAPE = ("2048", "2048", "2048")
"""M, N and K: of the recorded trace, too."""
ARCH = "sm_90a"
NVCC = ("nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Where to write."
)
@no_color_option
def command(out: Path) -> int:
    """Stamp the bundled warp-specialized GEMM, compile it, run it (or replay a recorded H200 trace), and report."""
    out.mkdir(parents=True, exist_ok=True)
    source = out / "source"
    click.echo("1. Stamp the kernel: nothing in it was written for autostamp.\n")
    _autostamp("instrument", str(KERNEL), "-o", str(source))
    compared = None
    if shutil.which(NVCC[0]):
        click.echo(f"\n2. Compile it for {ARCH}, clean and stamped, and compare. No GPU is needed.\n")
        compared = _compare(out, source / KERNEL.name)
    else:
        click.echo("\n2. No nvcc here, so nothing is compiled: `autostamp doctor` says what to install.")
    run = _run(out)
    click.echo("\n4. Where the time went.\n")
    _autostamp("summary", str(run), "--top", "8")
    page, picture, trace = out / "report.html", out / "gemm.svg", out / "gemm.pftrace"
    forms = ("-o", str(page), "--svg", str(picture), "--perfetto", str(trace))
    click.echo()
    _autostamp("report", str(run), *forms, *(("--safety", str(compared)) if compared else ()), "-q")
    click.echo("\nFiles:")
    for path, what in (
        (page, "the report: open it in a browser; it needs no network"),
        (source, "stamped source and manifest"),
        *([(out / "stamped.cubin", "stamped cubin, PTX beside it")] if compared else []),
        (run, "run folder: manifest, records, machine facts"),
        (picture, "timeline as a picture"),
        (trace, "timeline, for a Perfetto viewer"),
    ):
        click.echo(f"  {path}  ({what})")
    return 0


def _compare(out: Path, stamped_source: Path) -> Path:
    """Show what the stamps changed in the cubin, and return the file that holds it for the report: of the kernel that runs."""
    from autostamp.runtime.manifest_file import write_whole

    clean, stamped, ptx = (out / name for name in ("clean.cubin", "stamped.cubin", "stamped.ptx"))
    _nvcc("-cubin", "-o", str(clean), str(KERNEL))
    for kind, file in (("-cubin", stamped), ("-ptx", ptx)):
        _nvcc("-DAUTOSTAMP=1", kind, "-o", str(file), str(stamped_source))
    words = ("safety", "--clean", str(clean), "--stamped", str(stamped), "--ptx", str(ptx))
    _autostamp(*words, may_find=True)
    compared = out / "safety.json"
    _autostamp(*words, "--json", may_find=True, into=compared)
    content = json.loads(compared.read_bytes())
    content["kernels"] = [row for row in content["kernels"] if INSTANCE in row["kernel"]]
    write_whole(compared, json.dumps(content).encode())
    return compared


def _nvcc(*words: str) -> None:
    """Run the compiler as a user would. What it has to say is shown when it fails."""
    click.echo(f"$ {' '.join((*NVCC, *words))}")
    done = subprocess.run([*NVCC, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise AutostampError.of("AS4003", tool="compiling the sample kernel", detail=lines[-1])


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


def _run(out: Path) -> Path:
    """A run on this machine's GPU, else the recorded one."""
    from autostamp.runtime.devices import find_gpus

    if not find_gpus()[0] or not shutil.which(NVCC[0]):
        click.echo("\n3. Nothing runs here: replaying the trace of the same program that was recorded on an H200.\n")
        return RECORDED
    click.echo("\n3. Run it on this GPU; the program compares the result with a reference.\n")
    program, folder = out / KERNEL.stem, out / "RUN"
    _autostamp("nvcc", "--", *NVCC, "-o", str(program), str(KERNEL))
    _autostamp("run", "-o", str(folder), "--", str(program.resolve()), *SHAPE)
    return folder
