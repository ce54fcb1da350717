# SPDX-License-Identifier: Apache-2.0
"""Clocks: cost of reading them, their steps, and how fast the SM's clock goes under load (kernels/probes/clocks.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Launch, Loop, Probe, Yield
from autostamp.runtime.probes.readings import cycles_each, gigahertz, smallest_step
from autostamp.runtime.probes.wgmma import SS_LOAD

FILE: Final = "clocks.cu"
READS: Final = 32
_ONE_WARP: Final = Launch(32, (64, 320))
_LOADED_TRIPS: Final = 120_000
"""16 instructions of 128 cycles a trip: some 130 ms, in which the clock settles."""

PROBES: Final = (
    Probe(
        "clock_read", FILE, "clock32_read", _ONE_WARP, (Loop({"CS2R.32 SR_CLOCK": READS}, 24, alone=False),),
        (Yield("clock_read", "cycles", cycles_each(READS), "32-bit read with half a LOP3 to use it, one warp"),),
    ),
    Probe(
        "clock64_read", FILE, "clock64_read", _ONE_WARP, (Loop({"CS2R SR_CLOCK": READS}, 40, alone=False),),
        (Yield("clock64_read", "cycles", cycles_each(READS), "64-bit read with a LOP3 to use it, one warp"),),
    ),
    Probe(
        "globaltimer_read", FILE, "globaltimer_read", _ONE_WARP,
        (Loop({"CS2R SR_GLOBALTIMER": READS}, 40, alone=False),),
        (Yield("globaltimer_read", "cycles", cycles_each(READS), "64-bit read with a LOP3 to use it, one warp"),),
    ),
    Probe(
        "clock_step", FILE, "clock_step", _ONE_WARP, (Loop({"CS2R SR_CLOCK": READS}, 8, alone=False),),
        (Yield("clock_step", "cycles", smallest_step, "smallest difference of 64-bit reads one behind the other"),),
    ),
    Probe(
        "globaltimer_step", FILE, "globaltimer_step", Launch(32, (10_000, 1_000_000)),
        (Loop({"CS2R SR_GLOBALTIMER": 1}, 10, alone=False),),
        (Yield("globaltimer_step", "ns", smallest_step, "smallest difference of values that it takes"),),
    ),
    Probe(
        "clock_loaded", SS_LOAD.file, SS_LOAD.kernel, Launch(128, (1_000, _LOADED_TRIPS), every_sm=True),
        SS_LOAD.loops,
        (Yield("clock_loaded", "GHz", gigahertz, "wgmma m64n256k16 of random bf16 on all SMs for some 130 ms"),),
        only=SS_LOAD.only,
    ),
)  # fmt: skip
"""The rows of this family."""
