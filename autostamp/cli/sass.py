# SPDX-License-Identifier: Apache-2.0
"""`autostamp sass`: the main loops of a cubin, and of two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.model.cubin import CubinFacts
    from autostamp.model.kernel_loops import KernelComparison, KernelReport

SCHEMA_VERSION = 1

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("first", metavar="A.cubin", type=_FILE)
@click.argument("second", metavar="[B.cubin]", type=_FILE, required=False)
@click.option(
    "--kernel", "pattern", metavar="PATTERN", default="*", help="Kernels whose (mangled) name matches, * and ? allowed."
)
@click.option("--all-loops", is_flag=True, help="Every loop in full, not the main ones alone.")
@click.option("--no-stamps", is_flag=True, help="Leave out the instructions of stamps.")
@click.option(
    "--fail-over",
    type=click.FloatRange(0, 1),
    metavar="DISTANCE",
    help="Exit status 1 where the order of B's core opcodes, in the kernel or in a main loop, is further from A's.",
)
@json_option
@no_color_option
def command(
    first: Path,
    second: Path | None,
    pattern: str,
    all_loops: bool,
    no_stamps: bool,
    fail_over: float | None,
    as_json: bool,
) -> int:
    """Show what one trip through each main loop of A.cubin is made of; with B.cubin, what changed there.

    Everything comes from the disassembly; no GPU is needed. Roles are guessed from the instructions.
    """
    if second is None and fail_over is not None:
        raise click.UsageError("--fail-over compares two cubins: give B.cubin too")
    ones = _kernels(first, pattern)
    if second is None:
        return _show([_report(each, no_stamps) for each in ones], all_loops, as_json)
    from autostamp.passes import loop_report

    pairs = _pair(ones, _kernels(second, pattern), (first, second))
    found = [loop_report.compare(*pair, without_stamps=no_stamps) for pair in pairs]
    return _show_comparisons(found, fail_over, as_json)


def _kernels(path: Path, pattern: str) -> list[CubinFacts]:
    """The kernels of a cubin that match, in its order. Raises AS4030 for another kind of file and AS9001 where none matches."""
    from fnmatch import fnmatchcase

    from autostamp.runtime import cubin

    cubin.require(path)
    kernels = cubin.read_file(path)
    chosen = [each for each in kernels if fnmatchcase(each.kernel, pattern)]
    if not chosen:
        there = ", ".join(each.kernel for each in kernels) or "none"
        raise AutostampError.of("AS9001", detail=f"no kernel of {path} matches {pattern} (it holds {there})")
    return chosen


def _report(facts: CubinFacts, no_stamps: bool) -> KernelReport:
    from autostamp.passes.loop_report import KernelLoops

    return KernelLoops(facts, no_stamps).report()


def _pair(
    ones: Sequence[CubinFacts], others: Sequence[CubinFacts], paths: tuple[Path, Path]
) -> list[tuple[CubinFacts, CubinFacts]]:
    """Kernels of one name; where each file holds one kernel, these two. The others are named on stderr."""
    if len(ones) == len(others) == 1:
        return [(ones[0], others[0])]
    by_name = {each.kernel: each for each in others}
    pairs = [(each, by_name[each.kernel]) for each in ones if each.kernel in by_name]
    if not pairs:
        has = [", ".join(each.kernel for each in side) for side in (ones, others)]
        raise AutostampError.of("AS7010", first=paths[0], first_has=has[0], second=paths[1], second_has=has[1])
    common = {each.kernel for each, _ in pairs}
    for side, path in zip((ones, others), paths, strict=True):
        for name in [each.kernel for each in side if each.kernel not in common]:
            click.echo(f"note: only {path} has {name}", err=True)
    return pairs


def _show(reports: Sequence[KernelReport], all_loops: bool, as_json: bool) -> int:
    from autostamp.report.sass_text import as_text

    without = [Diagnostic.of("AS4031", kernel=each.kernel) for each in reports if not each.loops]
    if as_json:
        _print_json({"kernels": [_as_object(each) for each in reports]})
    else:
        click.echo("\n".join(as_text(each, all_loops) for each in reports if each.loops), nl=False)
    for each in without:
        click.echo(render(each), err=True)
    # One kernel without a loop among others is no finding: initialisation has none.
    return ExitStatus.FINDINGS if len(without) == len(reports) else ExitStatus.OK


def _show_comparisons(found: Sequence[KernelComparison], fail_over: float | None, as_json: bool) -> int:
    from autostamp.report.sass_text import comparison_text

    if as_json:
        _print_json({"comparisons": [_comparison_object(each) for each in found]})
    else:
        click.echo("\n".join(comparison_text(each) for each in found), nl=False)
    without = [
        Diagnostic.of("AS4031", kernel=side.kernel)
        for each in found
        for side in (each.first, each.second)
        if not side.loops
    ]
    past = [
        Diagnostic.of("AS4032", kernel=each.second.kernel, distance=f"{each.distance:.3f}", limit=f"{fail_over:g}")
        for each in found
        if fail_over is not None and each.distance > fail_over
    ]
    for each in (*without, *past):
        click.echo(render(each), err=True)
    return ExitStatus.FINDINGS if past or len(without) == 2 * len(found) else ExitStatus.OK


def _print_json(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **value}, indent=2))


def _as_object(report: KernelReport) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(report))


def _comparison_object(found: KernelComparison) -> dict[str, Any]:
    import msgspec

    pairs = [
        {
            "role": side.role,
            "is_main": side.is_main,
            "first": pair.first and pair.first.facts.start,
            "second": pair.second and pair.second.facts.start,
            "distance": pair.order and pair.order.distance,
            "order": msgspec.to_builtins(pair.order),
        }
        for pair in found.loops
        for side in [pair.first or pair.second]
        if side is not None
    ]
    return {
        "first": _as_object(found.first),
        "second": _as_object(found.second),
        "distance": found.distance,
        "order_distance": found.order.distance,
        "order": msgspec.to_builtins(found.order),
        "loops": pairs,
    }
