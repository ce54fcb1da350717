# SPDX-License-Identifier: Apache-2.0
"""Which CTAs record: how the choice is written, and whether it fits."""

from __future__ import annotations

import pytest

from autostamp import cli
from autostamp.cli.run import command as run_command
from autostamp.diagnostics import AutostampError
from autostamp.model.options import Blocks, RecordOptions, parse_blocks
from autostamp.runtime.layout import region_bytes
from autostamp.runtime.regions import LIMIT_BYTES, LISTED_LIMIT, memory_bytes, most_records, resolved


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3, 0, 0)),
        ("1,2", (1, 2, 0)),
        ("(1, 2, 3)", (1, 2, 3)),
        ("0..7", Blocks(0, 8)),
        ("5..5", Blocks(5, 1)),
        ("0,0,0;5", Blocks(count=2, listed=((0, 0, 0), (5, 0, 0)))),
        ("4;", Blocks(count=1, listed=((4, 0, 0),))),
        ("all", Blocks(is_all=True)),
    ],
)
def test_a_choice_is_read(text, expected):
    assert parse_blocks(text) == expected


@pytest.mark.parametrize("text", ["", ";", "7..0", "1,1;1,1,0", "0..", "..3", "1.5", "ALL", "0..7;9", "-1..3", "²"])
def test_what_is_no_choice(text):
    with pytest.raises(ValueError, match=r"block|backwards"):
        parse_blocks(text)


@pytest.mark.parametrize("text", ["0..7", "0,0,0;5,0,0", "12..12"])
def test_a_choice_is_written_as_it_is_read(text):
    assert parse_blocks(text).text == parse_blocks(text).ordered == text


def test_all_is_written_as_a_range_once_its_count_is_known():
    blocks = Blocks(count=12, is_all=True)
    assert (blocks.text, blocks.ordered) == ("all", "0..11")


def test_linear_indices_run_along_x_first():
    grid = (3, 2, 2)
    blocks = Blocks(4, 9)
    # 4 = 1 + 3 * 1; 6 = 0 + 3 * (0 + 2 * 1); 11 is the last of 12.
    assert [blocks.block(cta, grid) for cta in (0, 2, 7, 8)] == [(1, 1, 0), (0, 0, 1), (2, 1, 1), None]
    assert blocks.inside(grid) == 8
    assert blocks.block(0, (0, 0, 0)) is None


def test_listed_blocks_are_inside_the_grid_or_not():
    blocks = Blocks(count=2, listed=((2, 0, 0), (0, 1, 0)))
    assert [blocks.block(cta, (3, 1, 1)) for cta in (0, 1)] == [(2, 0, 0), None]
    assert blocks.inside((3, 2, 1)) == 2
    assert blocks.block(1, (0, 0, 0)) == (0, 1, 0)


def test_memory_is_a_region_for_each_cta_and_launch_and_a_count_of_launches():
    # 64 lanes of 64 + 16 * 8 bytes.
    assert memory_bytes(RecordOptions(16)) == 64 * 192
    assert memory_bytes(RecordOptions(16, blocks=Blocks(0, 5))) == 5 * 64 * 192
    assert memory_bytes(RecordOptions(16, blocks=Blocks(0, 5), repeat=3)) == 15 * 64 * 192 + 5 * 32 * 4


def test_all_means_as_many_as_there_is_memory_for():
    options = resolved(RecordOptions(1024, blocks=Blocks(is_all=True)))
    assert options.ctas == 1015
    assert memory_bytes(options) <= LIMIT_BYTES < memory_bytes(options) + 2 * region_bytes(1024)
    assert resolved(options) == options
    thrice = resolved(RecordOptions(1024, blocks=Blocks(is_all=True), repeat=3))
    assert 3 * thrice.ctas <= 1015 < 3 * (thrice.ctas + 1) + 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (RecordOptions(4096, blocks=Blocks(0, 1000)), "1000 CTAs with 4096 records a warp: they need 2003 MiB"),
        (RecordOptions(4096, repeat=300), "1 CTA in 300 launches"),
        (RecordOptions(1 << 20, blocks=Blocks(is_all=True), repeat=2), "1 CTA in 2 launches"),
        (RecordOptions(16, blocks=Blocks(count=65, listed=tuple((at, 0, 0) for at in range(65)))), "65 listed blocks"),
    ],
)
def test_what_does_not_fit_is_refused_and_says_what_would(options, says):
    with pytest.raises(AutostampError, match="AS5020") as error:
        resolved(options)
    assert says in error.value.diagnostic.message


def test_the_hint_is_right():
    with pytest.raises(AutostampError) as error:
        resolved(RecordOptions(4096, blocks=Blocks(0, 1000)))
    assert error.value.diagnostic.help == "What would fit: --capacity 1040 or 255 CTAs."
    assert resolved(RecordOptions(1040, blocks=Blocks(0, 1000)))
    assert resolved(RecordOptions(4096, blocks=Blocks(0, 255)))
    assert most_records(RecordOptions(), LISTED_LIMIT) > 4096


def test_the_command_line(capsys):
    for given, expected in (("0..3", Blocks(0, 4)), ("all", Blocks(is_all=True)), ("2", (2, 0, 0))):
        with run_command.make_context("run", ["--block", given, "--", "x.py"]) as context:
            assert context.params["block"] == expected
    assert cli.main(["run", "--block", "0..9999", "--compile-only", "--", __file__]) == 2
    assert "AS5020" in capsys.readouterr().err
    assert cli.main(["run", "--block", "3..1", "--", "x.py"]) == 2
    assert "'3..1' runs backwards" in capsys.readouterr().err
