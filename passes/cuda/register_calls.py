# SPDX-License-Identifier: Apache-2.0
"""How code gives registers back and takes them: `setmaxnreg` and the names of its wrappers in CUTLASS, ThunderKittens and others.

They say which roles a kernel has: who gives registers away loads, who takes them multiplies.
"""

from __future__ import annotations

import re
from typing import Final

GIVES: Final = re.compile(r"reg_?dealloc|setmaxnreg[._]dec|decrease_registers|producer_registers")
"""In the text of a branch, or in a function's name."""

TAKES: Final = re.compile(r"reg_?alloc|setmaxnreg[._]inc|increase_registers|consumer_registers")

INSTRUCTION: Final = re.compile(r"setmaxnreg\.dec[\w.]*\s+([^;\s]+)")
"""The instruction that gives registers back, with what is kept (PTX ISA, "setmaxnreg")."""
