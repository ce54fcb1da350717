# SPDX-License-Identifier: Apache-2.0
"""A set of CUDA C++ files, from source bytes to stamped bytes, their part of the manifest, and the unit that numbers them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.edit import Edit
from autostamp.model.manifest import SourceFile, Unit, UnitFile
from autostamp.model.options import InstrumentOptions
from autostamp.model.placement import Form, key_at
from autostamp.model.site import Skip
from autostamp.model.sync import Kind
from autostamp.passes import edits as editing
from autostamp.passes import selection
from autostamp.passes.cuda import emit
from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.find import find
from autostamp.passes.cuda.found import FoundFile
from autostamp.passes.cuda.functions import Function, Index, index
from autostamp.passes.cuda.includes import included_programs
from autostamp.passes.cuda.lean import LaneForm
from autostamp.passes.cuda.macros import Macros, learn
from autostamp.passes.cuda.plan import FilePlan, plan, position
from autostamp.passes.cuda.recognise import Recognizer
from autostamp.passes.cuda.source import Source, parse
from autostamp.passes.cuda.views import views
from autostamp.passes.stamped import Stamped, key_of

LANGUAGE = "cuda"
EVENT_LIMIT = 65535
"""Event numbers are 16 bits wide and 0 is none (runtime/layout.py)."""

Watch = Callable[[Sequence[Path]], Iterable[Path]]

_DEVICE = (
    rb"__global__|__device__|<<<|\basm\b|\b__asm|\b_Pragma|\bcu(?:da)?Launch|launch_kernel|kernel_launch|__syncthreads|"
    rb"\b(?:CUTLASS|CUTE|THRUST|CUB)_\w*DEVICE\b"
)
_STAMPED_KINDS = frozenset({Kind.WAIT, Kind.SIGNAL})
_OWN_NAME = re.compile(rb"(?<!\w)AUTOSTAMP_\w*+")


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """Options of one instrumentation of CUDA C++.

    `form` is the form of the stamps: lean for kernels with few registers, usual, or what suits each kernel.
    `with_line_names`: `#line` names the original's path. `without_calls_out_of_line`: device code of several files is linked
    (-rdc). `headers` says for a file how it includes `autostamp.cuh`, where that is not beside it.
    """

    options: InstrumentOptions = field(default_factory=InstrumentOptions)
    carrier: Carrier = Carrier.AUTO
    form: LaneForm = LaneForm.AUTO
    with_line_names: bool = False
    without_calls_out_of_line: bool = False
    headers: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Project:
    """What stamping a set of files gives. Files without edits are as they were; `unit_header` is `autostamp_unit.cuh`.

    `findings` stop a command; `notes` (AS1011, AS1012) are calls that may be waits and have no stamp. `outside` names the
    functions of the context that hold sync ops and that stamped kernels come to.
    """

    stamped: dict[Path, Stamped]
    unit: Unit
    unit_header: bytes
    findings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()
    outside: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    @property
    def changed(self) -> dict[Path, Stamped]:
        """The files with stamps."""
        return {path: item for path, item in self.stamped.items() if item.is_changed}


def instrument(
    files: Mapping[Path, bytes],
    context: Mapping[Path, bytes] | None = None,
    options: CudaOptions | None = None,
    watch: Watch = iter,
) -> Project:
    """Stamp `files` as one unit. `context` are headers that are read but stay as they are.

    Files that are stamped already are stripped first. `watch` passes the files on as they are parsed. Raises AS3002 for a
    stamped file that was edited since, AS4004 for more events than a record can tell apart, AS9001 for a wrong selection, and
    AS3001 or AS3003 when our own checks of a result fail. AS1013 and AS1014 are among the findings.
    """
    options = options or CudaOptions()
    selection.check(options.options.selection)
    originals = {path: _original(data, str(path)) for path, data in files.items()}
    outside = {path: _original(data, str(path)) for path, data in (context or {}).items() if path not in originals}
    sources, beside = _parse(originals, outside, watch)
    everything = {**sources, **beside}
    known = index(everything)
    recognizer = Recognizer(known, everything, options.options.extra_ops)
    found = _found(sources, known, recognizer, options.options, originals)
    planned = plan(
        sources,
        beside,
        known,
        found,
        options.carrier,
        recognizer.candidates,
        included_programs((*originals.values(), *outside.values())),
        is_linked=options.without_calls_out_of_line,
        form=options.form,
    )
    plans = planned.files
    made = {path: tuple(editing.ordered(_edits(path, each, originals[path], options))) for path, each in plans.items()}
    findings = [*planned.findings, *(each for path in made if made[path] for each in _own_names(path, originals[path]))]
    stamped: dict[Path, Stamped] = {}
    for path, data in files.items():
        stamped[path] = _stamped(path, data, originals[path], plans.get(path), made.get(path, ()), options)
    unit, header = _unit(stamped, plans, planned.lean)
    notes = tuple(note for each in found.values() for note in each.findings)
    return Project(stamped, unit, header, tuple(findings), notes, _outside(planned.outside, recognizer))


def _pattern(macros: Macros) -> re.Pattern[bytes]:
    """What text may hold device code or a launch."""
    names = sorted(macros.globals | macros.devices)
    extra = b"".join(rb"|(?<!\w)" + name.encode() + rb"(?!\w)" for name in names)
    return re.compile(_DEVICE + extra)


def _original(data: bytes, path: str) -> bytes:
    return editing.strip(data, path) if editing.is_stamped(data) else data


def _parse(
    originals: Mapping[Path, bytes], outside: Mapping[Path, bytes], watch: Watch
) -> tuple[dict[Path, Source], dict[Path, Source]]:
    macros = learn((*originals.values(), *outside.values()))
    pattern = _pattern(macros)
    wanted = [path for path, data in (*originals.items(), *outside.items()) if pattern.search(data)]
    sources: dict[Path, Source] = {}
    beside: dict[Path, Source] = {}
    for path in watch(wanted):
        if path in originals:
            sources[path] = parse(originals[path], macros)
        else:
            beside[path] = parse(outside[path], macros)
    return sources, beside


def _found(
    sources: Mapping[Path, Source],
    known: Index,
    recognizer: Recognizer,
    options: InstrumentOptions,
    originals: Mapping[Path, bytes],
) -> dict[Path, FoundFile]:
    found = find(sources, known, recognizer)
    for path, each in found.items():
        kept = []
        key = key_of(originals[path])
        for item in each.sites:
            if selection.is_selected(item.site, options.selection, str(path), key):
                kept.append(item)
            else:
                site = item.site
                each.skips.append(
                    Skip(site.span, site.text, site.method, site.kind, site.function, "AS2106", "not selected")
                )
        each.sites = kept
    return found


def _outside(functions: Iterable[Function], recognizer: Recognizer) -> dict[Path, tuple[str, ...]]:
    """Of these functions those that wait or signal, and are no wrappers, by file."""
    names: dict[Path, set[str]] = {}
    for function in functions:
        if recognizer.is_wrapper(function):
            continue
        found = (
            *(recognizer.call(call, function) for call in function.calls),
            *(recognizer.asm(asm, function) for asm in function.asms),
        )
        if any(each is not None and each.op.kind in _STAMPED_KINDS for each in found):
            names.setdefault(function.file, set()).add(function.qualified)
    return {path: tuple(sorted(each)) for path, each in sorted(names.items())}


def _edits(path: Path, planned: FilePlan, original: bytes, options: CudaOptions) -> list[Edit]:
    if not planned.edits and not planned.sites:
        return []
    key = key_of(original)
    header = options.headers.get(path, emit.HEADER)
    name = str(path) if options.with_line_names else ""
    return [
        emit.head(original, header, name),
        *planned.edits,
        *emit.stamps(planned.sites, key, planned.code, _forms(path, planned, key, options)),
    ]


def _forms(path: Path, planned: FilePlan, key: str, options: CudaOptions) -> dict[int, Form]:
    """The sites whose stamps are not in the usual form, by site number."""
    selection_ = options.options.selection
    forms = {
        each.site.number: emit.possible(each, selection_.form(key_at(str(path), key, each.site)))
        for each in planned.sites
    }
    return {number: form for number, form in forms.items() if form is not Form.BOTH}


def _stamped(
    path: Path,
    given: bytes,
    original: bytes,
    planned: FilePlan | None,
    made: tuple[Edit, ...],
    options: CudaOptions,
) -> Stamped:
    planned = planned or FilePlan(original)
    forms = _forms(path, planned, key_of(original), options)
    file = SourceFile(
        key=key_of(original),
        path=str(path),
        module="",
        sha256=hashlib.sha256(original).hexdigest(),
        sites=tuple(each.site for each in planned.sites),
        skips=tuple(planned.skips),
        kernels=planned.kernels,
        language=LANGUAGE,
        forms=tuple((number, form.value) for number, form in sorted(forms.items())),
    )
    stamped = Stamped(given, original, editing.apply(original, made, comment="//"), file, made)
    if made:
        _check(stamped, str(path))
    return stamped


def _fingerprint(item: Stamped) -> str:
    """What a file's numbers mean: its text and where stamps went, which the selection and the carrier decide.

    The head is left out: it names the folder that the file was found in.
    """
    made = [(edit.start, edit.text) for edit in item.edits if edit.rank != emit.RANK_HEAD]
    return f"{item.file.key} {made}" if made else ""


def _unit(
    stamped: Mapping[Path, Stamped], plans: Mapping[Path, FilePlan], lean: frozenset[tuple[Path, int]]
) -> tuple[Unit, bytes]:
    """Number the stamped files in the order of their keys. Files of equal text share their numbers."""
    events: dict[str, int] = {}
    slots: dict[str, int] = {}
    launches = 0
    for path, item in stamped.items():
        if item.is_changed:
            key = item.file.key
            events[key] = max(events.get(key, 0), plans[path].events)
            slots[key] = len(item.file.kernels)
            launches += plans[path].launches
    total = sum(events.values())
    if total > EVENT_LIMIT:
        raise AutostampError.of("AS4004", count=total, limit=EVENT_LIMIT)
    signature = int(hashlib.sha256("\n".join(sorted(map(_fingerprint, stamped.values()))).encode()).hexdigest()[:8], 16)
    files: list[UnitFile] = []
    first_event = first_slot = 0
    for key in sorted(events):
        files.append(UnitFile(key, first_event, first_slot))
        first_event += events[key]
        first_slot += slots[key]
    rows = [(each.key, each.events, each.kernels) for each in files]
    deferred = _deferred(stamped.values(), {each.key: each.events for each in files})
    begins = {each.key: each for each in files}
    slots_of_lean = {
        begins[item.file.key].kernels + kernel.number - 1
        for item in stamped.values()
        for kernel in item.file.kernels
        if kernel.is_lean and item.file.key in begins
    }
    events_of_lean = {begins[stamped[path].file.key].events + 2 * number - 1 for path, number in lean}
    forms = (sorted(slots_of_lean), sorted(events_of_lean))
    return Unit(signature, tuple(files)), emit.unit_header(signature, rows, first_slot, launches, deferred, forms)


def _deferred(stamped: Iterable[Stamped], begins: Mapping[str, int]) -> list[int]:
    """Events of the exits of waits whose instruction lets the warp go on before they end."""
    return sorted(
        {
            begins[item.file.key] + 2 * site.number
            for item in stamped
            if item.file.key in begins
            for site in item.file.sites
            if site.kind is Kind.WAIT and site.side.is_deferred
        }
    )


def _own_names(path: Path, original: bytes) -> Iterator[Diagnostic]:
    """AS1013 for the first name of the author's that could be one of ours."""
    match = _OWN_NAME.search(views(original).code)
    if match is not None:
        name = match[0].decode()
        where = position(original, str(path), match.start(), len(name))
        yield Diagnostic.of("AS1013", where, path=str(path), name=name)


def _check(stamped: Stamped, path: str) -> None:
    """The promises about the text, checked on every file: strip gives the original back, and every stamp is code."""
    if editing.strip(stamped.text, path) != stamped.original:
        raise AutostampError.of("AS3001", path=path)
    written = sum(edit.text.count(emit.PREFIX) for edit in stamped.edits)
    read = len(_OWN_NAME.findall(views(stamped.text).code)) - len(_OWN_NAME.findall(views(stamped.original).code))
    if written != read:
        raise AutostampError.of("AS3003", path=path, detail=f"{written - read} stamps stand in a comment or a literal")
