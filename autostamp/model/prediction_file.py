# SPDX-License-Identifier: Apache-2.0
"""A prediction as it is kept in a file, with what it was made of and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from autostamp.model.budget import Budget, Prediction

PREDICTION_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """One prediction.

    `written_at` is in UTC and has its zone. `source_sha256` is that of the cubin, or of a run's sources; `budget_sha256` that of
    the user's budget file ("": none was given). Both are lower-case hexadecimal.
    """

    schema_version: int
    tool: str
    written_at: datetime
    machine: str
    kernel: str
    source_sha256: str
    budget_sha256: str
    budget: Budget
    prediction: Prediction
