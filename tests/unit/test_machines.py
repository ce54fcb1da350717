# SPDX-License-Identifier: Apache-2.0
"""Machine tables: what the package holds, and what is said of a file that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.machine import ConstantKind
from autostamp.predict.constants import MEANINGS, UNITS
from autostamp.predict.machines import constant, load_machine, products, read_machine, unread

NAMES = ("a100", "b200", "b300", "h100_sxm", "h200", "l40s", "rtx_5090", "rtx_pro_6000")
RESULTS = Path(__file__).parents[2] / "benchmarks/results"
ROW = 'value = 690, unit = "cycles", kind = "measured", source = "bench"'


@pytest.fixture
def write(tmp_path):
    def file(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return file


def refused(call, *arguments) -> tuple[str, str]:
    with pytest.raises(AutostampError) as caught:
        call(*arguments)
    return caught.value.diagnostic.code, caught.value.diagnostic.message


def test_one_table_a_product():
    assert products() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_constant_of_the_package_is_known_and_has_its_source(name):
    table = load_machine(name)
    assert table.product == name
    assert table.arch.startswith("sm_")
    assert unread(table) == {}
    for key, each in table.constants.items():
        assert each.unit == MEANINGS[key].unit
        assert len(each.source) > 12, key
        # What is derived says from what, either in its condition or as the law that its source is.
        assert each.kind is not ConstantKind.DERIVED or each.condition or "over" in each.source, key


@pytest.mark.parametrize("name", NAMES)
def test_tables_agree_with_each_other_where_a_law_says_so(name):
    constants = load_machine(name).constants
    value = {key: each.value for key, each in constants.items()}
    assert value["tensor_bf16"] == value["tensor_fp16"] == 2 * value["tensor_tf32"]
    for slow, fast in (("clock", "clock_max"), ("clock_loaded", "clock"), ("hbm", "hbm_peak"), ("l2", "l2_peak")):
        if slow in value and fast in value:
            assert value[slow] <= value[fast]
    if "smem_bytes" in value:
        assert 0 < value["smem_bytes"] - value["smem_bytes_per_cta"] == 1024


# Dense bf16 of the data sheets, TFLOP/s: what the rate, the SMs and the clock must give back.
PEAKS = (
    ("a100", 312),
    ("h100_sxm", 989.4),
    ("h200", 989.4),
    ("b200", 2250),
    ("l40s", 362.05),
    ("rtx_5090", 209.5),
)


@pytest.mark.parametrize(("name", "teraflops"), PEAKS)
def test_the_peak_of_the_data_sheet_comes_back(name, teraflops):
    table = load_machine(name)
    peak = constant(table, "tensor_bf16").value * constant(table, "sms").value * constant(table, "clock").value * 1e9
    assert peak == pytest.approx(teraflops * 1e12, rel=0.015)


# Bytes a second and product: B/clk/SM over SMs and clock, as `condition` says.
BANDWIDTHS = (
    ("h200", "l2", 9.2e12),
    ("h200", "hbm", 4.2e12),
    ("h200", "hbm_peak", 4.8e12),
    ("h100_sxm", "hbm", 2.8e12),
    ("h100_sxm", "hbm_peak", 3.35e12),
    ("b200", "hbm", 7.0e12),
    ("b200", "hbm_peak", 8e12),
    ("b300", "hbm", 7.0e12),
    ("b300", "hbm_peak", 8e12),
    ("a100", "hbm", 1.7e12),
    ("a100", "hbm_peak", 2.039e12),
    ("rtx_5090", "hbm_peak", 1.792e12),
    ("rtx_pro_6000", "hbm", 1.4e12),
)


@pytest.mark.parametrize(("name", "key", "bandwidth"), BANDWIDTHS)
def test_bandwidths_are_of_the_clock_that_the_table_has(name, key, bandwidth):
    table = load_machine(name)
    whole = table.constants[key].value * table.constants["sms"].value * table.constants["clock"].value * 1e9
    assert whole == pytest.approx(bandwidth, rel=0.01)


def test_constants_of_one_product_stay_its_own():
    # Published for one product only, or contradicting each other: absent elsewhere.
    def having(key: str) -> set[str]:
        return {name for name in NAMES if key in load_machine(name).constants}

    assert having("mbarrier_round_trip") == {"h200", "b300"}
    assert having("named_barrier") == {"h200"}
    assert having("cvt_bf16x2") == {"b300", "h200"}
    assert having("tma_latency_l2") == {"h200"}  # published of an H800 only; probed
    assert having("smem_write_share") == {"h200"}
    assert having("tmem_load") == {"b200"}  # figures of B300 are doubtful
    assert having("mufu_ex2_f16x2") == set()  # two sources, two answers


def test_probed_constants_of_h200_are_those_of_the_recorded_probe():
    probed = read_machine(RESULTS / "probe_h200.toml").constants
    taken = {key: each for key, each in load_machine("h200").constants.items() if "probe_h200.toml" in each.source}
    assert {key: (each.value, each.unit) for key, each in taken.items()} == {
        key: (probed[key].value, probed[key].unit) for key in taken
    }
    assert {each.kind for each in taken.values()} == {ConstantKind.MEASURED}
    assert {"smem_write_share", "tma_latency_l2", "tma_issue", "tma_bytes", "mbarrier_handoff"} <= set(taken)
    # Beside warps that wait for their own results, a hand-off costs hardly more than in an idle SM.
    for name in ("mbarrier_handoff", "named_handoff"):
        assert probed[name].value <= probed[f"{name}_loaded"].value <= 1.1 * probed[name].value
    assert {"tma_box_latency_l2", "l2_box_shared", "alu_latency", "shuffle_latency"} <= set(taken)


def test_a_missing_constant_says_what_to_add():
    with pytest.raises(AutostampError) as caught:
        constant(load_machine("h100_sxm"), "cvt_bf16x2")
    found = caught.value.diagnostic
    assert found.code == "AS7103"
    assert found.message == "h100_sxm has no constant cvt_bf16x2: two f32 values to bf16x2"
    assert 'add [constants.cvt_bf16x2] with value, unit = "thread-instr/clk/SM"' in found.help


@pytest.mark.parametrize(
    ("name", "hint"), [("h20", "Did you mean h200?"), ("tpu", "Known: a100, b200"), ("H200", "Did you mean h200?")]
)
def test_an_unknown_machine_is_refused_with_the_nearest(name, hint):
    code, message = refused(load_machine, name)
    assert code == "AS7101"
    assert hint in message


def test_a_file_of_the_users_overrides_and_adds(write):
    smem = 'smem = { value = 119, unit = "B/clk/SM", kind = "measured", source = "LDS of ours", condition = "LDS" }'
    file = write(f'product = "h200"\n[sources]\nbench = "our bench"\n[constants]\n{smem}\nl2_latency = {{ {ROW} }}\n')
    packaged, table = load_machine("h200"), load_machine("h200", file)
    assert (table.title, table.arch) == (packaged.title, packaged.arch)
    assert table.constants["smem"].value == 119
    assert table.constants["smem"].source == "LDS of ours"
    assert table.constants["l2_latency"].source == "our bench"
    assert table.constants["l2_latency"].condition == ""
    changed = {"smem", "l2_latency"}
    assert {key for key in table.constants if table.constants[key] != packaged.constants.get(key)} == changed
    assert len(table.constants) == len(packaged.constants) + 1
    assert load_machine("h200").constants["smem"].value == 128


def test_a_product_of_the_users_stands_alone(write):
    file = write(f'product = "h20"\ntitle = "NVIDIA H20"\narch = "sm_90a"\n[constants]\nl2_latency = {{ {ROW} }}\n')
    table = load_machine("h20", file)
    assert list(table.constants) == ["l2_latency"]
    assert table.constants["l2_latency"].source == "bench"
    code, message = refused(load_machine, "h200", file)
    assert code == "AS7101"
    assert "is of h20" in message


def test_subtables_are_the_same_as_inline_ones(write):
    rows = ROW.replace(", ", "\n")
    file = write(f'product = "h200"\n[constants.l2_latency]\n{rows}\n')
    assert read_machine(file).constants["l2_latency"].value == 690


HEAD = 'product = "h200"\n[constants]\n'
WRONG = (
    ("product = ", "AS7102", "not TOML"),
    ('prodct = "h200"', "AS7102", "unknown key prodct; did you mean product?"),
    ("[constants]", "AS7102", "product must be a text that is not empty"),
    ('product = "h20"', "AS7102", "title must be a text"),
    ("product = 3", "AS7102", "product must be a text"),
    ("product = []", "AS7102", "product must be a text"),
    ('product = "h200"\nconstants = 3', "AS7102", "constants must be a table"),
    (f"{HEAD}smem = 128", "AS7102", "constants.smem must be a table"),
    (f"{HEAD}smem = {{ {ROW}, vlaue = 1 }}", "AS7102", "constants.smem: unknown key vlaue; did you mean value?"),
    (f'{HEAD}l2_latency = {{ value = 1, unit = "cycles", kind = "measured" }}', "AS7102", "source must be a text"),
    (f'{HEAD}l2_latency = {{ value = 1, unit = "cycles", source = "x" }}', "AS7102", "kind must be a text"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('measured', 'guessed')} }}", "AS7102", "kind guessed is none of datasheet"),
    (f"{HEAD}l2_latency = {{ {ROW}, condition = 3 }}", "AS7102", "condition must be a text"),
    (f"{HEAD}l2 = {{ {ROW.replace('cycles', 'TB/s')} }}", "AS7104", "has the unit TB/s, expected B/clk/SM"),
    (f"{HEAD}own = {{ {ROW.replace('cycles', 'furlongs')} }}", "AS7104", "expected one of FLOP/clk/SM"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('690', '0')} }}", "AS7105", "constant l2_latency is 0,"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('690', '-1.5')} }}", "AS7105", "is -1.5,"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('690', 'nan')} }}", "AS7105", "is nan,"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('690', 'inf')} }}", "AS7105", "is inf,"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('690', 'true')} }}", "AS7105", "is True,"),
    (f"{HEAD}l2_latency = {{ {ROW.replace('value = 690, ', '')} }}", "AS7105", "is None,"),
)


@pytest.mark.parametrize(("text", "code", "message"), WRONG)
def test_a_wrong_file_is_refused_with_the_place(write, text, code, message):
    found, said = refused(read_machine, write(text))
    assert found == code
    assert message in said
    assert "mine.toml" in said


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert refused(read_machine, tmp_path / "binary.toml")[0] == "AS7102"
    assert refused(read_machine, tmp_path / "absent.toml")[0] == "AS7102"


def test_a_name_that_the_model_does_not_know_is_kept_and_told(write):
    table = read_machine(write(f"{HEAD}l2_latancy = {{ {ROW} }}\nblorp = {{ {ROW} }}\n"))
    assert set(table.constants) == {"l2_latancy", "blorp"}
    assert unread(table) == {"l2_latancy": "l2_latency", "blorp": ""}


def test_units_of_the_known_names_are_units():
    assert {meaning.unit for meaning in MEANINGS.values()} <= set(UNITS)
