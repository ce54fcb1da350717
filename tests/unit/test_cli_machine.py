# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest

from autostamp.cli import main
from autostamp.predict.machines import load_machine, products

SMEM = 'smem = { value = 119, unit = "B/clk/SM", kind = "measured", source = "LDS of ours" }'


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'product = "h200"\n[constants]\n{SMEM}\nsmme = {SMEM.partition("= ")[2]}\n', encoding="utf-8")
    return path


def test_show_lists_the_products(capsys):
    assert main(["machine", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(products())
    assert main(["machine", "show", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["machines"]
    assert [row["product"] for row in rows] == list(products())


def test_show_prints_every_constant_with_its_source(capsys):
    assert main(["machine", "show", "h200"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0] == "h200: NVIDIA H200 SXM, sm_90a"
    assert lines[2].split() == ["constant", "value", "unit", "condition", "kind", "source"]
    table = load_machine("h200")
    assert [line.split()[0] for line in lines[3:] if line[0] != " "] == list(table.constants)
    row = next(line for line in lines if line.startswith("named_barrier"))
    assert row.split()[1:3] == ["20.7", "cycles"]
    assert "measured" in row
    assert max(map(len, lines)) <= 160


def test_show_as_json_is_the_table(capsys):
    assert main(["machine", "show", "b300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["product"], found["arch"]) == (1, "b300", "sm_103a")
    assert found["constants"]["mufu_ex2"] == {
        "value": 32.0,
        "unit": "thread-instr/clk/SM",
        "condition": "f32, on GB300: 32.0; 29.9 follows from QuickRunCUDA",
        "source": load_machine("b300").constants["mufu_ex2"].source,
        "kind": "measured",
    }


@pytest.mark.parametrize("name", [["h200"], []], ids=["named", "of the file"])
def test_show_with_a_file_puts_it_over_the_table(name, mine, capsys):
    assert main(["machine", "show", *name, "--file", str(mine), "--json"]) == 0
    constants = json.loads(capsys.readouterr().out)["constants"]
    assert constants["smem"]["value"] == 119
    assert constants["tensor_bf16"]["value"] == 4096


def test_check_of_a_file_notes_what_the_model_does_not_read(mine, capsys):
    assert main(["machine", "check", str(mine)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "h200: 2 constants, all with unit, kind and source\n"
    assert printed.err == "note: the model reads no constant smme; did you mean smem?\n"
    assert main(["machine", "check", str(mine), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machines"] == [{"product": "h200", "constants": 2, "unread": ["smme"]}]
    assert main(["machine", "check", str(mine), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_check_without_a_file_checks_the_package(capsys):
    assert main(["machine", "check"]) == 0
    printed = capsys.readouterr()
    assert [line.split(":")[0] for line in printed.out.splitlines()] == list(products())
    assert printed.err == ""


@pytest.mark.parametrize(
    ("old", "new", "code"), [("B/clk/SM", "GB/s", "AS7104"), ("119", "0", "AS7105"), ("unit", "unti", "AS7102")]
)
def test_check_of_a_wrong_file_ends_with_2(old, new, code, mine, capsys):
    mine.write_text(mine.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert main(["machine", "check", str(mine)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert code in printed.err


def test_an_unknown_machine_ends_with_2(capsys):
    assert main(["machine", "show", "h20"]) == 2
    assert "AS7101" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["show", "check"])
def test_parts_show_their_help(part, capsys):
    assert main(["machine", part, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: autostamp machine {part}")
