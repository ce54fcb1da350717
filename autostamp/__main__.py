# SPDX-License-Identifier: Apache-2.0
"""`python -m autostamp`: the same as the `autostamp` command."""

import sys

from autostamp.cli import main

sys.exit(main())
