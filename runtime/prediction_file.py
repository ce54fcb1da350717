# SPDX-License-Identifier: Apache-2.0
"""Predictions as JSON files: written whole or not at all, read strictly."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from autostamp import __version__
from autostamp.model.budget import Budget, Prediction
from autostamp.model.manifest import Manifest
from autostamp.model.prediction_file import PREDICTION_SCHEMA, PredictionFile
from autostamp.runtime.manifest_file import write_whole
from autostamp.runtime.versioned_json import VersionedJson

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def made(
    budget: Budget, prediction: Prediction, *, source: str, given: bytes | None, written_at: datetime
) -> PredictionFile:
    """The file's content. `source` is a digest of `digest_of`, `given` the bytes of the user's budget file, None without one."""
    return PredictionFile(
        schema_version=PREDICTION_SCHEMA,
        tool=f"autostamp {__version__}",
        written_at=written_at,
        machine=budget.machine,
        kernel=budget.kernel,
        source_sha256=source,
        budget_sha256=digest_of(given) if given is not None else "",
        budget=budget,
        prediction=prediction,
    )


def digest_of(data: bytes) -> str:
    """SHA-256 in hex: of a cubin, or of a budget file."""
    return hashlib.sha256(data).hexdigest()


def digest_of_sources(manifest: Manifest) -> str:
    """Digest of a run's sources: of the one file, that file's own; of several, of their digests, sorted, a line each."""
    digests = sorted({file.sha256 for file in manifest.files})
    return digests[0] if len(digests) == 1 else digest_of("".join(f"{each}\n" for each in digests).encode())


def encode(prediction: PredictionFile) -> bytes:
    """Indented JSON, fields in the order of the types, with a newline at the end."""
    return _FILE.encode(prediction)


def decode(data: bytes, path: str = "prediction") -> PredictionFile:
    """Parse a prediction; nothing is coerced. Raises AS7125, naming `path`, for anything but one of this version."""
    return _FILE.decode(data, path)


def read_prediction(path: Path) -> PredictionFile:
    """Read a prediction file; raises AS7125 when it cannot be read or is not one."""
    return _FILE.read(path)


def write_prediction(path: Path, prediction: PredictionFile) -> None:
    """Write a prediction file whole or not at all; raises AS7001."""
    write_whole(path, encode(prediction))


def _faults(found: PredictionFile) -> Iterable[str]:
    """What the types alone do not say."""
    if found.written_at.utcoffset() != timedelta(0):
        yield "written_at is not in UTC"
    if not _DIGEST.fullmatch(found.source_sha256):
        yield "source_sha256 is not 64 hex digits"
    if found.budget_sha256 and not _DIGEST.fullmatch(found.budget_sha256):
        yield "budget_sha256 is neither empty nor 64 hex digits"
    named = {(found.machine, found.kernel), *((each.machine, each.kernel) for each in (found.budget, found.prediction))}
    if len(named) > 1:
        yield "machine and kernel differ between the file, its budget and its prediction"
    if found.prediction.period <= 0:
        yield f"a period of {found.prediction.period:g} cycles"


_FILE: Final = VersionedJson(PredictionFile, PREDICTION_SCHEMA, "AS7125", _faults)
