# SPDX-License-Identifier: Apache-2.0
"""What is stamped and how, over all files of a unit: sites that can run, kernels that bind a lane, launches that hand it over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autostamp.diagnostics import Diagnostic, Position
from autostamp.model.edit import Edit
from autostamp.model.site import KernelDef, Skip
from autostamp.passes.cuda import emit, inline
from autostamp.passes.cuda.carrier import Carrier, Choice, Chooser
from autostamp.passes.cuda.found import FoundFile, FoundSite
from autostamp.passes.cuda.functions import Call, Function, Index
from autostamp.passes.cuda.includes import PROGRAMS
from autostamp.passes.cuda.kernels import Kernel, kernel_heads, kernels
from autostamp.passes.cuda.launches import Hook, Launch, LaunchForm, launches
from autostamp.passes.cuda.lean import Kept, LaneForm, kept_by, spread
from autostamp.passes.cuda.reach import Candidates, Reach
from autostamp.passes.cuda.source import Source
from autostamp.passes.stamped import key_of

_WORD = re.compile(rb"[A-Za-z_]\w*+")
# Kernel templates of CUTLASS that run the object they are given: include/cutlass/device_kernel.h.
_LIBRARY_KERNELS = frozenset({"device_kernel", "Kernel2"})


@dataclass(slots=True)
class FilePlan:
    """One file: what is stamped, what is not, its kernels, and the edits beside the stamps. `events` are its event numbers."""

    code: bytes
    sites: list[FoundSite] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    kernels: tuple[KernelDef, ...] = ()
    edits: list[Edit] = field(default_factory=list)
    launches: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The plans of all files, AS1014 for each kernel that `--carrier param` asks too much of, and the functions of headers
    that are not stamped, as far as stamped kernels come to them.

    `lean` are the sites (path, number) whose stamps have the lean form.
    """

    files: dict[Path, FilePlan]
    findings: tuple[Diagnostic, ...]
    outside: tuple[Function, ...]
    lean: frozenset[tuple[Path, int]] = frozenset()


def plan(
    sources: Mapping[Path, Source],
    outside: Mapping[Path, Source],
    index: Index,
    found: Mapping[Path, FoundFile],
    carrier: Carrier,
    candidates: Candidates,
    included: frozenset[str] = frozenset(),
    *,
    is_linked: bool = False,
    form: LaneForm = LaneForm.AUTO,
) -> Plan:
    """The plan of every file of `sources`, which are stamped as one unit; `outside` are only read.

    `candidates` gives the definitions that a call can mean; `included` are names of programs that some file includes.
    """
    planner = _Planner(sources, outside, index, found, candidates, is_linked=is_linked)
    planner.drop_sites()
    return planner.plan(carrier, included, form)


