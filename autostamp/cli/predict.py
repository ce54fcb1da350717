# SPDX-License-Identifier: Apache-2.0
"""`autostamp predict KERNEL.cubin|RUN`: the cycle budget of a kernel's main loop, and the period that it predicts."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from autostamp.cli.options import output_options
from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.cli.predict_inputs import RunKnowledge
    from autostamp.model.machine import MachineTable
    from autostamp.model.prediction_file import PredictionFile
    from autostamp.predict.budget_file import BudgetText

SCHEMA_VERSION: Final = 1
PIPE_WIDTH: Final = 120

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("target", metavar="KERNEL.cubin|RUN", type=click.Path(exists=True, path_type=Path))
@click.option("--cubin", type=_FILE, help="The kernel of RUN, compiled without stamps (default: clean.cubin in RUN).")
@click.option(
    "--machine", metavar="NAME", help="The product, as `autostamp machine show` lists them (default: RUN's GPU)."
)
@click.option("--machine-file", type=_FILE, help="A machine file whose constants go over those of the product.")
@click.option("--budget", type=_FILE, help="What the code does not show: a budget file (docs/predict.md).")
@click.option(
    "--kernel", "pattern", metavar="PATTERN", default="*", help="The kernel whose name matches, * and ? allowed."
)
@click.option("--trace", type=int, metavar="N", help="Kernel trace number N of RUN.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the prediction to a file.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Draw the predicted timeline.")
@output_options
def command(
    target: Path,
    cubin: Path | None,
    machine: str | None,
    machine_file: Path | None,
    budget: Path | None,
    pattern: str,
    trace: int | None,
    output: Path | None,
    svg: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict what one iteration of a kernel's main loop takes, and what bounds it. Nothing is run, and no GPU is needed.

    Work comes from the cubin's instructions, from RUN (roles, warps, rings: nothing that was measured) and from --budget; rates
    from the machine's table. Write the file before the run; `autostamp reconcile` holds it against what was measured.
    """
    from autostamp.cli.predict_inputs import CLEAN, read_run

    run = read_run(target, pattern, trace) if target.is_dir() else None
    if run is None and cubin is not None:
        raise AutostampError.of("AS9001", detail="--cubin goes with a run folder; KERNEL.cubin is one already")
    if run is None and trace is not None:
        raise AutostampError.of("AS9001", detail="--trace goes with a run folder; --kernel chooses among a cubin's")
    code = cubin or (target / CLEAN if (target / CLEAN).is_file() else None) if run is not None else target
    text, given = _budget_text(budget)
    table = _table(machine or (text.machine if text else ""), machine_file, run)
    found = _predict(code, run, pattern, table, text, given)
    _write(found, output, svg, quiet)
    if as_json:
        click.echo(json.dumps(_as_object(found), indent=2))
    else:
        from autostamp.report.prediction_text import as_text

        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
        click.echo(as_text(found.budget, found.prediction, table.title, width), nl=False)


def _write(found: PredictionFile, output: Path | None, svg: Path | None, quiet: bool) -> None:
    """Both files are made before either is written, so that a refusal leaves nothing behind."""
    from autostamp.runtime.manifest_file import write_all
    from autostamp.runtime.prediction_file import encode

    if output is not None and output == svg:
        raise AutostampError.of("AS9001", detail=f"-o and --svg are both {svg}")
    made: dict[Path, bytes] = {}
    said = []
    if output is not None:
        made[output] = encode(found)
        said.append(f"wrote {output}: hold it against a run with `autostamp reconcile RUN {output}`")
    if svg is not None:
        from autostamp.predict.simulate import simulate
        from autostamp.predict.simulated_manifest import manifest_of
        from autostamp.report.svg import timeline_svg

        played = simulate(found.budget)
        made[svg] = timeline_svg([played.timeline], manifest_of(found.budget, played)).encode()
        alone = "" if found.budget.rings else "; no ring is known, so roles are drawn without waiting for each other"
        said.append(f"wrote {svg}: {len(played.spans) // len(played.roles)} iterations{alone}")
    write_all(made)
    for each in said if not quiet else ():
        click.echo(each, err=True)


def _budget_text(path: Path | None) -> tuple[BudgetText | None, bytes | None]:
    """The budget file and its bytes, read once."""
    if path is None:
        return None, None
    from autostamp.predict.budget_file import parse_budget

    try:
        data = path.read_bytes()
    except OSError as error:
        raise AutostampError.of("AS7120", path=path, detail=error.strerror or str(error)) from error
    return parse_budget(data, str(path)), data


def _table(name: str, file: Path | None, run: RunKnowledge | None) -> MachineTable:
    """The machine that is named, else that of the machine file, else the one that made the run."""
    from autostamp.cli.predict_inputs import product_of
    from autostamp.predict.machines import load_machine, products, read_machine

    if not name and file is not None:
        name = read_machine(file).product
    if not name and run is not None:
        name = product_of(run.facts.gpu)
    if not name:
        of_run = f" (there is none for {run.facts.gpu})" if run is not None and run.facts.gpu else ""
        raise AutostampError.of("AS9001", detail=f"which machine? Give --machine{of_run}: {', '.join(products())}")
    return load_machine(name, file)


def _predict(
    code: Path | None,
    run: RunKnowledge | None,
    pattern: str,
    table: MachineTable,
    text: BudgetText | None,
    given_bytes: bytes | None,
) -> PredictionFile:
    from datetime import UTC, datetime

    from autostamp.cli.predict_inputs import describe
    from autostamp.predict.bounds import predict
    from autostamp.predict.budget_file import given, overridden
    from autostamp.predict.from_loops import budget_of
    from autostamp.predict.given import Given
    from autostamp.runtime.prediction_file import digest_of, made

    table = overridden(text, table) if text is not None else table
    said = given(text, table) if text is not None else Given()
    budget = budget_of(describe(code, run, pattern, said), table, said)
    source = run.digest if run is not None else digest_of(code.read_bytes()) if code is not None else ""
    return made(budget, predict(budget), source=source, given=given_bytes, written_at=datetime.now(UTC))


def _as_object(found: PredictionFile) -> dict[str, Any]:
    """What `-o` writes. `schema_version` is that of the file."""
    import msgspec

    return dict(msgspec.to_builtins(found))
