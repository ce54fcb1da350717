# SPDX-License-Identifier: Apache-2.0
"""The kernels that `benchmarks/overhead.py` times, each in two builds of one process: clean, and with live stamps.

The hook stamps the sources as they are imported; whether a kernel compiled from them has stamps is decided while it is
traced, by whether a recorder is open. So each build is one compilation, and the callables of both are kept side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from autostamp.model.options import RecordOptions
from autostamp.runtime import layout
from autostamp.runtime.buffer import NoMemory
from autostamp.runtime.recorder import RECORDER
from benchmarks.gallery_cases import ATTENTION, GEMMS, gallery_cases

if TYPE_CHECKING:
    import torch

TARGETS = ("flash_attn.cute", "autostamp.kernels.cutedsl.gemm_ws", GEMMS, ATTENTION)
SEED = 0


class Build(StrEnum):
    """Which of the two."""

    CLEAN = "clean"
    STAMPED = "stamped"


class TorchMemory:
    """Regions as torch tensors: torch is here anyway, and cupy need not be."""

    def __init__(self) -> None:
        self._tensors: list[torch.Tensor] = []

    def allocate(self, size: int) -> int:
        """Address of `size` zeroed bytes that cross no 4 GiB boundary, which stamps rely on."""
        import torch

        tensor = torch.zeros(size, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        self._tensors.append(tensor)  # one that crosses is kept too, so that the next lies elsewhere
        address = int(tensor.data_ptr())
        return address if address >> 32 == (address + size - 1) >> 32 else self.allocate(size)

    def clear(self) -> None:
        """Zero every region."""
        import torch

        for tensor in self._tensors:
            tensor.zero_()
        torch.cuda.synchronize()

    def records(self) -> tuple[int, int]:
        """How many records the regions hold, and how many found their lane full, after all work has finished."""
        import torch

        torch.cuda.synchronize()
        counts = [count_records(tensor.cpu().numpy()) for tensor in self._tensors]
        return sum(stored for stored, _ in counts), sum(lost for _, lost in counts)


def count_records(region: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[int, int]:
    """Records stored in one region of raw bytes, and records lost by its released lanes."""
    lanes = region.reshape(layout.LANES, -1)
    words = np.ascontiguousarray(lanes[:, layout.HEADER_BYTES :]).view(layout.RECORD_DTYPE)
    headers = np.ascontiguousarray(lanes[:, : layout.HEADER_BYTES]).view(layout.HEADER_DTYPE)
    remaining = headers["remaining"][headers["state"] == layout.RELEASED]
    lost = -int(remaining[remaining < 0].sum()) // layout.RECORD_BYTES
    return int(np.count_nonzero(words["event"])), lost


@dataclass
class Builds:
    """Both builds of everything compiled so far, by owner (a cache of FlashAttention's, or `gemm`) and its key.

    `made_for` says which case each was compiled for; a later case may use it too.
    """

    memory: TorchMemory | NoMemory
    options: RecordOptions
    case: str = ""
    made_for: dict[tuple[str, Any], str] = field(default_factory=dict)
    kept: dict[Build, dict[str, dict[Any, Any]]] = field(default_factory=lambda: {build: {} for build in Build})

    @contextmanager
    def use(self, build: Build) -> Iterator[dict[str, dict[Any, Any]]]:
        """Make `build` the one that is launched, and the one that a kernel not compiled yet is compiled to."""
        kept = self.kept[build]
        RECORDER.options = self.options
        RECORDER.allocate = self.memory.allocate if build is Build.STAMPED else None
        for name, cache in flash_caches().items():
            cache.clear()
            cache.update(kept.get(name, {}))
        try:
            yield kept
        finally:
            kept.update({name: dict(cache) for name, cache in flash_caches().items()})
            RECORDER.allocate = None
            for name, cache in kept.items():
                for key in cache:
                    self.made_for.setdefault((name, key), self.case)


def flash_caches() -> dict[str, dict[Any, Any]]:
    """FlashAttention's caches of compiled kernels, by the function that owns each; none while it is not imported."""
    interface = sys.modules.get("flash_attn.cute.interface")
    members = vars(interface) if interface else {}
    found = {name: getattr(value, "compile_cache", None) for name, value in members.items()}
    # JITCache of 4.0.0b36 keeps a plain dict; one with a disk behind it is switched off by the environment.
    return {name: getattr(cache, "cache", cache) for name, cache in found.items() if cache is not None}


@dataclass(frozen=True, slots=True)
class Shape:
    """Of attention. Written batch x queries x keys x heads x width of a head."""

    batch: int
    queries: int
    keys: int
    heads: int
    width: int

    def __str__(self) -> str:
        return f"{self.batch}x{self.queries}x{self.keys}x{self.heads}x{self.width}"


class Case(Protocol):
    """One kernel on one problem. `prepare` comes first, within the clean build."""

    @property
    def name(self) -> str:
        """Unique, for people."""

    def prepare(self) -> None:
        """Make the inputs."""

    def launch(self, kept: dict[str, dict[Any, Any]]) -> None:
        """Launch once on the current stream, compiling what `kept` does not hold."""

    def outputs(self) -> dict[str, torch.Tensor]:
        """Tensors that the last launch wrote, by name."""


@dataclass
class FlashForward:
    """`flash_attn.cute`'s forward kernel, bf16."""

    shape: Shape
    is_causal: bool
    _tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"FA4 forward {self.shape}{' causal' if self.is_causal else ''} bf16"

    def prepare(self) -> None:
        import torch

        torch.manual_seed(SEED)
        self._tensors = _attention_inputs(self.shape)
        self._tensors["out"] = torch.empty_like(self._tensors["q"])
        self._tensors["lse"] = _per_query(self.shape)

    def launch(self, _kept: dict[str, dict[Any, Any]]) -> None:
        from flash_attn.cute import interface

        interface._flash_attn_fwd(**self._tensors, causal=self.is_causal, return_lse=True)

    def outputs(self) -> dict[str, torch.Tensor]:
        return {name: self._tensors[name] for name in ("out", "lse")}


@dataclass
class FlashBackward:
    """`flash_attn.cute`'s whole backward call, bf16: preprocess, main kernel and postprocess, all of them stamped."""

    shape: Shape
    is_causal: bool
    is_deterministic: bool = False
    _tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def name(self) -> str:
        how = (" causal" if self.is_causal else "") + (" deterministic" if self.is_deterministic else "")
        return f"FA4 backward {self.shape}{how} bf16"

    def prepare(self) -> None:
        import torch
        from flash_attn.cute import interface

        torch.manual_seed(SEED)
        inputs = _attention_inputs(self.shape)
        out, lse = torch.empty_like(inputs["q"]), _per_query(self.shape)
        interface._flash_attn_fwd(**inputs, causal=self.is_causal, return_lse=True, out=out, lse=lse)
        self._tensors = {**inputs, "out": out, "lse": lse, "dout": torch.randn_like(out)}
        for name in ("q", "k", "v"):
            self._tensors[f"d{name}"] = torch.empty_like(inputs[name])

    def launch(self, _kept: dict[str, dict[Any, Any]]) -> None:
        from flash_attn.cute import interface

        interface._flash_attn_bwd(**self._tensors, causal=self.is_causal, deterministic=self.is_deterministic)

    def outputs(self) -> dict[str, torch.Tensor]:
        return {name: self._tensors[name] for name in ("dq", "dk", "dv")}


@dataclass
class Gemm:
    """The sample GEMM of `kernels/cutedsl`, fp16: C[m, n] = A[m, k] B[n, k]^T."""

    m: int
    n: int
    k: int
    is_real: bool = True
    _output: Any = None
    _arguments: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return f"GEMM {self.m}x{self.n}x{self.k} fp16"

    def prepare(self) -> None:
        if not self.is_real:
            return
        import torch
        from cutlass.cute.runtime import from_dlpack

        torch.manual_seed(SEED)
        # Sums of small integers are exact in fp32: only a wrong kernel gives another result.
        a, b = (torch.randint(-2, 3, (rows, self.k), device="cuda").half() for rows in (self.m, self.n))
        self._output = torch.empty(self.m, self.n, dtype=torch.float16, device="cuda")
        # Made once: handing a tensor over may wait on the default stream, which a capture does not allow.
        self._arguments = tuple(
            from_dlpack(tensor, assumed_align=16).mark_layout_dynamic(leading_dim=1) for tensor in (a, b, self._output)
        )

    def launch(self, kept: dict[str, dict[Any, Any]]) -> None:
        compiled = _gemm(kept)
        if not self.is_real:
            return
        import torch
        from cuda.bindings import driver

        compiled(*self._arguments, driver.CUstream(torch.cuda.current_stream().cuda_stream))

    def outputs(self) -> dict[str, torch.Tensor]:
        return {"c": self._output}


def _gemm(kept: dict[str, dict[Any, Any]]) -> Callable[..., object]:
    from autostamp.kernels.cutedsl.gemm_ws import compile_gemm

    found = kept.setdefault("gemm", {})
    if "gemm" not in found:
        found["gemm"] = compile_gemm()
    compiled: Callable[..., object] = found["gemm"]
    return compiled


def _attention_inputs(shape: Shape) -> dict[str, torch.Tensor]:
    import torch

    lengths = {"q": shape.queries, "k": shape.keys, "v": shape.keys}
    return {
        name: torch.randn(shape.batch, length, shape.heads, shape.width, dtype=torch.bfloat16, device="cuda")
        for name, length in lengths.items()
    }


def _per_query(shape: Shape) -> torch.Tensor:
    import torch

    return torch.empty(shape.batch, shape.heads, shape.queries, dtype=torch.float32, device="cuda")


def all_cases(*, is_real: bool = True) -> list[Case]:
    """In the order in which they are measured. Without `is_real` there is no GPU, and kernels are only compiled."""
    one_block, full = Shape(1, 128, 4096, 1, 128), Shape(1, 4096, 4096, 16, 128)
    forward = [FlashForward(shape, causal) for shape in (one_block, full) for causal in (False, True)]
    backward = [FlashBackward(full, causal) for causal in (False, True)]
    gemms = [Gemm(128, 128, 4096, is_real), Gemm(4096, 4096, 4096, is_real)]
    return [*forward, *backward, *gemms, *gallery_cases(is_real=is_real)]
