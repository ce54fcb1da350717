# SPDX-License-Identifier: Apache-2.0
"""Compile FlashAttention through its own interface, with no GPU: `python -m tests.flash.compile_flash OUT ARCH MODE`.

Tensors are torch's fake ones. OUT gets a folder per case (`forward-causal`, ...) with the PTX and cubin files that the DSL
dumped, and, when stamped, `manifest.json` and `traces.json`, which says which kernel traces belong to which case.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MASKS = {"causal": True, "full": False}
CASES = {f"{direction}-{mask}": (direction, mask) for direction in ("forward", "backward") for mask in MASKS}
SMS = {"sm_90": 132, "sm_100": 148}
"""Multiprocessors of H200 (SXM) and B200: FlashAttention sizes persistent grids by them."""

BATCH, TOKENS, HEADS, HEAD_DIM = 1, 4096, 16, 128


def prepare_environment(dump: Path, arch: str) -> None:
    """Both packages read these when they are imported."""
    os.environ.update(
        CUTE_DSL_ARCH=f"{arch}a",
        CUTE_DSL_KEEP="ptx,cubin",
        CUTE_DSL_DUMP_DIR=str(dump),
        CUTE_DSL_DISABLE_FILE_CACHING="1",
        FLASH_ATTENTION_FAKE_TENSOR="1",
        FLASH_ATTENTION_ARCH=arch,
        FLASH_ATTENTION_NUM_SMS=str(SMS[arch]),
        FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED="0",
    )


def answer_for_hardware(arch: str) -> None:
    """Persistent schedulers ask the driver for the number of multiprocessors while they trace: answer without a driver."""
    from cutlass.utils import HardwareInfo

    HardwareInfo.__init__ = lambda self, device_id=0: None
    HardwareInfo.get_device_multiprocessor_count = lambda self: SMS[arch]


def compile_case(direction: str, *, is_causal: bool) -> None:
    """Make FlashAttention compile what one call needs."""
    import torch
    from flash_attn.cute import interface
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        q, k, v, out, dout = (
            torch.empty(BATCH, TOKENS, HEADS, HEAD_DIM, dtype=torch.bfloat16, device="cuda") for _ in range(5)
        )
        if direction == "forward":
            interface._flash_attn_fwd(q, k, v, causal=is_causal)
        else:
            lse = torch.empty(BATCH, HEADS, TOKENS, dtype=torch.float32, device="cuda")
            interface._flash_attn_bwd(q, k, v, out, dout, lse, causal=is_causal)


def main(out: Path, arch: str, mode: str) -> None:
    """Compile all cases; `mode` is clean (no hook), off (hook, no recorder) or stamped."""
    dump = out / "dump"
    dump.mkdir(parents=True)
    prepare_environment(dump, arch)
    session = None
    if mode != "clean":
        from autostamp.hooks.session import Session

        session = Session(["flash_attn.cute"], compile_only=True, record=mode == "stamped")
        session.open()
    answer_for_hardware(arch)
    traces: dict[str, list[int]] = {}
    known = 0
    for case, (direction, mask) in CASES.items():
        compile_case(direction, is_causal=MASKS[mask])
        # Cases may dump files of equal names: move them out of each other's way.
        (out / case).mkdir()
        for file in sorted(dump.iterdir()):
            file.rename(out / case / file.name)
        if session is not None:
            numbers = [trace.number for trace in session.manifest().traces]
            traces[case], known = numbers[known:], len(numbers)
    if session is not None:
        from autostamp.runtime.manifest_file import write_manifest

        write_manifest(out / "manifest.json", session.manifest())
        (out / "traces.json").write_text(json.dumps(traces))
        session.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
