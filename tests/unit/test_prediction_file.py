# SPDX-License-Identifier: Apache-2.0
"""Prediction files: what is written is read, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import Manifest, SourceFile
from autostamp.model.prediction_file import PredictionFile
from autostamp.predict.bounds import predict
from autostamp.predict.gemm import GemmTile, gemm
from autostamp.predict.machines import load_machine
from autostamp.runtime.prediction_file import (
    decode,
    digest_of,
    digest_of_sources,
    encode,
    made,
    read_prediction,
    write_prediction,
)

WHEN = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)


def prediction() -> PredictionFile:
    budget = gemm(load_machine("h200"), GemmTile(128, 128, 64, 64, 128))
    return made(budget, predict(budget), source=digest_of(b"cubin"), given=b"machine = 'h200'", written_at=WHEN)


def test_what_is_written_is_read(tmp_path):
    found = prediction()
    write_prediction(tmp_path / "deep" / "p.json", found)
    assert read_prediction(tmp_path / "deep" / "p.json") == found
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["p.json"]
    content = json.loads((tmp_path / "deep" / "p.json").read_text())
    assert list(content) == [
        "schema_version",
        "tool",
        "written_at",
        "machine",
        "kernel",
        "source_sha256",
        "budget_sha256",
        "budget",
        "prediction",
    ]
    assert content["schema_version"] == 1
    assert content["written_at"] == "2026-11-29T23:30:00Z"
    assert content["source_sha256"] == hashlib.sha256(b"cubin").hexdigest()
    assert content["budget_sha256"] == hashlib.sha256(b"machine = 'h200'").hexdigest()
    assert content["budget"]["rows"][0]["resource"] == "tensor core"


def test_without_a_budget_file_its_digest_is_empty():
    found = prediction()
    again = made(found.budget, found.prediction, source=digest_of(b""), given=None, written_at=WHEN)
    assert again.budget_sha256 == ""
    assert decode(encode(again)) == again


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(encode(prediction())), **fields}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"\xff", "JSON"),
        (b"[1]", "object"),
        (b"{}", "schema version None"),
        (changed(schema_version=2), "schema version 2"),
        (changed(schema_version="1"), "schema version 1"),
        (changed(written_at="yesterday"), "written_at"),
        (changed(written_at="2026-11-29T23:30:00"), "not in UTC"),
        (changed(written_at="2026-11-29T23:30:00+02:00"), "not in UTC"),
        (changed(source_sha256="abc"), "source_sha256"),
        (changed(budget_sha256="A" * 64), "budget_sha256"),
        (changed(machine="b200"), "differ"),
        (changed(budget={}), "budget"),
        (changed(prediction=None), "prediction"),
    ],
)
def test_what_is_no_prediction_file(data, words, tmp_path):
    (tmp_path / "p.json").write_bytes(data)
    with pytest.raises(AutostampError) as caught:
        read_prediction(tmp_path / "p.json")
    assert caught.value.diagnostic.code == "AS7125"
    assert words in caught.value.diagnostic.message


def test_a_period_of_nothing_is_no_prediction():
    found = prediction()
    with pytest.raises(AutostampError, match="a period of 0"):
        decode(encode(replace(found, prediction=replace(found.prediction, period=0.0))))


def test_a_file_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(AutostampError) as caught:
        read_prediction(tmp_path)
    assert caught.value.diagnostic.code == "AS7125"
    with pytest.raises(AutostampError) as caught:
        write_prediction(tmp_path, prediction())
    assert caught.value.diagnostic.code == "AS7001"
    assert list(tmp_path.iterdir()) == []


def test_the_digest_of_a_run_is_that_of_its_sources():
    def file(key: str, content: bytes) -> SourceFile:
        return SourceFile(key, f"{key}.cu", "", hashlib.sha256(content).hexdigest(), (), (), ())

    one, two = file("a", b"one"), file("b", b"two")
    assert digest_of_sources(Manifest(1, "", (one,))) == one.sha256
    lines = "".join(f"{each}\n" for each in sorted((one.sha256, two.sha256)))
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert digest_of_sources(Manifest(1, "", (one, two))) == digest_of_sources(Manifest(1, "", (two, one))) == expected