class _Planner:
    def __init__(
        self,
        sources: Mapping[Path, Source],
        outside: Mapping[Path, Source],
        index: Index,
        found: Mapping[Path, FoundFile],
        candidates: Candidates,
        *,
        is_linked: bool,
    ) -> None:
        self._sources = sources
        self._outside = outside
        self._index = index
        self._is_linked = is_linked
        self._places = inline.Places(index)
        self._reach = Reach(index, {**sources, **outside})
        self._files = {path: FilePlan(source.code) for path, source in sources.items()}
        # Sites by the number of their function; those of code that is in no function have none.
        self._held: dict[int, list[tuple[Path, FoundSite]]] = {}
        for path, each in found.items():
            self._files[path].skips += each.skips
            self._files[path].events = 2 * max((site.site.number for site in each.sites), default=0)
            for site in each.sites:
                self._hold(path, site)
        heads = kernel_heads((*sources.values(), *outside.values()))
        self._kernels = [
            kernel for path, source in sources.items() for kernel in kernels(path, source, self._places.of(path), heads)
        ]
        self._edges = self._reach.masks()
        self._certain, self._certain_or_object = self._reach.certain(candidates)
        self._open = self._of_headers()

    def _hold(self, path: Path, site: FoundSite) -> None:
        function = self._places.at(path, site.start)
        if function is None:
            self._skip(path, site, "AS2105", "no function around it was found")
        else:
            self._held.setdefault(self._reach.number[id(function)], []).append((path, site))

    def _skip(self, path: Path, found: FoundSite, code: str, reason: str) -> None:
        site = found.site
        self._files[path].skips.append(Skip(site.span, site.text, site.method, site.kind, site.function, code, reason))

    def _holders(self) -> int:
        mask = 0
        for number in self._held:
            mask |= 1 << number
        return mask

    def _of_headers(self) -> int:
        """Device functions of headers (bits): a kernel of whatever file includes the header may come to them."""
        mask = 0
        for number, function in enumerate(self._index.functions):
            is_header = function.file in self._sources and function.file.suffix not in PROGRAMS
            if is_header and function.is_device and not function.is_kernel:
                mask |= 1 << number
        return mask

    def _drop(self, functions: int, code: str, reason: str) -> None:
        """Give up the sites of these functions (bits)."""
        for number in [each for each in self._held if functions >> each & 1]:
            for path, site in self._held.pop(number):
                self._skip(path, site, code, reason)

    def drop_sites(self) -> None:
        """Skip what no stamp can run in: functions that stay functions, and what no kernel comes to.

        Headers need no kernel among these files: what they hold runs in kernels of the files that include them.
        """
        stopped = inline.blocked(
            self._reach,
            self._places,
            {**self._sources, **self._outside},
            self._holders(),
            self._edges,
            self._certain,
            is_linked=self._is_linked,
        )
        for number, (reason, _) in sorted(stopped.items()):
            self._drop(1 << number, "AS2111", reason)
        for number, (reason, mask) in sorted(stopped.items()):
            self._drop(mask, "AS2111", f"{self._index.functions[number].qualified} calls it, and {reason}")
        reached = self._open | (self._unnamed() if self._kernels else 0)
        certain = 0
        for kernel in self._kernels:
            reached |= self._reached(kernel)
            if kernel.function is not None:
                certain |= self._certain[self._reach.number[id(kernel.function)]]
        # A stamp that such a kernel really comes to does not compile; so what is in doubt is given up, and said.
        for name, mask in self._kernels_outside() if self._held else ():
            self._drop(mask & ~certain, "AS2115", f"{name} may reach it, a kernel that is not stamped")
        self._drop(~reached, "AS2115", "no kernel of these files reaches it")

    def _kernels_outside(self) -> Iterator[tuple[str, int]]:
        """Kernels that are not stamped but that the stamped files come to name, with what they come to (bits)."""
        functions = self._index.functions
        words: set[bytes] = set()
        named = 0
        for source in self._sources.values():
            words.update(_WORD.findall(source.code))
        for number in self._reach.of_words(words):
            named |= self._edges[number]
        for at, each in enumerate(functions):
            if named >> at & 1 and each.file in self._outside:
                words.update(_WORD.findall(each.source.code[each.start : each.end]))
        for at, each in enumerate(functions):
            if each.is_kernel and each.file in self._outside and each.name.encode() in words:
                yield f"{each.qualified} of {each.file}", self._certain_or_object[at]
        known = {each.name for each in functions if each.is_kernel}
        for name in sorted(_LIBRARY_KERNELS - known):
            if name.encode() in words:
                mask = 0
                for number in self._reach.handed_on:
                    mask |= self._certain_or_object[number]
                yield name, mask

    def _reached(self, kernel: Kernel) -> int:
        """The functions that a kernel comes to (bits), as far as they are named."""
        if kernel.function is not None:
            mask = self._edges[self._reach.number[id(kernel.function)]]
        else:
            mask = 0
            for number in self._reach.of_text(kernel.text):
                mask |= self._edges[number]
        return mask

    def _unnamed(self) -> int:
        """What constructors, destructors and operators come to (bits): any code may run them."""
        mask = 0
        holders = self._holders()
        for number in self._reach.implicit:
            if self._certain[number] & holders:
                mask |= self._certain[number]
        return mask

    def plan(self, carrier: Carrier, included: frozenset[str], form: LaneForm) -> Plan:
        """The edits beside the stamps, and what the user must hear."""
        for sites in self._held.values():
            for path, site in sites:
                self._files[path].sites.append(site)
        holders = self._holders()
        unnamed = self._unnamed()
        reached = {id(kernel): self._reached(kernel) | unnamed for kernel in self._kernels}
        bound = [kernel for kernel in self._kernels if reached[id(kernel)] & holders]
        found = self._launches() if bound else []
        chooser = Chooser(self._sources, self._outside, self._index, self._kernels, found, included)
        lean = self._lean(bound, carrier, form)
        lean_functions = spread(lean, {id(kernel): reached[id(kernel)] & holders for kernel in bound})
        choices = {id(kernel): chooser.choose(kernel, carrier, is_lean=id(kernel) in lean) for kernel in bound}
        self._inline(reached.values())
        for kernel in bound:
            self._bind(kernel, choices[id(kernel)])
        self._hook(found, list(choices.values()))
        for path, each in self._files.items():
            each.kernels = tuple(
                replace(
                    self._definition(kernel, choices.get(id(kernel)), reached[id(kernel)], chooser),
                    is_lean=id(kernel) in lean,
                )
                for kernel in self._kernels
                if kernel.path == path
            )
            each.sites.sort(key=lambda site: site.site.number)
            each.skips.sort(key=lambda skip: (skip.span.start, skip.span.end))
        refused = [choices[id(kernel)] for kernel in bound if not choices[id(kernel)].is_param]
        findings = [self._refusal(choice) for choice in refused] if carrier is Carrier.PARAM else []
        mask = 0
        for kernel in bound:
            if kernel.function is not None:
                mask |= self._certain_or_object[self._reach.number[id(kernel.function)]]
        outside = [
            function
            for number, function in enumerate(self._index.functions)
            if mask >> number & 1 and function.file in self._outside
        ]
        lean_sites = frozenset(
            (path, site.site.number)
            for number, held in self._held.items()
            if lean_functions >> number & 1
            for path, site in held
        )
        return Plan(self._files, tuple(findings), tuple(outside), lean_sites)

    def _lean(self, bound: Sequence[Kernel], carrier: Carrier, form: LaneForm) -> set[int]:
        """The kernels (by id) whose stamps are to be lean."""
        if form is LaneForm.AUTO and carrier is not Carrier.PARAM:
            return {id(kernel) for kernel in bound if any(each.is_few for each in self._kept(kernel))}
        return {id(kernel) for kernel in bound if form is LaneForm.LEAN}

    def _kept(self, kernel: Kernel) -> tuple[Kept, ...]:
        """What the roles of a kernel keep of their registers, as far as calls can be followed for certain or by objects."""
        if kernel.function is None:
            return ()
        mask = self._certain_or_object[self._reach.number[id(kernel.function)]]
        functions = [function for number, function in enumerate(self._index.functions) if mask >> number & 1]
        return tuple(kept_by(functions))

    def _launches(self) -> list[Launch]:
        names = frozenset(kernel.name for kernel in self._kernels)
        made: list[Launch] = []
        for path, source in self._sources.items():
            calls = [call for function in self._places.of(path) for call in function.calls]
            calls += [each for each in self._index.outside.get(path, ()) if isinstance(each, Call)]

            def place(offset: int, path: Path = path) -> Function | None:
                return self._places.at(path, offset)

            made += launches(path, source, calls, place, names)
        return made

    def _inline(self, reached: Iterable[int]) -> None:
        """Functions between a kernel and a site become part of the kernel."""
        holders = self._holders()
        from_kernels = self._open
        for mask in reached:
            from_kernels |= mask
        wanted: dict[Path, list[Function]] = {}
        roots = {id(kernel.function) for kernel in self._kernels}
        for number, function in enumerate(self._index.functions):
            if id(function) in roots:
                continue
            # By name alone a function that compares two numbers comes to a wait: `operator==` is the name of many.
            is_between = from_kernels >> number & 1 and self._certain_or_object[number] & holders
            if is_between and function.file in self._files:
                wanted.setdefault(function.file, []).append(function)
        for path, functions in wanted.items():
            self._files[path].edits += inline.edits(functions, self._reach)

    def _bind(self, kernel: Kernel, choice: Choice) -> None:
        key = key_of(self._sources[kernel.path].original)
        edits = self._files[kernel.path].edits
        edits.append(emit.bind(kernel.body, key, kernel.number, is_param=choice.is_param))
        if not choice.is_param or kernel.parameters is None:
            return
        for path, listed in ((kernel.path, kernel.parameters), *choice.declarations):
            has_default = listed.required < listed.count
            self._files[path].edits.append(
                emit.parameter(listed.closing, is_only=not listed.count, has_default=has_default)
            )
        for launch in choice.launches:
            # cudaLaunchKernelEx has the configuration and the kernel before the kernel's own arguments.
            is_only = not kernel.parameters.count and launch.form is LaunchForm.CHEVRON
            self._files[launch.path].launches += 1
            self._files[launch.path].edits.append(
                emit.argument(launch.closing, key, kernel.number, launch.stream, is_only=is_only)
            )

    def _hook(self, found: Iterable[Launch], choices: Sequence[Choice]) -> None:
        """The host's part of each launch that may run a kernel with the symbol."""
        known = {kernel.name for kernel in self._kernels}
        by_param = {(launch.path, launch.start) for choice in choices for launch in choice.launches}
        by_symbol = {choice.kernel.name for choice in choices if not choice.is_param}
        if not by_symbol:
            return
        made: set[tuple[Path, Hook, str]] = set()
        for launch in found:
            if launch.hook is None or (launch.path, launch.start) in by_param:
                continue
            if launch.kernel in known and launch.kernel not in by_symbol:
                continue
            each = self._files[launch.path]
            each.launches += 1
            hook = launch.hook
            if hook.is_braced and not any((launch.path, hook) == other[:2] for other in made):
                each.edits += emit.braces(hook.start, hook.end)
            if (launch.path, hook, launch.stream) in made:
                continue
            made.add((launch.path, hook, launch.stream))
            if hook.is_around:
                each.edits += emit.prepare_around(hook, launch.stream, each.code)
            else:
                each.edits.append(emit.prepare(hook, launch.stream))

    def _definition(self, kernel: Kernel, choice: Choice | None, reached: int, chooser: Chooser) -> KernelDef:
        source = self._sources[kernel.path]
        sites = sorted(
            (key_of(self._sources[path].original), site.site.number)
            for number in self._held
            if reached >> number & 1
            for path, site in self._held[number]
        )
        return KernelDef(
            kernel.qualified,
            source.original.count(b"\n", 0, kernel.start) + 1,
            is_threaded=chooser.is_launched(kernel),
            host=chooser.host_of(kernel),
            number=kernel.number,
            carrier="" if choice is None else "param" if choice.is_param else "symbol",
            reason="it reaches no site" if choice is None else choice.reason,
            reaches=tuple(sites),
        )

    def _refusal(self, choice: Choice) -> Diagnostic:
        kernel = choice.kernel
        reason = choice.reason
        if choice.position is not None:
            path, offset = choice.position
            source = self._sources.get(path) or self._outside[path]
            reason += f" ({path}:{position(source.original, str(path), offset).line})"
        where = position(self._sources[kernel.path].original, str(kernel.path), kernel.start, len(kernel.name))
        return Diagnostic.of("AS1014", where, kernel=kernel.qualified, reason=reason)


def position(original: bytes, path: str, offset: int, width: int = 1) -> Position:
    """An offset as line and column, both from 1, with the line's text."""
    start = original.rfind(b"\n", 0, offset) + 1
    end = original.find(b"\n", offset)
    line = original[start : len(original) if end < 0 else end].decode("utf-8", "replace").rstrip("\r")
    return Position(path, original.count(b"\n", 0, offset) + 1, offset - start + 1, line, width)
