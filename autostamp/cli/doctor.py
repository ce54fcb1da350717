# SPDX-License-Identifier: Apache-2.0
"""`autostamp doctor`: what is installed, what can run here, and what to install."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from autostamp import __version__
from autostamp.cli.options import output_options
from autostamp.diagnostics import ExitStatus
from autostamp.runtime.doctor import Facts, Verdict, examine, judge

SCHEMA_VERSION = 1


@click.command()
@output_options
def command(as_json: bool, quiet: bool) -> int:
    """Say what is installed, what can run here, and what to install.

    Exit status 0 when kernels of either language can be compiled here (with or without a GPU), 3 when not. With -q, only
    what can run.
    """
    facts = examine()
    verdict = judge(facts)
    click.echo(as_object(facts, verdict) if as_json else as_text(facts, verdict, quiet))
    return ExitStatus.NO_DEVICE if verdict.compile and verdict.cuda.compile else ExitStatus.OK


def as_object(facts: Facts, verdict: Verdict) -> str:
    """One JSON object. A step's value is null when it can run, else the reason why not; absent packages are null.

    `can` and `why_not` are about the CuTe-DSL, those in `cuda_cpp` about CUDA C++.
    """
    content = {
        "schema_version": SCHEMA_VERSION,
        "autostamp": __version__,
        "python": facts.python,
        "platform": facts.platform,
        "packages": {name: version or None for name, version in facts.packages.items()},
        "dsl_flavors": [f"cu{major}" for major in facts.dsl_flavors],
        "tools": {
            tool.name: {"path": tool.path, "release": tool.release} if tool.path else None for tool in facts.tools
        },
        "gpus": [asdict(gpu) for gpu in facts.gpus],
        **_as_steps(_dsl_steps(verdict)),
        "cuda_cpp": _as_steps(asdict(verdict.cuda)),
        "install": list(verdict.install),
    }
    return json.dumps(content, indent=2)


def as_text(facts: Facts, verdict: Verdict, quiet: bool = False) -> str:
    """The same for a reader; `quiet` keeps only the part that says what can run."""
    can_run = [
        "can run here",
        *(
            f"  {language}  {step:<12}{f'no: {reason}' if reason else 'yes'}"
            for language, steps in (("CuTe-DSL", _dsl_steps(verdict)), ("CUDA C++", asdict(verdict.cuda)))
            for step, reason in steps.items()
        ),
    ]
    if quiet:
        return "\n".join(can_run)
    lines = [f"autostamp {__version__}, Python {facts.python}, {facts.platform}", "", "packages"]
    lines += [f"  {name:<30}{version or '-'}" for name, version in facts.packages.items()]
    lines += ["", "tools"]
    lines += [f"  {tool.name:<12}{tool.release or '-':<12}{tool.path or 'not found'}" for tool in facts.tools]
    lines += ["", "GPU", *(_gpu_lines(facts)), "", *can_run]
    if verdict.install:
        lines += ["", "to install", *(f"  {line}" for line in verdict.install)]
    return "\n".join(lines)


def _dsl_steps(verdict: Verdict) -> dict[str, str]:
    return {"instrument": verdict.instrument, "compile": verdict.compile, "launch": verdict.launch}


def _as_steps(steps: dict[str, str]) -> dict[str, object]:
    return {
        "can": {step: not reason for step, reason in steps.items()},
        "why_not": {step: reason or None for step, reason in steps.items()},
    }


def _gpu_lines(facts: Facts) -> list[str]:
    if not facts.gpus:
        return [f"  none: {facts.gpu_note}"]
    return [
        f"  {number}: {gpu.name}, compute capability {gpu.compute_capability}, {gpu.sm_count or 'unknown number of'} SMs, "
        f"driver {gpu.driver or 'unknown'}, CUDA up to {gpu.cuda or 'unknown'}"
        for number, gpu in enumerate(facts.gpus)
    ]
