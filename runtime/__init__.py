# SPDX-License-Identifier: Apache-2.0
"""Record layout, device-side stamps, buffers, decoding and cubin facts."""
