# SPDX-License-Identifier: Apache-2.0
"""`[tool.autostamp]` in the user's pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.cli.config import load
from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.sync import Kind, Side, StageFrom, SyncOp


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def refused(folder: Path, **options: tuple[str, ...]) -> Diagnostic:
    with pytest.raises(AutostampError) as caught:
        load(folder, **options)
    assert caught.value.diagnostic.status == 2
    return caught.value.diagnostic


def test_without_a_table_nothing_is_chosen(tmp_path: Path) -> None:
    assert load(tmp_path) == InstrumentOptions()
    assert load(write(tmp_path, '[project]\nname = "x"\n')) == InstrumentOptions()
    assert load(write(tmp_path, "[tool.autostamp]\n")) == InstrumentOptions()


def test_all_keys(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        "[tool.autostamp]\n"
        'only = ["kind=wait", "role=load"]\n'
        'skip = ["barrier=pipeline_q"]\n'
        "[[tool.autostamp.ops]]\n"
        'owner = "my_kernels.sync"\n'
        'method = "wait_turn"\n'
        'kind = "wait"\n'
        'side = "named"\n'
        'stage = "index"\n'
        'group = "turns"\n'
        "[[tool.autostamp.ops]]\n"
        'method = "poke"\n'
        'kind = "signal"\n',
    )
    assert load(folder) == InstrumentOptions(
        Selection(("kind=wait", "role=load"), ("barrier=pipeline_q",)),
        (
            SyncOp("my_kernels.sync", "wait_turn", Kind.WAIT, Side.NAMED, StageFrom.INDEX, group="turns"),
            SyncOp("", "poke", Kind.SIGNAL, Side.MBARRIER),
        ),
    )


def test_the_command_line_wins_key_by_key(tmp_path: Path) -> None:
    folder = write(tmp_path, '[tool.autostamp]\nonly = ["kind=wait"]\nskip = ["role=load"]\n')
    assert load(folder, only=("role=mma",)).selection == Selection(("role=mma",), ("role=load",))
    assert load(folder, skip=("role=mma",)).selection == Selection(("kind=wait",), ("role=mma",))


def test_the_nearest_table_above_is_taken(tmp_path: Path) -> None:
    write(tmp_path, '[tool.autostamp]\nonly = ["role=far"]\n')
    middle = write(tmp_path / "a", '[tool.autostamp]\nonly = ["role=near"]\n')
    inner = write(middle / "b" / "c", "[tool.ruff]\nline-length = 120\n")
    assert load(inner).selection.only == ("role=near",)
    assert load(tmp_path).selection.only == ("role=far",)


@pytest.mark.parametrize(
    ("table", "key", "hint"),
    [
        ("onyl = []", "onyl", "Did you mean only?"),
        ("skips = []", "skips", "Did you mean skip?"),
        ("quux = 1", "quux", "Known keys: only, skip, ops."),
        ('[[tool.autostamp.ops]]\nmethod = "m"\nkinds = "wait"', "kinds", "Did you mean kind?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path, table: str, key: str, hint: str) -> None:
    finding = refused(write(tmp_path, f"[tool.autostamp]\n{table}\n"))
    assert (finding.code, finding.help) == ("AS9003", hint)
    assert f"key {key} " in finding.message


@pytest.mark.parametrize(
    "text",
    [
        '[tool.autostamp]\nonly = "kind=wait"\n',
        "[tool.autostamp]\nskip = [1]\n",
        '[tool.autostamp]\nops = "x"\n',
        "[tool.autostamp]\nops = [1]\n",
        '[[tool.autostamp.ops]]\nkind = "wait"\n',
        '[[tool.autostamp.ops]]\nmethod = "m"\n',
        '[[tool.autostamp.ops]]\nmethod = "m"\nkind = "wiat"\n',
        '[[tool.autostamp.ops]]\nmethod = "m"\nkind = ["wait"]\n',
        '[[tool.autostamp.ops]]\nmethod = "m"\nkind = "wait"\nside = "left"\n',
        '[[tool.autostamp.ops]]\nmethod = "m"\nkind = "wait"\nstage = 3\n',
        '[[tool.autostamp.ops]]\nmethod = ""\nkind = "wait"\n',
        '[[tool.autostamp.ops]]\nmethod = "not a name"\nkind = "wait"\n',
        "[tool]\nautostamp = 3\n",
        "[[tool.autostamp]]\n",
        "tool = 3\n",
        "not toml",
        "[tool.autostamp]\nonly = ['nonsense']\n",
        "[tool.autostamp]\nskip = ['colour=red']\n",
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(write(tmp_path, text)).code == "AS9001"


def test_a_table_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# \xe9\n[tool.autostamp]\n")
    assert refused(tmp_path).code == "AS9001"


def test_a_wrong_term_on_the_command_line_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, only=("nonsense",)).code == "AS9001"
