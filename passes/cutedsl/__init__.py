# SPDX-License-Identifier: Apache-2.0
"""CuTe-DSL front end: Python source in, sites and edits out."""

from autostamp.passes.cutedsl.instrument import instrument
from autostamp.passes.stamped import Stamped

__all__ = ["Stamped", "instrument"]
