# SPDX-License-Identifier: Apache-2.0
"""Device-side stamps for CuTe-DSL: what a stamped file calls while its kernels are traced."""
