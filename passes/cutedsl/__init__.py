# SPDX-License-Identifier: Apache-2.0
"""CuTe-DSL front end: Python source in, sites and edits out."""

from autostamp.passes.cutedsl.instrument import Stamped, instrument

__all__ = ["Stamped", "instrument"]
