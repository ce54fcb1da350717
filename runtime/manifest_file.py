# SPDX-License-Identifier: Apache-2.0
"""The manifest as a JSON file, its digest, and files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import MANIFEST_VERSION, Manifest


def encode(manifest: Manifest) -> bytes:
    """The manifest as indented JSON, fields in the order of the types, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes, path: str = "manifest") -> Manifest:
    """Parse a manifest; nothing is coerced. Raises AS6003, naming `path`, for anything but one of this version."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS6003", path=path, detail=str(error)) from error
    if manifest.version != MANIFEST_VERSION:
        detail = f"it has version {manifest.version}, this autostamp reads version {MANIFEST_VERSION}"
        raise AutostampError.of("AS6003", path=path, detail=detail)
    return manifest


def digest(manifest: Manifest) -> str:
    """SHA-256 in hex over the manifest as compact JSON with sorted keys: independent of how a file is laid out."""
    return digest_of_json(msgspec.json.encode(manifest))


def digest_of_json(data: bytes) -> str:
    """`digest` of a manifest file's own bytes: fields that the types gained since it was written do not enter.

    Raises msgspec.DecodeError for text that is not JSON.
    """
    return hashlib.sha256(msgspec.json.encode(msgspec.json.decode(data), order="sorted")).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Read a manifest file; raises AS6003 when it cannot be read or is not a manifest."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AutostampError.of("AS6003", path=path, detail=error.strerror or str(error)) from error
    return decode(data, str(path))


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest file whole or not at all; raises AS7001."""
    write_whole(path, encode(manifest))


def write_whole(path: Path, data: bytes) -> None:
    """Write one file whole or not at all, making parent folders; raises AS7001."""
    write_all({path: data})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write files under temporary names beside their own, and rename them once all are written; raises AS7001."""
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in files}
    path = Path()
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_bytes(data)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        for path in files:
            temporary[path].replace(path)
    except OSError as error:
        raise AutostampError.of("AS7001", path=path, detail=error.strerror or str(error)) from error
    finally:
        for path in temporary.values():
            with contextlib.suppress(OSError):
                path.unlink()
