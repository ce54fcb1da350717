# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: lazy loading, exit statuses, and what goes to which stream."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from types import ModuleType

import click
import pytest

import autostamp
from autostamp import cli
from autostamp.cli.options import output_options
from autostamp.diagnostics import AutostampError, Position

HEAVY = ("libcst", "numpy", "rich", "cutlass", "msgspec", "perfetto", "torch", "cupy")


@pytest.fixture
def add_command(monkeypatch):
    """Add a subcommand `probe` whose body is the given function."""

    def add(body, *decorators):
        module = ModuleType("probe_command")
        command = body
        for decorator in decorators:
            command = decorator(command)
        module.command = click.command()(command)
        monkeypatch.setitem(sys.modules, "probe_command", module)
        monkeypatch.setitem(cli.COMMANDS, "probe", ("probe_command", "A command of this test."))

    return add


def raising(error):
    def body():
        raise error

    return body


def run_python(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options)


def loaded_after(statement: str) -> list[str]:
    """Which heavy packages a fresh interpreter has loaded after `statement`."""
    code = f"import sys; {statement}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import autostamp",
        "import autostamp.cli",
        "import autostamp.cli; autostamp.cli.main(['--version'])",
        "import autostamp.cli; autostamp.cli.main(['explain', 'AS2103'])",
    ],
)
def test_starting_up_loads_nothing_heavy(statement):
    code = statement.replace("autostamp.cli.main", "sys.stdout = sys.stderr; autostamp.cli.main")
    assert loaded_after(f"{code}; sys.stdout = sys.__stdout__") == []


def test_help_lists_every_command_without_importing_it(capsys, monkeypatch):
    monkeypatch.setattr(cli, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert cli.main(["--help"]) == 0
    printed = capsys.readouterr().out
    for name, (_, help_line) in cli.COMMANDS.items():
        assert f"{name} " in printed
        assert help_line in printed


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_module_with_a_command(name):
    module, _ = cli.COMMANDS[name]
    assert importlib.util.find_spec(module) is not None
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert isinstance(command, click.Command)
    assert command.help


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_shows_its_help(name, capsys):
    assert cli.main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: autostamp {name}")


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert autostamp.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nosuch"], ["--nosuch"], ["explain", "--nosuch"], ["explain", "AS1001", "x"]])
def test_wrong_usage_ends_with_2_and_says_so_on_stderr(arguments, capsys):
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Usage: autostamp" in printed.err


def test_a_finding_is_rendered_to_stderr(add_command, capsys):
    position = Position("kernel.py", 2, 5, "    wait(", 4)
    add_command(raising(AutostampError.of("AS1001", position, path="kernel.py", detail="unexpected end")))
    assert cli.main(["probe"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("kernel.py:2:5: AS1001 ")
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(("code", "status"), [("AS1004", 1), ("AS9002", 2), ("AS5001", 3)])
def test_a_finding_ends_with_the_status_of_its_code(code, status, add_command):
    add_command(raising(AutostampError.of(code, path="x", detail="y")))
    assert cli.main(["probe"]) == status


def test_a_fault_of_ours_shows_the_traceback_and_its_code(add_command, capsys):
    add_command(raising(KeyError("sm_90a")))
    assert cli.main(["probe"]) == 2
    printed = capsys.readouterr()
    assert "Traceback (most recent call last)" in printed.err
    assert "AS9999 a fault of autostamp: KeyError: 'sm_90a'" in printed.err
    assert printed.out == ""


def test_interrupt_ends_with_130_and_no_traceback(add_command, capsys):
    add_command(raising(KeyboardInterrupt()))
    assert cli.main(["probe"]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("status", [0, 1, 3])
def test_a_command_gives_its_status_back(status, add_command):
    add_command(lambda: status)
    assert cli.main(["probe"]) == status


@pytest.mark.parametrize("leave", [lambda: click.get_current_context().exit(7), lambda: sys.exit(7)])
def test_a_command_may_leave_with_the_status_of_a_program(leave, add_command):
    add_command(leave)
    try:
        status = cli.main(["probe"])
    except SystemExit as exit_:
        status = exit_.code
    assert status == 7


def test_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "autostamp", "explain"], stdout=gone, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.stderr == ""
    assert done.returncode == 141


def test_options_that_all_commands_share(add_command, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = {}

    def body(as_json, quiet):
        seen.update(as_json=as_json, quiet=quiet, no_color=os.environ.get("NO_COLOR"))

    add_command(body, output_options)
    assert cli.main(["probe"]) == 0
    assert seen == {"as_json": False, "quiet": False, "no_color": None}
    assert cli.main(["probe", "--json", "-q", "--no-color"]) == 0
    assert seen == {"as_json": True, "quiet": True, "no_color": "1"}
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_no_color_before_the_command(add_command, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    seen = []
    add_command(lambda: seen.append(os.environ["NO_COLOR"]))
    assert cli.main(["--no-color", "probe"]) == 0
    assert seen == ["1"]


def test_python_m_autostamp():
    done = run_python("-m", "autostamp", "--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"autostamp, version {autostamp.__version__}")
    assert run_python("-m", "autostamp", "nosuch").returncode == 2


def test_explain_prints_the_page(capsys):
    assert cli.main(["explain", "AS2103"]) == 0
    assert capsys.readouterr().out.startswith("# AS2103: ")


@pytest.mark.parametrize("spelling", ["as2103", "2103", "AS2103"])
def test_explain_takes_a_code_in_any_spelling(spelling, capsys):
    assert cli.main(["explain", spelling]) == 0
    assert capsys.readouterr().out.startswith("# AS2103: ")


def test_explain_as_json(capsys):
    assert cli.main(["explain", "AS5001", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert (content["code"], content["exit_status"]) == ("AS5001", 3)
    assert content["page"].startswith("# AS5001: ")


def test_explain_without_a_code_lists_them_all(capsys):
    assert cli.main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("AS1001  ")
    assert cli.main(["explain", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["codes"]) == len(lines)


def test_explain_of_no_code_names_the_nearest(capsys):
    assert cli.main(["explain", "AS2193"]) == 2
    assert "there is no code AS2193; did you mean AS2" in capsys.readouterr().err


PUBLIC = ["instrument_source", "load_run", "record_bytes", "save_run", "session"]


def test_public_names_load_when_used():
    assert sorted(autostamp.__all__) == sorted(["__version__", *PUBLIC])
    assert set(autostamp.__all__) <= set(dir(autostamp))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        autostamp.nosuch  # noqa: B018


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_there(name):
    assert callable(getattr(autostamp, name))
