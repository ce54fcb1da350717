# SPDX-License-Identifier: Apache-2.0
"""Stamping programs as they run: the import hook, the session, the program runner."""
