# SPDX-License-Identifier: Apache-2.0
"""Timeline to text, JSON and Perfetto. Nothing here measures or decides: it shows what the analysis found."""
