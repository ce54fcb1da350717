# SPDX-License-Identifier: Apache-2.0
"""Launching probes on a pretended device: what each launch is given, what the command prints and writes, and every refusal."""

from __future__ import annotations

import ctypes
import json
import struct
import sys
import tomllib
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from autostamp.cli import main
from autostamp.diagnostics import Diagnostic
from autostamp.runtime.cuda import tensor_map
from autostamp.runtime.probes import build as building
from autostamp.runtime.probes.build import Built
from autostamp.runtime.probes.probe import WORDS, Role, Word
from autostamp.runtime.probes.registry import PROBES, select

SMS = 4
ONCE = 700
"""Cycles that every launch of the pretended device takes beside its trips."""

TRIPS = {"ex2": 8192, "fma_rate": 1024, "ss_n256": 2048, "tma_stream": 256}
"""Cycles of a trip."""


class Memory(np.ndarray):
    """An array's memory, with an address."""

    ptr = 1 << 32


class Array:
    """Device memory: as much of cupy's array as is used."""

    def __init__(self, data: np.ndarray, size: int | None = None) -> None:
        data = data.view(Memory)
        self.data, self.size = data, data.size if size is None else size

    def get(self) -> np.ndarray:
        return self.data.copy()


@dataclass
class Call:
    symbol: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    walk: tuple[int, ...]
    trips: int
    extra: int
    shared_bytes: int
    box: tuple[bytes, int] | None = None


