# SPDX-License-Identifier: Apache-2.0
"""What the commands say of a run with several CTAs and launches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from autostamp import cli
from autostamp.model.run import MachineFacts
from autostamp.runtime.regions import Recorded
from autostamp.runtime.store import write_run
from tests.simulator.grid import Sm, run_cta
from tests.simulator.tables import ring_kernel, ring_manifest

KERNEL = ring_kernel()
GRID = (2, 1, 1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two launches of two CTAs, the second CTA 2000 cycles after the first, on an SM whose clock is far ahead."""
    regions = []
    for launch, now in enumerate((0, 100_000)):
        for cta in (0, 1):
            placed = run_cta(KERNEL, Sm(3 + cta, cta << 30), now + 2000 * cta, GRID, launch=launch)
            regions.append(Recorded(1, placed.region, launch, cta, (cta, 0, 0), GRID))
    write_run(tmp_path / "RUN", ring_manifest(KERNEL), regions, MachineFacts(sm_mhz=1755.0), {})
    return tmp_path / "RUN"


def test_the_summary_tells_one_in_full_and_the_others_in_a_table(run, capsys):
    assert cli.main(["summary", str(run)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ring (kernel trace 1), CTA (0, 0, 0) on SM 3") == 1
    table = printed.split("4 CTAs in 2 launches of ring were recorded:\n")[1].splitlines()
    assert table[0].split() == ["launch", "CTA", "SM", "wave", "starts", "±", "cycles", "lost"]
    rows = [line.split() for line in table[1:5]]
    assert [row[:4] for row in rows] == [
        ["0", "0,0,0", "3", "0"],
        ["0", "1,0,0", "4", "0"],
        ["1", "0,0,0", "3", "0"],
        ["1", "1,0,0", "4", "0"],
    ]
    for row in rows[1::2]:
        assert int(row[4].replace(",", "")) == pytest.approx(2000, abs=int(row[5]))
    spans = next(line for line in table if line.startswith("load")).split()
    # The producer of four uses in two stages ends with its fourth fill, 400 cycles after the second release.
    assert spans[1] == f"{400 + 2 * 900 + 400:,}"


def test_the_summary_as_json_has_them_all(run, capsys):
    assert cli.main(["summary", str(run), "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert [(each["launch"], each["block"], each["smid"]) for each in kernels] == [
        (0, [0, 0, 0], 3),
        (0, [1, 0, 0], 4),
        (1, [0, 0, 0], 3),
        (1, [1, 0, 0], 4),
    ]
    assert all(each["alignment_error"] > 0 for each in kernels)
    assert kernels[0]["offset"] == 0
    assert kernels[1]["offset"] == pytest.approx(2000, abs=kernels[1]["alignment_error"])


def test_decode_names_block_and_launch(run, capsys):
    assert cli.main(["decode", str(run)]) == 0
    assert "ring (kernel trace 1), CTA (1, 0, 0), launch 1\n" in capsys.readouterr().out


def test_perfetto_has_a_process_for_each_on_one_axis(run, tmp_path):
    out = tmp_path / "out.pftrace"
    assert cli.main(["export", str(run), "--perfetto", str(out), "-q"]) == 0
    packets = Trace.FromString(out.read_bytes()).packet
    processes = {
        packet.track_descriptor.process.pid: packet.track_descriptor.process.process_name
        for packet in packets
        if packet.track_descriptor.process.pid
    }
    assert processes == {
        1: "ring CTA (0, 0, 0) SM 3",
        2: "ring CTA (1, 0, 0) SM 4",
        3: "ring CTA (0, 0, 0) launch 1 SM 3",
        4: "ring CTA (1, 0, 0) launch 1 SM 4",
    }
