# SPDX-License-Identifier: Apache-2.0
"""`autostamp explain CODE`: the page of a code, from the copy that is installed with the package."""

from __future__ import annotations

import difflib
import json
from importlib import resources

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.diagnostics import CODES, AutostampError

SCHEMA_VERSION = 1


@click.command()
@click.argument("code", required=False)
@json_option
@no_color_option
def command(code: str | None, as_json: bool) -> None:
    """Print what a code means, why it exists and what to do; without CODE, list all codes."""
    if code is None:
        click.echo(list_codes(as_json))
        return
    name = canonical(code)
    text = page(name)
    if as_json:
        info = CODES[name]
        content = {"schema_version": SCHEMA_VERSION, "code": name, "message": info.message, "help": info.help}
        text = json.dumps(content | {"exit_status": int(info.status), "page": text}, indent=2)
    click.echo(text.rstrip())


def canonical(code: str) -> str:
    """`as2103` and `2103` mean AS2103; raises AS9001 for anything that is no code, naming the nearest one."""
    name = code.upper()
    name = name if name.startswith("AS") else f"AS{name}"
    if name not in CODES:
        near = difflib.get_close_matches(name, CODES, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AutostampError.of("AS9001", detail=f"there is no code {code}{hint}")
    return name


def page(name: str) -> str:
    """The Markdown page of a code of the table."""
    return resources.files("autostamp.diagnostics").joinpath("pages", f"{name}.md").read_text(encoding="utf-8")


def list_codes(as_json: bool = False) -> str:
    """All codes with their messages, one a line, or as one JSON object."""
    if as_json:
        codes = {name: {"message": info.message, "exit_status": int(info.status)} for name, info in CODES.items()}
        return json.dumps({"schema_version": SCHEMA_VERSION, "codes": codes}, indent=2)
    return "\n".join(f"{name}  {info.message}" for name, info in CODES.items())
