# SPDX-License-Identifier: Apache-2.0
"""The gallery's CuTe-DSL kernels as cases of `overhead_cases`: three GEMMs, and the attention forward with its knobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

GEMMS = "autostamp.kernels.cutedsl.gemm_gallery"
ATTENTION = "autostamp.kernels.cutedsl.attention_handoff"

Kept = dict[str, dict[Any, Any]]


@dataclass
class GalleryGemm:
    """One role split, bf16: C[m, n] = A[m, k] B[n, k]^T of random normal operands."""

    variant: str
    m: int
    n: int
    k: int
    is_real: bool = True
    operands: tuple[Any, ...] = ()
    _arguments: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return f"gallery GEMM {self.variant} {self.m}x{self.n}x{self.k} bf16"

    @property
    def operations(self) -> int:
        """Floating-point operations; an FMA counts as two."""
        return 2 * self.m * self.n * self.k

    def prepare(self) -> None:
        if not self.is_real:
            return
        import torch

        from autostamp.kernels.cutedsl.gemm_gallery.reference import make_arguments

        if not self.operands:
            a, b = (torch.randn(rows, self.k, device="cuda").bfloat16() for rows in (self.m, self.n))
            self.operands = (a, b, torch.empty(self.m, self.n, dtype=torch.bfloat16, device="cuda"))
        # Made once: handing a tensor over may wait on the default stream, which a capture does not allow.
        self._arguments = make_arguments(*self.operands)

    def share_operands(self, other: GalleryGemm) -> None:
        """Take A and B of another case, and a result of its own; `prepare` is done with that."""
        import torch

        self.operands = (*other.operands[:2], torch.empty_like(other.operands[2]))
        self.prepare()

    def launch(self, kept: Kept) -> None:
        from autostamp.kernels.cutedsl.gemm_gallery.build import compile_gemm, make_gemm

        compiled = _once(kept, "gallery_gemm", self.variant, lambda: compile_gemm(make_gemm(self.variant)))
        if self.is_real:
            compiled(*self._arguments, _stream())

    def outputs(self) -> dict[str, torch.Tensor]:
        return {"c": self.operands[2]}


@dataclass
class GalleryAttention:
    """Attention forward, bf16, head width 64; `split` eighths of P come first. See `AttentionHandoff` for the knobs."""

    split: int
    heads: int
    length_q: int
    length_k: int
    halves: int = 2
    looks_ahead: bool = True
    is_real: bool = True
    tensors: dict[str, Any] = field(default_factory=dict)
    _arguments: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        order = "ahead" if self.looks_ahead else "serial"
        return f"gallery attention {self.heads}x{self.length_q}x{self.length_k}x64 {self.split}/8 {self.halves} {order} bf16"

    @property
    def operations(self) -> int:
        """Of the two products; an FMA counts as two."""
        return 4 * self.heads * self.length_q * self.length_k * 64

    def prepare(self) -> None:
        if not self.is_real:
            return
        import torch

        from autostamp.kernels.cutedsl.attention_handoff.reference import make_inputs
        from autostamp.kernels.cutedsl.gemm_gallery.reference import make_arguments

        q, k, v = make_inputs(self.heads, self.length_q, self.length_k)
        self.tensors = {"q": q, "k": k, "v": v, "o": torch.empty_like(q)}
        self._arguments = make_arguments(*self.tensors.values())

    def launch(self, kept: Kept) -> None:
        from autostamp.kernels.cutedsl.attention_handoff.build import compile_attention
        from autostamp.kernels.cutedsl.attention_handoff.forward import AttentionHandoff

        knobs = (self.split, self.halves, self.looks_ahead)
        compiled = _once(kept, "gallery_attention", knobs, lambda: compile_attention(AttentionHandoff(*knobs)))
        if self.is_real:
            compiled(*self._arguments, _stream())

    def outputs(self) -> dict[str, torch.Tensor]:
        return {"o": self.tensors["o"]}


def gallery_cases(*, is_real: bool = True) -> list[GalleryGemm | GalleryAttention]:
    """In the order in which they are measured."""
    gemms = [GalleryGemm(variant, 4096, 4096, 4096, is_real) for variant in ("plain", "pingpong", "cooperative")]
    return [*gemms, *(GalleryAttention(split, 32, 4096, 4096, is_real=is_real) for split in (2, 4, 6, 8))]


def _once(kept: Kept, owner: str, key: object, build: Callable[[], object]) -> Callable[..., object]:
    found = kept.setdefault(owner, {})
    if key not in found:
        found[key] = build()
    compiled: Callable[..., object] = found[key]
    return compiled


def _stream() -> object:
    from autostamp.kernels.cutedsl.gemm_gallery.reference import current_stream

    return current_stream()
