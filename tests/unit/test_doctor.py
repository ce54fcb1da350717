# SPDX-License-Identifier: Apache-2.0
"""`autostamp doctor`: the verdict from given facts, and the command on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from autostamp.cli import doctor as command
from autostamp.cli import main
from autostamp.runtime import devices, doctor, toolchain
from autostamp.runtime.devices import Gpu, parse_nvidia_smi
from autostamp.runtime.doctor import Facts, Tool, judge

H200 = Gpu("NVIDIA H200", "9.0", 132, "580.65", "13.0")
OLD_DRIVER = Gpu("NVIDIA H200", "9.0", 132, "550.54", "12.4")
TOOLS = (Tool("nvdisasm", "/bin/nvdisasm", "13.0"), Tool("cuobjdump", "/bin/cuobjdump", "13.0"), Tool("nvcc"))
CPU_ONLY = Facts(
    python="3.11.7",
    platform="Linux",
    packages={
        "libcst": "1.9.0",
        "nvidia-cutlass-dsl": "4.8.1",
        "nvidia-cutlass-dsl-libs-cu12": "4.8.1",
        "nvidia-cutlass-dsl-libs-cu13": "",
        "cupy-cuda12x": "",
        "cupy-cuda13x": "",
    },
    tools=TOOLS,
    gpu_note="the NVIDIA driver is not installed",
)


def with_packages(facts: Facts, **versions: str) -> Facts:
    return replace(facts, packages=facts.packages | {name.replace("_", "-"): text for name, text in versions.items()})


COMPLETE = with_packages(
    replace(CPU_ONLY, gpus=(H200,), gpu_note=""), nvidia_cutlass_dsl_libs_cu13="4.8.1", cupy_cuda13x="13.6.0"
)


def test_everything_runs_on_a_complete_machine():
    verdict = judge(COMPLETE)
    assert (verdict.instrument, verdict.compile, verdict.launch) == ("", "", "")
    assert verdict.install == ()


def test_without_a_gpu_it_still_compiles():
    verdict = judge(CPU_ONLY)
    assert (verdict.instrument, verdict.compile) == ("", "")
    assert verdict.launch == "no GPU: the NVIDIA driver is not installed"
    assert verdict.install == ("a GPU and its driver, to launch: pip cannot install those",)


def test_without_the_dsl_nothing_compiles():
    verdict = judge(with_packages(CPU_ONLY, nvidia_cutlass_dsl=""))
    assert verdict.instrument == ""
    assert "not installed" in verdict.compile
    assert verdict.launch == verdict.compile
    assert verdict.install[0].startswith("pip install 'autostamp[cutedsl]'")


@pytest.mark.parametrize("version", ["4.6.2", "5.0.0", "3.9"])
def test_a_dsl_outside_the_known_range_is_named(version):
    assert version in judge(with_packages(CPU_ONLY, nvidia_cutlass_dsl=version)).compile


@pytest.mark.parametrize("version", ["4.7.0", "4.7.0rc1", "4.10.1", "4.8.1.dev3"])
def test_a_dsl_inside_the_known_range_compiles(version):
    assert judge(with_packages(CPU_ONLY, nvidia_cutlass_dsl=version)).compile == ""


def test_a_dsl_that_does_not_import_is_reported_with_its_error():
    broken = replace(CPU_ONLY, dsl_error="ModuleNotFoundError: No module named 'cuda.pathfinder'")
    assert judge(broken).compile.endswith("No module named 'cuda.pathfinder'")


def test_libraries_newer_than_the_driver_do_not_launch():
    facts = with_packages(replace(COMPLETE, gpus=(OLD_DRIVER,)), nvidia_cutlass_dsl_libs_cu12="")
    verdict = judge(facts)
    assert "supports CUDA 12.4" in verdict.launch
    assert "autostamp[cuda12]" in verdict.install[0]


def test_an_old_driver_takes_the_libraries_that_fit_it():
    facts = with_packages(replace(COMPLETE, gpus=(OLD_DRIVER,)), cupy_cuda12x="13.6.0", cupy_cuda13x="")
    assert judge(facts).launch == ""


@pytest.mark.parametrize(("gpu", "extra"), [(H200, "cuda13"), (OLD_DRIVER, "cuda12")])
def test_without_cupy_the_extra_for_the_driver_is_advised(gpu, extra):
    facts = with_packages(replace(COMPLETE, gpus=(gpu,)), cupy_cuda13x="")
    verdict = judge(facts)
    assert "cupy" in verdict.launch
    assert f"autostamp[{extra}]" in verdict.install[0]


def test_cupy_for_a_newer_cuda_does_not_count():
    assert "cupy" in judge(replace(COMPLETE, gpus=(OLD_DRIVER,))).launch


def test_missing_tools_are_advised_by_their_wheels():
    facts = replace(COMPLETE, tools=(Tool("nvdisasm"), Tool("cuobjdump"), Tool("nvcc")))
    assert judge(facts).install == ("pip install nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump  (for `autostamp safety`)",)


def test_text_names_everything():
    text = command.as_text(COMPLETE, judge(COMPLETE))
    for part in ("Python 3.11.7", "nvidia-cutlass-dsl ", "4.8.1", "nvdisasm", "not found", "NVIDIA H200", "132 SMs"):
        assert part in text
    assert "to install" not in text


def test_quiet_text_says_only_what_can_run():
    assert command.as_text(CPU_ONLY, judge(CPU_ONLY), quiet=True).splitlines() == [
        "can run here",
        "  instrument  yes",
        "  compile     yes",
        "  launch      no: no GPU: the NVIDIA driver is not installed",
    ]


def test_json_object():
    content = json.loads(command.as_object(CPU_ONLY, judge(CPU_ONLY)))
    assert content["schema_version"] == 1
    assert content["can"] == {"instrument": True, "compile": True, "launch": False}
    assert content["packages"]["cupy-cuda13x"] is None
    assert content["tools"]["nvcc"] is None
    assert content["dsl_flavors"] == ["cu12"]
    assert content["gpus"] == []


@pytest.mark.parametrize(("facts", "status"), [(COMPLETE, 0), (CPU_ONLY, 0), (replace(CPU_ONLY, dsl_error="x"), 3)])
def test_exit_status(facts, status, monkeypatch, capsys):
    monkeypatch.setattr(command, "examine", lambda: facts)
    assert main(["doctor"]) == status
    assert "can run here" in capsys.readouterr().out


def test_this_machine(capsys):
    status = main(["doctor", "--json"])
    content = json.loads(capsys.readouterr().out)
    assert content["python"] == ".".join(map(str, sys.version_info[:3]))
    assert content["packages"]["libcst"]
    assert content["can"]["instrument"] is True
    assert status == (0 if content["can"]["compile"] else 3)


def test_a_module_that_does_not_import_gives_its_last_line():
    assert doctor._import_error("json") == ""
    assert doctor._import_error("nosuch_module") == "ModuleNotFoundError: No module named 'nosuch_module'"


def test_release_of_a_tool(tmp_path, monkeypatch):
    tool = tmp_path / "nvcc"
    tool.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(toolchain, "find", lambda name: tool)
    assert doctor._examine_tool("nvcc") == Tool("nvcc", str(tool), "13.0")


def test_nvidia_smi_rows():
    header = "| NVIDIA-SMI 580.65  Driver Version: 580.65  CUDA Version: 13.0 |"
    assert parse_nvidia_smi("NVIDIA H200, 9.0, 580.65\n", header) == (replace(H200, sm_count=0),)
    assert parse_nvidia_smi("A, with a comma, 8.0, 1.2\n", "")[0] == Gpu("A, with a comma", "8.0", 0, "1.2", "")
    assert parse_nvidia_smi("", header) == ()


def test_gpus_never_raise(monkeypatch):
    def fail():
        raise RuntimeError("cuInit answered CUDA_ERROR_NO_DEVICE")

    monkeypatch.setattr(devices, "_ask_driver", fail)
    assert devices.find_gpus() == ((), "cuInit answered CUDA_ERROR_NO_DEVICE")


def test_gpus_without_bindings_come_from_nvidia_smi(monkeypatch):
    def fail():
        raise ImportError

    monkeypatch.setattr(devices, "_ask_driver", fail)
    monkeypatch.setattr(devices, "_ask_nvidia_smi", lambda: (H200,))
    assert devices.find_gpus() == ((H200,), "")
    monkeypatch.setattr(devices, "_ask_nvidia_smi", tuple)
    gpus, note = devices.find_gpus()
    assert gpus == ()
    assert "nvidia-smi" in note


@pytest.mark.gpu
def test_this_machines_gpu():
    gpus, note = devices.find_gpus()
    assert note == ""
    assert all(gpu.name and gpu.sm_count and gpu.cuda for gpu in gpus)
