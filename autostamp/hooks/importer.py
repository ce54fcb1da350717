# SPDX-License-Identifier: Apache-2.0
"""The import hook: target modules are stamped as they load.

CuTe-DSL reads a kernel's source again from the file that its code object names, so stamped text is written to a real file
and compiled under that name; `__file__`, `__spec__` and package paths stay the original's. The pyc cache is neither read nor
written: a pyc left by a plain import would be loaded unstamped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.hooks.targets import Target
from autostamp.model.options import InstrumentOptions
from autostamp.passes.cutedsl import Stamped, instrument
from autostamp.passes.edits import LineMap


@dataclass
class Loaded:
    """What the hook did: stamped files by the path they were written to, findings, and targets that were met.

    Files stay in `folder` and `stamped` when the session is over: their modules live on, and CuTe-DSL reads a kernel's source
    each time it compiles it.
    """

    folder: Path
    options: InstrumentOptions = field(default_factory=InstrumentOptions)
    stamped: dict[str, Stamped] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    _maps: dict[str, LineMap] = field(default_factory=dict)

    def original_line(self, file: str, line: int) -> int:
        """The author's line for `line` of a file; `line` itself when the file is not one of ours."""
        if file not in self.stamped:
            return line
        if file not in self._maps:
            self._maps[file] = self.stamped[file].line_map()
        return self._maps[file].to_original(line)

    def compile(self, data: bytes, origin: str, module: str) -> CodeType | None:
        """Code of the stamped file, or None when the file holds nothing to stamp or could not be stamped."""
        try:
            stamped = instrument(data, origin, self.options, module)
        except AutostampError as error:
            self.findings.append(error.diagnostic)
            return None
        if not stamped.is_changed:
            return None
        folder = self.folder / stamped.file.key
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / Path(origin).name
        path.write_bytes(stamped.text)
        self.stamped[str(path)] = stamped
        self.modules.add(module)
        return compile(stamped.text, str(path), "exec", dont_inherit=True)


class StampingLoader(SourceFileLoader):
    """Loads the stamped text of one module."""

    def __init__(self, fullname: str, path: str, loaded: Loaded) -> None:
        super().__init__(fullname, path)
        self._loaded = loaded

    def get_code(self, fullname: str) -> CodeType | None:
        """Code of the stamped module; the original's when there is nothing to stamp."""
        path = self.get_filename(fullname)
        code = self._loaded.compile(self.get_data(path), path, fullname)
        return code if code is not None else super().get_code(fullname)


class StampingFinder(MetaPathFinder):
    """Asks the other finders, so that editable installs work, and swaps the loader of target modules."""

    def __init__(self, targets: Sequence[Target], loaded: Loaded) -> None:
        self._targets = tuple(targets)
        self.loaded = loaded

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that another finder gives, with our loader when the module is a target; None for everything else."""
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            return self._swap(spec, fullname)
        return None

    def _swap(self, spec: ModuleSpec, fullname: str) -> ModuleSpec | None:
        origin = spec.origin or ""
        covering = [item for item in self._targets if item.covers(fullname, origin)]
        if not covering:
            return None
        self.loaded.met.update(item.text for item in covering)
        if type(spec.loader) is not SourceFileLoader:
            # Extension modules and namespace packages hold no source; another tool's loader may hold one that we would miss.
            if origin.endswith(".py"):
                loader = type(spec.loader).__name__
                self.loaded.findings.append(Diagnostic.of("AS5009", module=fullname, loader=loader))
            return None
        spec.loader = StampingLoader(fullname, origin, self.loaded)
        return spec
