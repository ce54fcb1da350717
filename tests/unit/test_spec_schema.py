# SPDX-License-Identifier: Apache-2.0
"""Specs against the shipped JSON Schema, by a validator that knows nothing of our types."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from autostamp.analysis import analyse
from autostamp.runtime.spec_of_trace import encode_spec, spec_of
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "autostamp/report/assets/spec.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_written_spec_conforms():
    data = load_run(ROOT / "tests/fixtures/runs/fa4_forward_one_cta")
    (trace,) = data.traces.values()
    written = json.loads(encode_spec(spec_of(trace, analyse(trace), data.manifest, (), data.facts)))
    assert list(VALIDATOR.iter_errors(written)) == []


def test_the_recorded_and_the_shown_spec_conform():
    recorded = (ROOT / "tests/fixtures/spec/fa4_forward_one_cta.json").read_text(encoding="utf-8")
    page = (ROOT / "docs/formats/spec.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    for text in (recorded, shown):
        assert list(VALIDATOR.iter_errors(json.loads(text))) == []


@pytest.mark.parametrize(
    "change", [{"shape": [1, 2]}, {"colour": 1}, {"spans": [{"role": 0}]}, {"roles": [{}]}, {"version": "1"}]
)
def test_the_schema_refuses_what_the_reader_refuses(change):
    recorded = json.loads((ROOT / "tests/fixtures/spec/fa4_forward_one_cta.json").read_text(encoding="utf-8"))
    assert list(VALIDATOR.iter_errors(recorded | change))
