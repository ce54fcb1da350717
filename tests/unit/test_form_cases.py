# SPDX-License-Identifier: Apache-2.0
"""Every pair of files in tests/cases/forms: what is stamped where sites have a form of their own.

`name.cu` or `name.py` is a source, `name.forms` says `line:column FORM` of the sites that a placement has in that form, with the
form that they get instead where that is another; all others are in the usual one. `name.expected.cu` and `name.stamped.py` are
what it must become, with KEY for the file's key and without the seal. All were written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autostamp.model.options import InstrumentOptions, Selection
from autostamp.model.placement import Form, key_at
from autostamp.passes import cutedsl, edits
from autostamp.passes.cuda.instrument import CudaOptions, instrument
from autostamp.passes.stamped import Stamped

FOLDER = Path(__file__).parents[1] / "cases" / "forms"
SYNC = FOLDER.parent / "cuda" / "stamp" / "sync.cuh"
NAMES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.forms"))
SEAL = re.compile(rb"(?://|#) autostamp: stamped [0-9a-f]{64} \S+\r?\n\Z")


def stamped(name: str, options: InstrumentOptions | None = None) -> Stamped:
    """The file with all stamps, or with those of a selection."""
    if name.startswith("cuda/"):
        path = Path(f"{Path(name).name}.cu")
        data, context = (FOLDER / f"{name}.cu").read_bytes(), {Path("sync.cuh"): SYNC.read_bytes()}
        (item,) = instrument({path: data}, context, CudaOptions(options or InstrumentOptions())).stamped.values()
        return item
    return cutedsl.instrument((FOLDER / f"{name}.py").read_bytes(), f"{Path(name).name}.py", options)


def forms_of(name: str) -> dict[str, tuple[Form, Form]]:
    """(asked for, given) by `line:column`."""
    rows = (line.split() for line in (FOLDER / f"{name}.forms").read_text(encoding="utf-8").splitlines())
    return {place: (Form(forms[0]), Form(forms[-1])) for place, *forms in rows}


def placed(name: str) -> Stamped:
    """The file stamped by a placement with those forms."""
    whole, forms = stamped(name).file, forms_of(name)
    places = {f"{site.span.line}:{site.span.column}": site for site in whole.sites}
    assert forms.keys() <= places.keys(), "a form is of no site"
    chosen = tuple(
        (key_at(whole.path, whole.key, site), forms.get(place, (Form.BOTH, Form.BOTH))[0])
        for place, site in places.items()
    )
    return stamped(name, InstrumentOptions(Selection(placed=chosen)))


def test_cases_were_found() -> None:
    assert {name.partition("/")[0] for name in NAMES} == {"cuda", "cutedsl"}
    asked = {forms[0] for name in NAMES for forms in forms_of(name).values()}
    assert asked == set(Form) - {Form.BOTH}


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    found = placed(name)
    ending = ".expected.cu" if name.startswith("cuda/") else ".stamped.py"
    text = SEAL.sub(b"", found.text).replace(found.file.key.encode(), b"KEY")
    assert text.decode() == (FOLDER / f"{name}{ending}").read_text(encoding="utf-8")
    assert edits.strip(found.text, "case") == found.original


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cuda/")])
def test_the_manifest_says_the_form_that_a_site_got(name: str) -> None:
    """Of CUDA C++ the file's manifest does; of CuTe-DSL the stamper, when the kernel is traced."""
    file = placed(name).file
    given = {place: form for place, (_, form) in forms_of(name).items() if form is not Form.BOTH}
    places = {site.number: f"{site.span.line}:{site.span.column}" for site in file.sites}
    assert {places[number]: Form(form) for number, form in file.forms} == given


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cutedsl/")])
def test_calls_beside_a_carried_clock_are_skips_and_come_out_again(name: str) -> None:
    """A carried clock is written behind the next sync call, stamped or not, so calls without a stamp are in the text as well."""
    whole, forms = stamped(name).file, forms_of(name)
    carried = {place: form for place, (form, _) in forms.items() if form.is_carried}
    places = {f"{site.span.line}:{site.span.column}": site for site in whole.sites}
    chosen = tuple((key_at(whole.path, whole.key, places[place]), form) for place, form in carried.items())
    found = stamped(name, InstrumentOptions(Selection(placed=chosen)))
    assert edits.strip(found.text, "case") == found.original
    assert {f"{site.span.line}:{site.span.column}" for site in found.file.sites} == set(carried)
    left = {f"{skip.span.line}:{skip.span.column}" for skip in found.file.skips}
    assert set(places) - set(carried) <= left
    assert all(skip.code for skip in found.file.skips)
    again = cutedsl.instrument(found.text, f"{Path(name).name}.py", InstrumentOptions(Selection(placed=chosen)))
    assert again.text == found.text
