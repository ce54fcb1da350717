# SPDX-License-Identifier: Apache-2.0
"""A simulated GPU for tests: warps with a fake clock that leave a record region behind, as stamped kernels do."""
