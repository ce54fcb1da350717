# SPDX-License-Identifier: Apache-2.0
"""`autostamp launch kernel.cu --kernel NAME …`: launch a kernel that has no host code, stamped and clean, and compare."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.options import output_options
from autostamp.cli.selection import selection_options
from autostamp.diagnostics import Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.hooks.launch import ArrayResult, LaunchResult
    from autostamp.hooks.launch_plan import LaunchPlan
    from autostamp.hooks.unit_build import StampedUnit
    from autostamp.runtime.cuda.device import Device

SCHEMA_VERSION = 1
DEFAULT_ARCH = "sm_90a"


def _sizes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int, int] | None:
    """Sizes `x`, `x,y` or `x,y,z`; those left out are 1."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        message = f"{value!r} is not one to three sizes such as 8,4,1"
        raise click.BadParameter(message)
    x, y, z = [int(part) for part in parts] + [1] * (3 - len(parts))
    return x, y, z


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.cu")
@click.option("--kernel", "name", required=True, metavar="NAME", help="Its name: ring, ns::ring, 'scale<float, 4>'.")
@click.option("--grid", required=True, callback=_sizes, metavar="X[,Y[,Z]]", help="CTAs.")
@click.option("--block", required=True, callback=_sizes, metavar="X[,Y[,Z]]", help="Threads of a CTA.")
@click.option("--smem", type=click.IntRange(0), default=0, show_default=True, help="Bytes of dynamic shared memory.")
@click.option("--cluster", callback=_sizes, metavar="X[,Y[,Z]]", help="CTAs of a cluster, unless the kernel says it.")
@click.option(
    "--arg",
    "texts",
    multiple=True,
    metavar="NAME=VALUE",
    help="n=1024, 'A=f32[n,n]:random', A=a.npy, p.field=1, p=null, 'm=map(A,box=[64,32])'.",
)
@click.option("-I", "includes", multiple=True, metavar="DIR", help="Where headers are, as for nvcc.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro, as for nvcc.")
@click.option("--arch", metavar="ARCH", help=f"What to compile for; default: this GPU, without one {DEFAULT_ARCH}.")
@click.option("--std", default="c++17", show_default=True, help="Language standard, as for nvcc.")
@click.option("--nvcc-option", "extra", multiple=True, metavar="OPTION", help="Any other option for nvcc.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("RUN"), show_default=True, help="Run folder."
)
@click.option(
    "--compare/--no-compare", default=True, show_default=True, help="Launch the clean kernel, too, and compare."
)
@click.option("--repeat", type=click.IntRange(0), default=0, show_default=True, help="Timed launches of each copy.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random and normal contents.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.npz", help="Keep the arrays.")
@click.option("--compile-only", is_flag=True, help="Write both cubins to the run folder; launch nothing. Needs no GPU.")
@selection_options
@output_options
def command(
    file: Path,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    smem: int,
    cluster: tuple[int, int, int] | None,
    texts: tuple[str, ...],
    includes: tuple[str, ...],
    defines: tuple[str, ...],
    arch: str | None,
    std: str,
    extra: tuple[str, ...],
    out: Path,
    compare: bool,
    repeat: int,
    seed: int,
    save: Path | None,
    compile_only: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Launch one kernel of FILE, stamped and clean, on arguments given here; compare the results bit for bit; write RUN.

    FILE needs no host code. Arrays hold zeros unless their contents are given: zeros, ones, arange, const(3), random,
    random(low,high), normal, file.npy or file.npz:key. A tensor map is of an array, which need not be a parameter;
    `autostamp explain AS8001` has its options.
    """
    from autostamp.cli import config
    from autostamp.hooks import launch as launching
    from autostamp.hooks.launch_plan import LaunchPlan, read_prototype
    from autostamp.runtime.cuda import arguments, nvcc
    from autostamp.runtime.cuda.device import Device, Shape

    macros = {key: value if equals else "1" for key, equals, value in (macro.partition("=") for macro in defines)}
    shape, text = Shape(grid, block, smem, cluster), file.read_bytes()
    shape.check()
    prototype = read_prototype(file, text, name, includes, macros, nvcc.tensor_map_alignment())
    bound = arguments.bind(prototype, texts, seed)
    options = config.load(Path.cwd(), only, skip)
    nvcc.find()
    device = None if compile_only else Device()
    target = arch or (device.arch if device is not None else DEFAULT_ARCH)
    flags = nvcc.Flags(target, std, includes, defines, extra)
    plan = LaunchPlan(file, text, prototype, bound, shape, flags, compare, repeat)
    unit = launching.STAMPER(file, text, options, includes)
    if device is None:
        return _compile(plan, unit, out, quiet=quiet or as_json)
    return _launch(plan, unit, device, (out, save), as_json=as_json, quiet=quiet)


def _compile(plan: LaunchPlan, unit: StampedUnit | None, out: Path, *, quiet: bool) -> int:
    """Both cubins, in the run folder."""
    from autostamp.hooks.launch import unstamped
    from autostamp.hooks.unit_build import build
    from autostamp.runtime.manifest_file import write_all

    with tempfile.TemporaryDirectory(prefix="autostamp-launch-") as folder:
        clean, stamped = build(plan, unit, Path(folder))
        cubins = {out / "clean.cubin": clean.cubin.read_bytes()}
        if stamped is not None:
            cubins[out / "stamped.cubin"] = stamped.cubin.read_bytes()
        write_all(cubins)
    if not quiet:
        for path in cubins:
            click.echo(f"wrote {path}", err=True)
    if stamped is not None:
        return ExitStatus.OK
    finding = unstamped(plan)
    click.echo(render(finding), err=True)
    return finding.status


def _launch(
    plan: LaunchPlan,
    unit: StampedUnit | None,
    device: Device,
    places: tuple[Path, Path | None],
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    from autostamp.hooks import launch as launching

    out, save = places
    result = launching.launch(plan, unit, device)
    findings = list(result.findings)
    if unit is not None:
        findings += launching.write(out, plan, result, unit, tuple(sys.argv))
    if save is not None:
        _save(save, plan, result)
    if as_json:
        click.echo(json.dumps(as_object(plan, result, findings), indent=2))
    else:
        click.echo(as_text(plan, result))
    for finding in findings:
        click.echo(render(finding), err=True)
    if unit is not None and not (quiet or as_json):
        click.echo(f"wrote {out}; read it with: autostamp summary {out}", err=True)
    return max((finding.status for finding in findings), default=ExitStatus.OK)


def _save(path: Path, plan: LaunchPlan, result: LaunchResult) -> None:
    """The arrays after the launch, by the names of their arguments. Raises AS7001."""
    import numpy as np

    from autostamp.runtime.manifest_file import write_whole

    packed = io.BytesIO()
    names = [buffer.name for buffer in plan.arguments.buffers]
    np.savez(packed, **dict(zip(names, result.outputs, strict=True)))  # type: ignore[arg-type]  # savez has options, too
    write_whole(path, packed.getvalue())


def as_object(plan: LaunchPlan, result: LaunchResult, findings: list[Diagnostic]) -> dict[str, object]:
    """The result as JSON's types."""
    copies = {"clean": result.clean, "stamped": result.stamped}
    return {
        "schema_version": SCHEMA_VERSION,
        "file": str(plan.source),
        "kernel": plan.prototype.name,
        "arch": plan.flags.arch,
        "grid": plan.shape.grid,
        "block": plan.shape.block,
        "cluster": plan.shape.cluster,
        "shared_bytes": plan.shape.shared_bytes,
        "copies": {
            name: {
                "symbol": copy.symbol,
                "registers": copy.registers,
                "local_bytes": copy.local_bytes,
                "microseconds": copy.microseconds,
            }
            for name, copy in copies.items()
            if copy is not None
        },
        "arrays": [
            {
                "name": array.name,
                "type": array.number,
                "shape": array.shape,
                "is_const": array.is_const,
                "is_changed": array.is_changed,
                "is_equal": array.is_equal,
                "differing": array.difference.count if array.difference else 0,
                "first": array.difference.first if array.difference else None,
            }
            for array in result.arrays
        ],
        "findings": [{"code": finding.code, "message": finding.message} for finding in findings],
    }


def as_text(plan: LaunchPlan, result: LaunchResult) -> str:
    """The result as tables."""
    sizes = f"grid {_by_commas(plan.shape.grid)}, block {_by_commas(plan.shape.block)}"
    if plan.shape.cluster is not None:
        sizes += f", cluster {_by_commas(plan.shape.cluster)}"
    lines = [f"{plan.prototype.name} ({plan.source}:{plan.prototype.place.line}), {plan.flags.arch}, {sizes}", ""]
    copies = {name: copy for name, copy in (("clean", result.clean), ("stamped", result.stamped)) if copy is not None}
    rows = [("", *copies)]
    rows.append(("registers", *(str(copy.registers) for copy in copies.values())))
    rows.append(("local bytes", *(str(copy.local_bytes) for copy in copies.values())))
    if plan.repeat:
        times = [copy.microseconds or 0.0 for copy in copies.values()]
        rows.append((f"µs, median of {plan.repeat}", *(f"{time:.1f}" for time in times)))
        if len(times) > 1 and times[0]:
            rows.append(("stamped ÷ clean", "", f"{times[1] / times[0]:.3f}"))
    lines += _table(rows)
    if result.arrays:
        header = ("array", "type", "shape", "changed", "bit-equal")
        lines += ["", *_table([header, *(_array_row(array) for array in result.arrays)])]
    return "\n".join(lines)


def _array_row(array: ArrayResult) -> tuple[str, ...]:
    kind = f"const {array.number}" if array.is_const else array.number
    equal = {None: "not compared", True: "yes", False: "no"}[array.is_equal]
    if array.difference is not None:
        equal = f"no: {array.difference}"
    return array.name, kind, _by_commas(array.shape), "yes" if array.is_changed else "no", equal


def _by_commas(sizes: tuple[int, ...]) -> str:
    return ",".join(str(size) for size in sizes)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of cells, aligned in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
