# SPDX-License-Identifier: Apache-2.0
"""`autostamp machine`: what is known of a GPU product, and whether a machine file is right."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

import click

from autostamp.cli.options import json_option, no_color_option, quiet_option

SCHEMA_VERSION: Final = 1
PIPE_WIDTH: Final = 160
"""Columns of the table when it does not go to a terminal."""


@click.group()
@no_color_option
def command() -> None:
    """Show machine tables: rates, latencies and sizes of a GPU product, each with its source; check one of your own."""


@command.command()
@click.argument("name", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A machine file whose constants go over those of NAME.",
)
@json_option
@no_color_option
def show(name: str | None, file: Path | None, as_json: bool) -> None:
    """Print what is known of NAME; without NAME, of which products there are tables (or the one of --file).

    A constant that is unknown is not in the table.
    """
    from autostamp.predict.machines import load_machine, products, read_machine
    from autostamp.report.machine_text import as_object, as_text

    if name is None and file is None:
        tables = [load_machine(product) for product in products()]
        if as_json:
            rows = [{"product": table.product, "title": table.title, "arch": table.arch} for table in tables]
            click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "machines": rows}, indent=2))
            return
        for table in tables:
            click.echo(f"{table.product:<14}{table.arch:<9}{table.title}, {len(table.constants)} constants")
        return
    if name is None and file is not None:
        name = read_machine(file).product
    table = load_machine(name or "", file)
    if as_json:
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **as_object(table)}, indent=2))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    click.echo(as_text(table, width), nl=False)


@command.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@quiet_option
@no_color_option
def check(file: Path | None, as_json: bool, quiet: bool) -> None:
    """Check the machine file FILE: its keys, units and values; without FILE, the tables of the package.

    Says which constants the model reads under no such name: they are shown, and change no prediction.
    """
    from autostamp.predict.machines import load_machine, products, read_machine, unread

    tables = [read_machine(file)] if file else [load_machine(product) for product in products()]
    strange = {table.product: unread(table) for table in tables}
    if as_json:
        rows = [
            {"product": table.product, "constants": len(table.constants), "unread": list(strange[table.product])}
            for table in tables
        ]
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "machines": rows}, indent=2))
        return
    for table in tables:
        click.echo(f"{table.product}: {len(table.constants)} constants, all with unit, kind and source")
        for name, near in strange[table.product].items() if not quiet else ():
            hint = f"; did you mean {near}?" if near else ""
            click.echo(f"note: the model reads no constant {name}{hint}", err=True)