@dataclass
class PretendDevice:
    """Kernels take ONCE cycles and those of TRIPS (100 where it has none) for each trip."""

    calls: list[Call] = field(default_factory=list)
    free: int = 8 << 30
    shared_bytes: int = 232448
    devices: int = 1
    fails: str = ""
    silent: str = ""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("cupy")
        module.zeros = lambda shape, dtype: Array(np.zeros(shape, dtype))
        module.empty = lambda size, dtype: Array(np.zeros(1, dtype), size)
        module.RawModule = lambda path: SimpleNamespace(get_function=self.function)
        properties = {
            "name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": SMS, "l2CacheSize": 62914560,
            "sharedMemPerBlockOptin": self.shared_bytes,
        }  # fmt: skip
        module.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
                getDeviceCount=lambda: self.devices,
                getDevice=lambda: 0,
                getDeviceProperties=lambda device: properties,
                memGetInfo=lambda: (self.free, 2 * self.free),
                runtimeGetVersion=lambda: 13000,
            ),
            Device=lambda: SimpleNamespace(compute_capability="90"),
        )
        monkeypatch.setitem(sys.modules, "cupy", module)

    def function(self, symbol: str) -> SimpleNamespace:
        def launch(grid, block, args, *, shared_mem) -> None:
            records, _, walk, trips, extra, *box = args
            if symbol == self.fails:
                message = "an illegal memory access was encountered"
                raise RuntimeError(message)
            call = Call(symbol, grid, block, struct.unpack("<4Q", walk.tobytes()), int(trips), int(extra), shared_mem)
            if box:
                call.box = box[0].tobytes(), int(box[1])
            self.calls.append(call)
            if symbol != self.silent:
                self.record(records.data, call)

        class Function(SimpleNamespace):
            def __call__(self, *args, **keywords) -> None:
                launch(*args, **keywords)

        return Function(max_threads_per_block=1024, num_regs=32, local_size_bytes=0)

    def record(self, records: np.ndarray, call: Call) -> None:
        assert records.shape == (call.grid[0], -(-call.block[0] // 32), WORDS)
        assert not records.any()
        cycles = ONCE + call.trips * TRIPS.get(call.symbol, 100)
        records[..., Word.ROLE] = Role.MEASURED
        records[..., Word.BEGIN], records[..., Word.END] = 5000, 5000 + cycles
        records[..., Word.BEGIN_NS], records[..., Word.END_NS] = 0, 2 * cycles
        if call.symbol.endswith("_port") and call.extra:
            records[:, -1, Word.ROLE], records[:, -1, Word.COUNT] = Role.COPIER, 3


@pytest.fixture
def device(monkeypatch) -> PretendDevice:
    """A device, and a compiler that finds all machine code good."""
    pretended = PretendDevice()
    pretended.install(monkeypatch)

    def build(probes, arch, into, also=()) -> Built:
        files = dict.fromkeys((*(probe.file for probe in probes), *also))
        return Built(arch, {file: Path(into, file) for file in files}, tuple(probes), (), ())

    monkeypatch.setattr(building, "build", build)
    monkeypatch.setattr(
        tensor_map, "encode", lambda *words: repr(words).encode()[: tensor_map.BYTES].ljust(tensor_map.BYTES)
    )
    return pretended


def probe(capsys, *words: str) -> dict:
    status = main(["probe", "--json", *words])
    return {**json.loads(capsys.readouterr().out), "status": status}


def test_figures_are_differences(device, capsys):
    value = probe(capsys, "--only", "ex2,fma_rate,wgmma_ss_n256,hbm", "--repeats", "2")
    found = {name: row["value"] for name, row in value["constants"].items()}
    # 256 operations of 512 threads in 8,192 and 1,024 cycles; 16 instructions in 2,048; 16 KiB in 256.
    assert found["mufu_ex2"] == 16
    assert found["fma_fp32"] == 128
    assert found["wgmma_ss_n256"] == 128
    assert found["hbm"] == 64
    assert found["tensor_bf16"] == 4096
    assert (found["sms"], found["l2_bytes"], found["smem_bytes_per_cta"]) == (SMS, 62914560, 232448)
    assert value["constants"]["mufu_ex2"]["repeats"] == 2
    assert value["constants"]["mufu_ex2"]["probe"] == "ex2"
    assert value["status"] == 0


def test_launches_of_a_probe(device, capsys):
    probe(capsys, "--only", "ex2", "--repeats", "2")
    fill, *calls = device.calls
    assert (fill.symbol, fill.grid, fill.walk[3]) == ("fill", (SMS, 1, 1), (1 << 30) - 1)
    few, many = select(("ex2",))[0].launch.trips
    # One pair that does not count, then two.
    assert [call.trips for call in calls] == [few, many] * 3
    assert {(call.symbol, call.grid, call.block) for call in calls} == {("ex2", (1, 1, 1), (512, 1, 1))}


def test_device_memory_is_never_read_twice_in_a_row(device, capsys):
    probe(capsys, "--only", "hbm", "--repeats", "1")
    calls = device.calls[1:]
    stage, stages = 16 << 10, 12
    assert {call.grid for call in calls} == {(SMS, 1, 1)}
    assert {(call.extra, call.shared_bytes) for call in calls} == {(stages, stages * stage)}
    starts = [call.walk[0] for call in calls]
    # CTAs take turns: a trip of all is SMS stages, and each launch begins where the last ended, half the source in first.
    assert {call.walk[1:3] for call in calls} == {(stage, SMS * stage)}
    assert starts[0] == 1 << 29
    assert [later - earlier for earlier, later in pairwise(starts)] == [
        (call.trips + stages) * SMS * stage for call in calls[:-1]
    ]


def test_what_is_in_l2_is_read_again(device, capsys):
    probe(capsys, "--only", "l2,l2_shared", "--repeats", "1")
    spread, shared = ({call.walk for call in device.calls[1 + 4 * at : 5 + 4 * at]} for at in (0, 1))
    assert spread == {(0, 128 << 10, 16 << 10, (16 << 20) - 1)}
    assert shared == {(0, 0, 16 << 10, (1 << 20) - 1)}


def probe_map(rows: int, box_rows: int) -> tensor_map.Tiled:
    """Of rows of 4,096 bf16, with boxes of 64 columns."""
    return tensor_map.Tiled("bf16", (rows, 4096), (box_rows, 64), (1, 1), "128B", "256B")


def test_boxes_take_a_map_of_the_source(device, capsys):
    probe(capsys, "--only", "tma_box_latency_l2,hbm_box,l2", "--repeats", "1")
    boxes = {call.symbol: call.box for call in device.calls[1:]}
    # 1 GiB of bf16 in rows of 4,096 is 131,072 rows; a box of 64 columns has rows of 128 bytes.
    few, many = (
        repr((probe_map(131_072, rows), 1 << 32)).encode()[: tensor_map.BYTES].ljust(tensor_map.BYTES)
        for rows in (8, 128)
    )
    assert boxes == {"box_latency": (few, 8), "box_stream": (many, 128), "tma_stream": None}


def test_a_driver_without_tensor_maps(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace())
    with pytest.raises(RuntimeError, match="no cuTensorMapEncodeTiled"):
        tensor_map.encode(probe_map(8, 8), 1 << 32)


def test_what_the_driver_is_told_of_a_map(monkeypatch):
    told = {}

    def encoder(where, kind, rank, address, sizes, strides, box, steps, *modes) -> int:
        told.update(
            kind=kind.value, rank=rank.value, address=address.value, sizes=[*sizes], strides=[*strides], box=[*box],
            steps=[*steps], modes=[mode.value for mode in modes],
        )  # fmt: skip
        assert where.value % 64 == 0
        ctypes.memmove(where.value, bytes(range(128)), 128)
        return 0

    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace(cuTensorMapEncodeTiled=encoder))
    assert tensor_map.encode(probe_map(256, 128), 1 << 32) == bytes(range(128))
    # cuda.h: bfloat16 is 9, the swizzle of 128 bytes 3, L2 promotion of 256 bytes 3; innermost dimension first, pitch in bytes.
    assert told == {
        "kind": 9, "rank": 2, "address": 1 << 32, "sizes": [4096, 256], "strides": [8192], "box": [64, 128],
        "steps": [1, 1], "modes": [0, 3, 3, 0],
    }  # fmt: skip


def test_fewer_stages_where_a_cta_has_less_shared_memory(device, capsys, monkeypatch):
    device.shared_bytes = 101_376  # sm_120: 99 KiB
    device.install(monkeypatch)
    value = probe(capsys, "--only", "tma_bytes,lds_alone", "--repeats", "1")
    streams = [call for call in device.calls if call.symbol == "tma_stream"]
    assert {(call.extra, call.shared_bytes) for call in streams} == {(6, 6 << 14)}
    (found,) = value["findings"]
    assert found["code"] == "AS5023"
    assert "needs 147456 bytes of shared memory" in found["message"]
    assert value["status"] == 1


def test_the_whole_table(device, capsys, tmp_path):
    path = tmp_path / "new" / "machine.toml"
    status = main(["probe", "--repeats", "2", "--out", str(path)])
    printed = capsys.readouterr()
    # The pretended clocks take no samples and the copies no time, so these give no figure.
    assert status == 1
    said = {line.split()[2] for line in printed.err.splitlines() if line.startswith("AS5023")}
    assert said == {"clock_step", "globaltimer_step", "tma_issue", "tma_box_issue", "tma_box_issue_16k"}
    machine = tomllib.loads(path.read_text())
    assert (machine["product"], machine["arch"]) == ("h200", "sm_90a")
    assert machine["constants"]["mufu_ex2"]["value"] == 16
    assert machine["constants"]["mufu_ex2"]["condition"].endswith("2 repeats: 16 to 16")
    assert machine["constants"]["clock_loaded"]["value"] == 0.5
    assert "tma_issue" not in machine["constants"]
    assert "mufu_ex2" in printed.out
    names = {row.name for probe in PROBES for row in probe.yields} - said
    assert names <= set(machine["constants"])


def test_a_probe_that_failed_its_check_is_not_launched(device, capsys, monkeypatch):
    _, fma = select(("ex2", "fma_rate"))
    finding = Diagnostic.of("AS4040", probe="ex2", arch="sm_90a", detail="none")
    built = Built("sm_90a", {"pipes.cu": Path("p"), "tma.cu": Path("t")}, (fma,), (finding,), (PROBES[-1],))
    monkeypatch.setattr(building, "build", lambda *_: built)
    value = probe(capsys, "--only", "ex2,fma_rate")
    assert [each["code"] for each in value["findings"]] == ["AS4040"]
    assert value["absent"] == [PROBES[-1].name]
    assert {call.symbol for call in device.calls} == {"fill", "fma_rate"}
    assert value["status"] == 1


def test_no_record_is_no_figure(device, capsys):
    device.silent = "ex2"
    value = probe(capsys, "--only", "ex2,fma_rate")
    assert [each["code"] for each in value["findings"]] == ["AS5023"]
    assert "mufu_ex2" not in value["constants"]
    assert value["constants"]["fma_fp32"]["value"] == 128


def test_a_launch_that_fails_ends_the_command(device, capsys, tmp_path):
    device.fails = "ex2"
    path = tmp_path / "machine.toml"
    assert main(["probe", "--only", "ex2,fma_rate", "--out", str(path)]) == 1
    assert "AS8008" in capsys.readouterr().err
    assert not path.exists()


def test_too_little_memory(device, capsys):
    device.free = 64 << 20
    assert main(["probe", "--only", "hbm"]) == 1
    assert "bytes are free" in capsys.readouterr().err


def test_no_device(device, capsys, monkeypatch):
    device.devices = 0
    assert main(["probe"]) == 3
    assert "AS5001" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["probe"]) == 3
    assert "AS5008" in capsys.readouterr().err
