# SPDX-License-Identifier: Apache-2.0
"""`autostamp run -- ./app`: the options for programs that hold stamped CUDA C++ kernels, and how one is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from autostamp.diagnostics import AutostampError, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.model.options import RecordOptions

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class NativeChoices:
    """What the options for native programs say, but for `--native` itself."""

    launch: str
    kernel: str
    is_mapped: bool
    manifests: tuple[Path, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """Options that mean nothing to a Python program's own kernels."""
        options = {
            "--launch": self.launch != "last",
            "--kernel": bool(self.kernel),
            "--mapped": self.is_mapped,
            "--manifest": bool(self.manifests),
        }
        return tuple(name for name, is_given in options.items() if is_given)


def _launch(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """`last`, `all`, or a number from 1."""
    if value in ("last", "all") or re.fullmatch(r"[1-9][0-9]{0,8}", value):
        return value
    message = f"{value!r} is not last, all or a number from 1"
    raise click.BadParameter(message)


def _pattern(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        message = f"{value!r} is not a regular expression: {error}"
        raise click.BadParameter(message) from error
    return value


def native_options(command: Command) -> Command:
    """Add `--native`, `--launch`, `--kernel`, `--mapped` and `--manifest` (as `manifests`)."""
    decorators = (
        click.option("--native", is_flag=True, help="A Python program that loads stamped CUDA C++: record that."),
        click.option(
            "--launch",
            callback=_launch,
            default="last",
            show_default=True,
            metavar="last|N|all",
            help="CUDA C++: which launch of each kernel.",
        ),
        click.option(
            "--kernel", callback=_pattern, default="", metavar="REGEX", help="CUDA C++: only kernels it finds."
        ),
        click.option("--mapped", is_flag=True, help="CUDA C++: records outlive a program that hangs or is killed."),
        click.option(
            "--manifest",
            "manifests",
            multiple=True,
            type=click.Path(path_type=Path),
            metavar="FILE|FOLDER",
            help="CUDA C++: manifests of what was stamped by `autostamp instrument`.",
        ),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def run_native(
    words: Sequence[str],
    shown: tuple[str, ...],
    out: Path,
    record: RecordOptions,
    choices: NativeChoices,
    *,
    quiet: bool,
) -> int:
    """Run a native program with `record`, say what there is to say, and return the exit status: the program's,
    ours only when it succeeded. Raises what `hooks.native.run` raises.
    """
    from autostamp.hooks.native import NativeOptions, run

    options = NativeOptions(record, choices.launch, choices.kernel, choices.is_mapped, choices.manifests)
    result = run(words, out, options, shown)
    for finding in result.findings:
        click.echo(render(finding), err=True)
    if result.was_written and not quiet:
        click.echo(f"wrote {out}; read it with: autostamp summary {out}", err=True)
    if result.status:
        return 128 - result.status if result.status < 0 else result.status
    return max((finding.status for finding in result.findings), default=ExitStatus.OK)


def refuse(options: Sequence[str], why: str) -> None:
    """Raise AS9001 when options were given that mean nothing here."""
    if options:
        raise AutostampError.of("AS9001", detail=f"{', '.join(options)}: {why}")
