# SPDX-License-Identifier: Apache-2.0
"""Every file of four released packages that holds a sync call, stamped and checked: `python -m tests.corpus`."""
