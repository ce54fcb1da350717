# SPDX-License-Identifier: Apache-2.0
"""`autostamp doctor`: the verdict from given facts, and the command on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.cli import doctor as command
from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.runtime import devices, doctor, toolchain
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.devices import Gpu, parse_nvidia_smi
from autostamp.runtime.doctor import CudaVerdict, Facts, Tool, judge

H200 = Gpu("NVIDIA H200", "9.0", 132, "580.65", "13.0")
OLD_DRIVER = Gpu("NVIDIA H200", "9.0", 132, "550.54", "12.4")
TOOLS = (Tool("nvdisasm", "/bin/nvdisasm", "13.0"), Tool("cuobjdump", "/bin/cuobjdump", "13.0"))
NVCC = Tool("nvcc", "/bin/nvcc", "13.0")
CPU_ONLY = Facts(
    python="3.11.7",
    platform="Linux",
    packages={
        "libcst": "1.9.0",
        "tree-sitter": "0.26.1",
        "tree-sitter-cuda": "0.21.2",
        "pycparser": "2.23",
        "nvidia-cutlass-dsl": "4.8.1",
        "nvidia-cutlass-dsl-libs-cu12": "4.8.1",
        "nvidia-cutlass-dsl-libs-cu13": "",
        "cupy-cuda12x": "",
        "cupy-cuda13x": "",
    },
    tools=(*TOOLS, NVCC),
    gpu_note="the NVIDIA driver is not installed",
)


def with_packages(facts: Facts, **versions: str) -> Facts:
    return replace(facts, packages=facts.packages | {name.replace("_", "-"): text for name, text in versions.items()})


def without_nvcc(facts: Facts) -> Facts:
    return replace(facts, tools=(*TOOLS, Tool("nvcc")), nvcc_error="nvcc, the CUDA C++ compiler, was not found")


COMPLETE = with_packages(
    replace(CPU_ONLY, gpus=(H200,), gpu_note=""), nvidia_cutlass_dsl_libs_cu13="4.8.1", cupy_cuda13x="13.6.0"
)


def test_everything_runs_on_a_complete_machine():
    verdict = judge(COMPLETE)
    assert (verdict.instrument, verdict.compile, verdict.launch) == ("", "", "")
    assert verdict.cuda == CudaVerdict("", "", "", "")
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


def test_without_a_gpu_cuda_cpp_still_compiles():
    verdict = judge(CPU_ONLY).cuda
    assert (verdict.instrument, verdict.compile) == ("", "")
    assert verdict.run == verdict.launch == "no GPU: the NVIDIA driver is not installed"


def test_without_nvcc_cuda_cpp_is_stamped_and_not_compiled():
    verdict = judge(without_nvcc(COMPLETE))
    assert verdict.cuda.instrument == ""
    assert (
        verdict.cuda.compile == verdict.cuda.run == verdict.cuda.launch == "nvcc, the CUDA C++ compiler, was not found"
    )
    assert (verdict.compile, verdict.launch) == ("", "")
    assert verdict.install == (
        "the CUDA toolkit, whose nvcc compiles CUDA C++: put it on PATH or name it in CUDA_HOME",
    )


@pytest.mark.parametrize("package", ["tree-sitter", "tree-sitter-cuda", "pycparser"])
def test_a_missing_parser_is_named(package):
    verdict = judge(replace(COMPLETE, packages=COMPLETE.packages | {package: ""}))
    assert verdict.cuda.instrument == verdict.cuda.launch == f"not installed: {package}"
    assert verdict.instrument == ""
    assert verdict.install[0].startswith("pip install --upgrade autostamp")


def test_nvcc_newer_than_the_driver_does_not_run():
    """Within one major release, programs of a newer toolkit run (CUDA Compatibility, "Minor Version Compatibility")."""
    verdict = judge(replace(COMPLETE, gpus=(OLD_DRIVER,))).cuda
    assert verdict.compile == ""
    assert verdict.run == verdict.launch == "the driver supports CUDA 12.4, older than nvcc 13.0"
    newer = replace(COMPLETE, tools=(*TOOLS, Tool("nvcc", "/bin/nvcc", "12.9")), gpus=(OLD_DRIVER,))
    assert judge(newer).cuda.run == ""


def test_programs_run_without_cupy_and_launch_does_not():
    verdict = judge(with_packages(COMPLETE, cupy_cuda13x="")).cuda
    assert verdict.run == ""
    assert "cupy" in verdict.launch


def test_missing_tools_are_advised_by_their_wheels():
    facts = replace(COMPLETE, tools=(Tool("nvdisasm"), Tool("cuobjdump"), NVCC))
    assert judge(facts).install == ("pip install nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump  (for `autostamp safety`)",)


def test_text_names_everything():
    text = command.as_text(COMPLETE, judge(COMPLETE))
    for part in ("Python 3.11.7", "nvidia-cutlass-dsl ", "4.8.1", "nvdisasm", "/bin/nvcc", "NVIDIA H200", "132 SMs"):
        assert part in text
    assert "not found" not in text
    assert "to install" not in text


def test_quiet_text_says_only_what_can_run():
    assert command.as_text(CPU_ONLY, judge(CPU_ONLY), quiet=True).splitlines() == [
        "can run here",
        "  CuTe-DSL  instrument  yes",
        "  CuTe-DSL  compile     yes",
        "  CuTe-DSL  launch      no: no GPU: the NVIDIA driver is not installed",
        "  CUDA C++  instrument  yes",
        "  CUDA C++  compile     yes",
        "  CUDA C++  run         no: no GPU: the NVIDIA driver is not installed",
        "  CUDA C++  launch      no: no GPU: the NVIDIA driver is not installed",
    ]


def test_json_object():
    facts = without_nvcc(CPU_ONLY)
    content = json.loads(command.as_object(facts, judge(facts)))
    assert content["schema_version"] == 1
    assert content["cuda_cpp"]["can"] == {"instrument": True, "compile": False, "run": False, "launch": False}
    assert content["cuda_cpp"]["why_not"]["instrument"] is None
    assert content["cuda_cpp"]["why_not"]["compile"] == "nvcc, the CUDA C++ compiler, was not found"
    assert content["can"] == {"instrument": True, "compile": True, "launch": False}
    assert content["packages"]["cupy-cuda13x"] is None
    assert content["tools"]["nvcc"] is None
    assert content["dsl_flavors"] == ["cu12"]
    assert content["gpus"] == []


BROKEN_DSL = replace(CPU_ONLY, dsl_error="x")


@pytest.mark.parametrize(
    ("facts", "status"), [(COMPLETE, 0), (CPU_ONLY, 0), (BROKEN_DSL, 0), (without_nvcc(BROKEN_DSL), 3)]
)
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
    assert content["packages"]["tree-sitter-cuda"]
    assert content["cuda_cpp"]["can"]["instrument"] is True
    assert status == (0 if content["can"]["compile"] or content["cuda_cpp"]["can"]["compile"] else 3)


def test_a_module_that_does_not_import_gives_its_last_line():
    assert doctor._import_error("json") == ""
    assert doctor._import_error("nosuch_module") == "ModuleNotFoundError: No module named 'nosuch_module'"


def test_release_of_a_tool(tmp_path, monkeypatch):
    tool = tmp_path / "nvcc"
    tool.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(toolchain, "find", lambda name: tool)
    assert doctor._examine_tool("nvcc") == Tool("nvcc", str(tool), "13.0")


def test_nvcc_of_this_machine(monkeypatch):
    monkeypatch.setattr(nvcc, "find", lambda: nvcc.Nvcc(Path("/cuda/bin/nvcc"), (12, 8)))
    assert doctor._examine_nvcc() == (Tool("nvcc", "/cuda/bin/nvcc", "12.8"), "")

    def fail():
        raise AutostampError.of("AS4010")

    monkeypatch.setattr(nvcc, "find", fail)
    assert doctor._examine_nvcc() == (Tool("nvcc"), "nvcc, the CUDA C++ compiler, was not found")


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
