# SPDX-License-Identifier: Apache-2.0
"""The pinned packages of the corpus: download, unpack, and the list of files with their expected counts."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

FILES_TSV = Path(__file__).with_name("files.tsv")
DEFAULT_CACHE = Path(".cache/corpus")


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned release. `is_default` marks those that a run takes when none are named."""

    name: str
    version: str
    is_default: bool = True

    @property
    def folder(self) -> str:
        """Name of the unpacked folder, spelled as in the wheel's file name."""
        return self.name.replace("-", "_")

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


PACKAGES = (
    Package("flash-attn-4", "4.0.0b36"),
    Package("quack-kernels", "0.6.5"),
    Package("nvidia-cutlass-operators", "0.3.0"),
    # 100 MB to download and 500 files to stamp: only on request.
    Package("flashinfer-python", "0.7.4", is_default=False),
)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One row of `files.tsv`: a file that holds a sync call, with its counts by called name."""

    package: str
    path: str
    blocking: int
    poll: int
    signalling: int

    @property
    def totals(self) -> tuple[int, int, int]:
        return self.blocking, self.poll, self.signalling


class CorpusError(Exception):
    """The corpus cannot be brought onto this machine."""


def listed_files() -> list[ListedFile]:
    """All rows of `files.tsv`."""
    lines = FILES_TSV.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")][1:]
    return [ListedFile(name, path, int(b), int(p), int(s)) for name, path, b, p, s in rows]


def unpacked(package: Package, cache: Path) -> Path:
    """Folder of the package's listed files under `cache`, downloaded and unpacked if it is not there yet."""
    folder = cache / "unpacked" / f"{package.folder}-{package.version}"
    if not folder.is_dir():
        _unpack(_wheel(package, cache / "wheels"), package, folder)
    return folder


def _wheel(package: Package, folder: Path) -> Path:
    pattern = f"{package.folder}-{package.version}-*.whl"
    if not list(folder.glob(pattern)):
        folder.mkdir(parents=True, exist_ok=True)
        _download(package, folder)
    found = sorted(folder.glob(pattern))
    if not found:
        raise CorpusError(f"pip downloaded no {pattern} into {folder}")
    return found[0]


def _download(package: Package, folder: Path) -> None:
    # --pre: flash-attn-4 has only pre-releases. No dependency is needed, since nothing is imported.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--pre", "--only-binary=:all:"]
    result = subprocess.run(
        [*command, "--dest", str(folder), package.requirement], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise CorpusError(f"pip download {package.requirement} failed:\n{result.stderr.strip()}")


def _unpack(wheel: Path, package: Package, folder: Path) -> None:
    """Unpack the listed Python files only. The folder appears under its name once it is complete."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    wanted = {file.path for file in listed_files() if file.package == package.name}
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(wanted.intersection(archive.namelist())):
            archive.extract(name, partial)
    partial.rename(folder)
