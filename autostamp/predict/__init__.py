# SPDX-License-Identifier: Apache-2.0
"""Before the run: a main loop's cycle budget on a machine, and the period that it predicts."""
