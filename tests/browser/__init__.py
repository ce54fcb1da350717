# SPDX-License-Identifier: Apache-2.0
"""The report's page, driven in a real browser."""
