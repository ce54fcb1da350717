# SPDX-License-Identifier: Apache-2.0
"""`--only` and `--skip`."""

from __future__ import annotations

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.options import Selection
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.passes.selection import FIELDS, check, is_selected

SITE = Site(
    number=3,
    span=Span(10, 40, 2, 5),
    text="pipeline_k.consumer_wait(state)",
    method="consumer_wait",
    owner="PipelineAsync",
    kind=Kind.WAIT,
    side=Side.FULL,
    stage_from=StageFrom.STATE,
    shape=Shape.STATEMENT,
    function="Forward.mma",
    barrier="pipeline_k",
    role="mma",
    loop_depth=1,
)
PATH = "flash_attn/cute/flash_fwd_sm90.py"


@pytest.mark.parametrize(
    "term",
    [
        "kind=wait",
        "side=full",
        "role=mma",
        "barrier=pipeline_k",
        "barrier=pipeline_*",
        "barrier=*[kv]",
        "method=consumer_wait",
        "function=Forward.*",
        "file=*fwd*",
        "file=flash_attn/cute/flash_fwd_sm90.py",
        "kind=wait,role=mma",
        " kind = wait , role = m?a ",
        "kind=*",
    ],
)
def test_a_term_that_matches(term: str) -> None:
    assert is_selected(SITE, Selection(only=(term,)), PATH)
    assert not is_selected(SITE, Selection(skip=(term,)), PATH)


@pytest.mark.parametrize(
    "term",
    ["kind=signal", "kind=wai", "role=", "role=MMA", "barrier=k", "kind=wait,role=load", "file=flash_fwd_sm90.py"],
)
def test_a_term_that_does_not_match(term: str) -> None:
    assert not is_selected(SITE, Selection(only=(term,)), PATH)
    assert is_selected(SITE, Selection(skip=(term,)), PATH)


@pytest.mark.parametrize(
    ("only", "skip", "expected"),
    [
        ((), (), True),
        (("kind=signal", "role=mma"), (), True),
        (("kind=signal", "role=load"), (), False),
        (("kind=wait",), ("role=mma",), False),
        (("kind=wait",), ("role=load", "side=empty"), True),
        ((), ("role=load", "side=full"), False),
    ],
)
def test_one_term_of_only_is_enough_and_one_of_skip_too(
    only: tuple[str, ...], skip: tuple[str, ...], expected: bool
) -> None:
    assert is_selected(SITE, Selection(only, skip), PATH) is expected


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_can_be_asked_for(field: str) -> None:
    check(Selection(only=(f"{field}=x",), skip=(f" {field} =*,kind=wait",)))


@pytest.mark.parametrize("term", ["wait", "", "kind", "kinds=wait", "kind=wait,load", "kind=wait,", "=wait"])
@pytest.mark.parametrize("place", ["only", "skip"])
def test_a_term_that_names_no_field_is_refused(term: str, place: str) -> None:
    with pytest.raises(AutostampError) as caught:
        check(Selection(**{place: (term,)}))
    assert caught.value.diagnostic.code == "AS9001"
    assert repr(term) in caught.value.diagnostic.message
    assert "barrier" in caught.value.diagnostic.message
    assert caught.value.diagnostic.status == 2
