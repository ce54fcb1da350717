# SPDX-License-Identifier: Apache-2.0
"""`autostamp nvcc -- nvcc ARGS...`: compile with stamps, in the place of nvcc in any build."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.selection import placed, placement_options

if TYPE_CHECKING:
    from autostamp.model.options import InstrumentOptions, Selection


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--files",
    multiple=True,
    envvar="AUTOSTAMP_FILES",
    metavar="GLOB",
    help="Stamp only these files, by their path or its end; libraries may be named, too. [AUTOSTAMP_FILES]",
)
@click.option("--only", multiple=True, envvar="AUTOSTAMP_ONLY", metavar="TERM", help="Stamp only sites that match.")
@click.option("--skip", multiple=True, envvar="AUTOSTAMP_SKIP", metavar="TERM", help="Leave out sites that match.")
@placement_options
@click.option(
    "--carrier",
    type=click.Choice(["auto", "param", "symbol"]),
    default="auto",
    show_default=True,
    envvar="AUTOSTAMP_CARRIER",
    help="How kernels get their buffer. [AUTOSTAMP_CARRIER]",
)
@click.option(
    "--form",
    type=click.Choice(["auto", "lean", "usual"]),
    default="auto",
    show_default=True,
    envvar="AUTOSTAMP_FORM",
    help="Stamps with fewer registers alive and more instructions: lean. [AUTOSTAMP_FORM]",
)
@click.option(
    "--strict",
    is_flag=True,
    envvar="AUTOSTAMP_STRICT",
    help="Fail where the compilation would go on without stamps. [AUTOSTAMP_STRICT]",
)
@click.option(
    "-v", "--verbose", is_flag=True, envvar="AUTOSTAMP_VERBOSE", help="Say what was done. [AUTOSTAMP_VERBOSE]"
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] NVCC ARGS...")
def command(
    files: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    placement: Path | None,
    set_number: int | None,
    carrier: str,
    form: str,
    strict: bool,
    verbose: bool,
    words: tuple[str, ...],
) -> int:
    """Run an nvcc command line, device code from stamped copies. AUTOSTAMP=0 in the environment turns it off.

    Works as a compiler launcher: CMAKE_CUDA_COMPILER_LAUNCHER="autostamp;nvcc;--", PYTORCH_NVCC="autostamp nvcc -- nvcc",
    make NVCC="autostamp nvcc -- nvcc". Where a path alone can be given, name autostamp-nvcc. A compiler cache
    goes behind: autostamp nvcc -- ccache nvcc. Lists in variables are separated by spaces.
    """
    from autostamp.hooks.launcher import launch
    from autostamp.hooks.prepared_unit import LauncherOptions

    def settings(folder: Path) -> InstrumentOptions:
        chosen = placed(placement, set_number)
        _compare(chosen, words)
        return _settings(folder, only, skip, chosen)

    return launch(words, LauncherOptions(files, carrier, form, strict, verbose), settings, os.environ)


def _compare(chosen: Selection | None, words: tuple[str, ...]) -> None:
    """Say AS8108 where the placement was searched for with another nvcc."""
    if chosen is None or not chosen.toolchain:
        return
    from autostamp.diagnostics import Diagnostic, render
    from autostamp.runtime import compilers

    own = compilers.of_nvcc(words)
    if compilers.differs(chosen.toolchain, own):
        click.echo(render(Diagnostic.of("AS8108", recorded=chosen.toolchain, own=own)), err=True)


def _settings(
    folder: Path, only: tuple[str, ...], skip: tuple[str, ...], chosen: Selection | None
) -> InstrumentOptions:
    """The options for sources in a folder: of its project, else, as for code made in a cache, of the working folder's."""
    from autostamp.cli import config
    from autostamp.model.options import InstrumentOptions

    found = config.load(folder, only, skip, chosen)
    return config.load(Path.cwd(), only, skip, chosen) if found == InstrumentOptions() else found


def main() -> int:
    """`autostamp-nvcc ARGS...`: the same as `autostamp nvcc -- nvcc ARGS...`, for tools that take a path to a compiler."""
    from autostamp.cli import main as run

    return run(["nvcc", "--", _nvcc(), *sys.argv[1:]])


def _nvcc() -> str:
    """AUTOSTAMP_NVCC, else the first nvcc on PATH that is not this program, else that of CUDA_HOME or CUDA_PATH."""
    given = os.environ.get("AUTOSTAMP_NVCC")
    if given:
        return given
    own = os.path.realpath(sys.argv[0])
    folders = os.get_exec_path() + [
        f"{os.environ[home]}/bin" for home in ("CUDA_HOME", "CUDA_PATH") if home in os.environ
    ]
    found = (shutil.which("nvcc", path=folder) for folder in folders)
    return next((path for path in found if path and os.path.realpath(path) != own), "nvcc")
