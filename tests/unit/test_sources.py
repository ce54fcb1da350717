# SPDX-License-Identifier: Apache-2.0
"""Where the original text of a stamped file is found when the run folder did not keep it."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

from autostamp.runtime.sources import original_texts


def manifest_of(path: str, module: str, text: bytes):
    digest = hashlib.sha256(text).hexdigest()
    return SimpleNamespace(files=(SimpleNamespace(key=digest[:16], path=path, module=module, sha256=digest),))


def test_the_installed_package_of_the_module_is_found(tmp_path, monkeypatch):
    text = b"x = 1\n"
    (tmp_path / "site" / "a_package").mkdir(parents=True)
    (tmp_path / "site" / "a_package" / "kernel.py").write_bytes(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    manifest = manifest_of("/other/machine/a_package/kernel.py", "a_package.kernel", text)
    assert list(original_texts(tmp_path / "RUN", manifest).values()) == ["x = 1\n"]


def test_a_file_of_the_name_with_other_content_does_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.cu").write_bytes(b"changed\n")
    assert original_texts(tmp_path / "RUN", manifest_of("/there/ring.cu", "", b"stamped\n")) == {}


def test_the_end_of_the_path_in_the_current_folder_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.cu").write_bytes(b"stamped\n")
    manifest = manifest_of("/there/ring.cu", "", b"stamped\n")
    assert list(original_texts(tmp_path / "RUN", manifest).values()) == ["stamped\n"]
