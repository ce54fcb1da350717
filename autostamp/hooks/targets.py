# SPDX-License-Identifier: Apache-2.0
"""What the user asked to instrument: modules, packages, files and folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MAIN = "__main__"


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to instrument. `path` is set for a file or folder, `module` for a module or package."""

    text: str
    module: str = ""
    path: str = ""

    @classmethod
    def of(cls, text: str) -> Target:
        """A path when it exists as one or looks like one, else a module name."""
        path = Path(text)
        if text.endswith(".py") or "/" in text or (path.exists() and not text.isidentifier()):
            return cls(text, path=str(path.resolve()))
        return cls(text, module=text)

    def covers(self, module: str, origin: str) -> bool:
        """True when the module of this name, loaded from `origin`, belongs to the target."""
        if self.module:
            return module == self.module or module.startswith(f"{self.module}.")
        if not origin:
            return False
        file = Path(origin).resolve()
        own = Path(self.path)
        return file == own or own in file.parents
