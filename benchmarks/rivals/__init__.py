# SPDX-License-Identifier: Apache-2.0
"""autostamp beside other in-kernel profilers: `python -m benchmarks.rivals`."""
