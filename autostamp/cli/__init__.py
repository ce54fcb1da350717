# SPDX-License-Identifier: Apache-2.0
"""The `autostamp` command: one module per subcommand, imported when that subcommand runs.

Each module named in `COMMANDS` holds a click command called `command`. Results go to stdout, notes and findings to
stderr. Exit status: 0 done, 1 findings, 2 wrong usage or a fault of autostamp, 3 no GPU or toolchain, 130 interrupted,
141 when the reader of stdout went away.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from autostamp import __version__
from autostamp.cli.options import no_color_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

COMMANDS: dict[str, tuple[str, str]] = {
    "instrument": ("autostamp.cli.instrument", "Stamp source files and write their manifest."),
    "strip": ("autostamp.cli.strip", "Take the stamps out again, byte for byte."),
    "run": ("autostamp.cli.run", "Run a program; record its stamped kernels."),
    "launch": ("autostamp.cli.launch", "Launch a CUDA C++ kernel stamped and clean; compare; record."),
    "decode": ("autostamp.cli.decode", "Turn a run's records into events."),
    "summary": ("autostamp.cli.summary", "Say per warp, role and site where the time went."),
    "report": ("autostamp.cli.report", "Write the verdict and the timeline as one HTML page."),
    "diff": ("autostamp.cli.diff", "Say what changed from one run to another."),
    "export": ("autostamp.cli.export", "Write a run as a picture (SVG) or for Perfetto."),
    "probe": ("autostamp.cli.probe", "Measure rates and latencies of this GPU."),
    "safety": ("autostamp.cli.safety", "Compare the stamped kernel with the clean one."),
    "machine": ("autostamp.cli.machine", "Show what is known of a GPU product, and check a machine file."),
    "sass": ("autostamp.cli.sass", "Show the main loops of a cubin, or what changed in them."),
    "predict": ("autostamp.cli.predict", "Say what a kernel's main loop should take, before it runs."),
    "reconcile": ("autostamp.cli.reconcile", "Hold a prediction against a run: what differs, and why."),
    "lessons": ("autostamp.cli.lessons", "Keep what was learnt where they differed."),
    "doctor": ("autostamp.cli.doctor", "Say what is installed and what can run here."),
    "explain": ("autostamp.cli.explain", "Print the page of an AS#### code."),
    "place": ("autostamp.cli.place", "Find where stamps leave a kernel's schedule alone; no GPU."),
    "nvcc": ("autostamp.cli.nvcc", "Compile with stamps, in the place of nvcc in any build."),
    "demo": ("autostamp.cli.demo", "Stamp, compile and time a bundled sample kernel."),
}
"""Subcommand: the module that holds it, and the line that `--help` shows without importing that module."""

INTERRUPTED = 130
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended


class _PipeClosedError(Exception):
    """The reader of stdout went away. Not an OSError: click turns that one into exit status 1, which means findings."""


class _LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _PipeClosedError from error
        return result


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="autostamp")
@no_color_option
def cli() -> None:
    """Stamp every wait and signal of a warp-specialized GPU kernel, run it, and read a per-warp timeline."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's) and return its exit status; findings are rendered to stderr.

    A SystemExit raised by a command passes through: `autostamp run` ends with the status of the program it ran.
    """
    try:
        status = cli.main(args=arguments, prog_name="autostamp", standalone_mode=False)
    except AutostampError as error:
        click.echo(render(error.diagnostic), err=True)
        return error.diagnostic.status
    except click.ClickException as error:
        error.show()
        return ExitStatus.USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except _PipeClosedError:
        _forget_stdout()
        return PIPE_CLOSED
    except Exception as error:  # the last resort: a fault of ours must still end with a code
        traceback.print_exc()
        click.echo(render(Diagnostic.of("AS9999", detail=f"{type(error).__name__}: {error}")), err=True)
        return ExitStatus.USAGE
    return status if isinstance(status, int) else ExitStatus.OK


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's flush at exit does not fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
