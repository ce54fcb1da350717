# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that the driver takes and some that it must not, each past one requirement of cuTensorMapEncodeTiled by one step.

The requirements are those of the CUDA driver API's page; shapes and boxes are innermost last.
"""

from __future__ import annotations

from typing import Final

from autostamp.runtime.cuda.tensor_map import Tiled

GOOD: Final[dict[str, Tiled]] = {
    "five dimensions": Tiled("u8", (2, 2, 2, 2, 16), (1, 1, 1, 1, 16), (1,) * 5),
    "one dimension of odd length": Tiled("u8", (17,), (16,), (1,)),
    "a box of 256": Tiled("u8", (256, 256), (256, 256), (1, 1)),
    "a step of 8": Tiled("u8", (64, 16), (64, 16), (8, 1)),
    "rows of 16 bytes": Tiled("f64", (4, 2), (4, 2), (1, 1)),
    "a dimension of 2^32": Tiled("u8", (1 << 32, 16), (1, 16), (1, 1)),
    "a stride of 2^40 - 2^36": Tiled("u16", (2, 15, 1 << 16, 1 << 19), (1, 1, 1, 8), (1,) * 4),
    "32 bytes in a swizzle of 32": Tiled("f32", (8, 8), (8, 8), (1, 1), "32B"),
    "64 bytes in a swizzle of 64": Tiled("f32", (8, 16), (8, 16), (1, 1), "64B"),
    "128 bytes in a swizzle of 128": Tiled("bf16", (8, 64), (8, 64), (1, 1), "128B", "256B", "nan"),
    "rows of TF32": Tiled("tf32", (8, 32), (8, 32), (1, 1), "128B", "64B"),
}

BAD: Final[dict[str, tuple[Tiled, str, str]]] = {
    "six dimensions": (Tiled("u8", (2, 2, 2, 2, 2, 16), (1, 1, 1, 1, 1, 16), (1,) * 6), "", "6 dimensions"),
    "a box of 257": (Tiled("u8", (512, 512), (257, 16), (1, 1)), "box", "257"),
    "a box of 0": (Tiled("u8", (512, 512), (0, 16), (1, 1)), "box", "holds 0"),
    "a step of 9": (Tiled("u8", (64, 16), (64, 16), (9, 1)), "steps", "9"),
    "a step of 0": (Tiled("u8", (64, 16), (64, 16), (0, 1)), "steps", "holds 0"),
    "rows 8 bytes apart": (Tiled("f32", (4, 2), (4, 4), (1, 1)), "", "8 bytes apart"),
    "rows of 8 bytes in the box": (Tiled("f32", (4, 4), (4, 2), (1, 1)), "box", "8 bytes"),
    "a dimension of 2^32 + 1": (Tiled("u8", ((1 << 32) + 1, 16), (1, 16), (1, 1)), "", "2^32"),
    "a stride of 2^40": (Tiled("u16", (2, 1 << 20, 1 << 19), (1, 1, 8), (1,) * 3), "", "2^40"),
    "64 bytes in a swizzle of 32": (Tiled("f32", (8, 16), (8, 16), (1, 1), "32B"), "swizzle", "64 bytes"),
    "128 bytes in a swizzle of 64": (Tiled("f32", (8, 32), (8, 32), (1, 1), "64B"), "swizzle", "128 bytes"),
    "144 bytes in a swizzle of 128": (Tiled("u8", (8, 144), (8, 144), (1, 1), "128B"), "swizzle", "144 bytes"),
    "NaN in integers": (Tiled("u32", (8, 32), (8, 32), (1, 1), fill="nan"), "fill", "u32"),
}
"""By name: the map, the option to blame (empty: the array), and a part of the message."""
