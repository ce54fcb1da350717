# SPDX-License-Identifier: Apache-2.0
"""One file, from source bytes to stamped bytes and its part of the manifest."""

from __future__ import annotations

import ast
import codecs
import hashlib
import re
import warnings
from functools import partial

import libcst as cst

from autostamp.diagnostics import AutostampError, Position
from autostamp.model.manifest import SourceFile
from autostamp.model.options import InstrumentOptions
from autostamp.model.placement import Form, key_at
from autostamp.model.site import Skip
from autostamp.passes import edits as editing
from autostamp.passes import selection
from autostamp.passes.cutedsl import emit
from autostamp.passes.cutedsl.calls import Catalogue
from autostamp.passes.cutedsl.find import Finder
from autostamp.passes.cutedsl.found import Found
from autostamp.passes.stamped import Stamped, key_of

_KERNEL = re.compile(rb"@[\w.]*\bkernel\b")
# The name that stamped files call us by; one of the author's own would be overwritten.
_ALIAS = re.compile(rb"(?<![\w.])_as(?!\w)")
_DSL = re.compile(rb"\bcutlass\b|\bcute\b")


def instrument(data: bytes, path: str, options: InstrumentOptions | None = None, module: str = "") -> Stamped:
    """Stamp one file. A file that is stamped already is stripped first, so stamping twice equals stamping once.

    Raises AS1001 or AS1002 for text that is not Python in UTF-8, AS3001 or AS3003 when our own checks of the result fail.
    """
    options = options or InstrumentOptions()
    original = editing.strip(data, path) if editing.is_stamped(data) else data
    found = Found()
    catalogue = Catalogue.of(options.extra_ops)
    # Most files of a package hold neither a sync call nor a kernel; parsing is nearly all of the cost.
    is_wanted = not options.selection.files or key_of(original) in options.selection.files
    if is_wanted and _DSL.search(original) and (catalogue.pattern.search(original) or _KERNEL.search(original)):
        found = _find(original, path, options, catalogue)
    made = tuple(editing.ordered(emit.edits(found, _forms(found, key_of(original), path, options))))
    if made and _ALIAS.search(original):
        raise AutostampError.of("AS1005", path=path)
    text = editing.apply(original, made)
    file = SourceFile(
        key=key_of(original),
        path=path,
        module=module,
        sha256=hashlib.sha256(original).hexdigest(),
        sites=tuple(item.site for item in found.sites),
        skips=tuple(found.skips),
        kernels=tuple(found.kernels),
    )
    stamped = Stamped(data, original, text, file, made)
    if made:
        _check(stamped, path)
    return stamped


def _forms(found: Found, key: str, path: str, options: InstrumentOptions) -> dict[int, Form | None]:
    """The sites whose stamps are not in the usual form, by site number; None for those that have none."""
    sites = (each.site for each in found.sites)
    forms = {site.number: options.selection.form(key_at(path, key, site)) for site in sites}
    unusual: dict[int, Form | None] = {number: form for number, form in forms.items() if form is not Form.BOTH}
    return unusual | dict.fromkeys(each.site.number for each in found.muted)


def _carries(options: InstrumentOptions) -> bool:
    """Whether a wait is placed whose clock is written behind the next sync call, stamped or not."""
    return any(form.is_carried for _, form in options.selection.placed or ())


def _find(original: bytes, path: str, options: InstrumentOptions, catalogue: Catalogue) -> Found:
    selection.check(options.selection)
    bom = len(codecs.BOM_UTF8) if original.startswith(codecs.BOM_UTF8) else 0
    try:
        source = original[bom:].decode()
    except UnicodeDecodeError as error:
        raise AutostampError.of("AS1002", path=path, detail=str(error)) from error
    try:
        tree = cst.parse_module(source)
        # libcst reads "\r" alone as a newline too; offsets into the original are only true when it writes back what it read.
        if tree.code != source:
            raise AutostampError.of("AS1001", path=path, detail="libcst does not write it back unchanged")
        is_selected = (
            (lambda _: True)
            if _carries(options)
            else partial(selection.is_selected, selection=options.selection, path=path, key=key_of(original))
        )
        found = Finder(original[bom:], tree, catalogue, emit.import_text(key_of(original)), is_selected).run()
    except cst.ParserSyntaxError as error:
        raise (_refused(original, path) or AutostampError.of("AS1001", path=path, detail=error.message)) from error
    except RecursionError as error:
        raise AutostampError.of("AS1001", path=path, detail="it is nested too deeply") from error
    _select(found, path, options, key_of(original))
    return found.shifted(bom) if bom else found


def _refused(text: bytes, path: str, code: str = "AS1001") -> AutostampError | None:
    """The finding with Python's own position and words (libcst's are vague) when Python does not take `text`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the author's code, an invalid escape for example
            ast.parse(text.decode("utf-8-sig"))  # of bytes, Python counts columns in bytes
    except SyntaxError as error:
        line = (error.text or "").rstrip("\r\n")
        position = Position(path, error.lineno, max(1, error.offset or 1), line) if error.lineno else None
        return AutostampError.of(code, position, path=path, detail=error.msg)
    except ValueError as error:
        return AutostampError.of(code, path=path, detail=str(error))
    return None


def _select(found: Found, path: str, options: InstrumentOptions, key: str) -> None:
    """Move sites that the user did not select to the skips. Their numbers stay. Where a clock is carried to the next sync call,
    they are muted.
    """
    kept = []
    for item in found.sites:
        site = item.site
        if selection.is_selected(site, options.selection, path, key):
            kept.append(item)
        else:
            if _carries(options):
                found.muted.append(item)
            found.skips.append(
                Skip(site.span, site.text, site.method, site.kind, site.function, "AS2106", "not selected")
            )
    found.sites = kept
    found.skips.sort(key=lambda skip: skip.span.start)


def _check(stamped: Stamped, path: str) -> None:
    """The promises about the text, checked on every file: strip gives the original back and the result is Python."""
    if editing.strip(stamped.text, path) != stamped.original:
        raise AutostampError.of("AS3001", path=path)
    refused = _refused(stamped.text, path, "AS3003")
    if refused is not None:
        # libcst reads the syntax of newer Pythons than the one that runs: then it is the original that is not Python here.
        raise _refused(stamped.original, path) or refused
