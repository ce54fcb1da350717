# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import gzip
import json
import re

import pytest

from autostamp.report.document import document
from autostamp.report.html import page
from tests.simulator.ring_report import ring_flow, ring_timeline
from tests.simulator.tables import ring_manifest

BUILT = "<!doctype html><title>AUTOSTAMP-TITLE</title><body><!--AUTOSTAMP-DOCUMENT--><script>draw()</script></body>"


def ring_document(**changes):
    return document([(ring_timeline(), ring_flow())], ring_manifest()) | changes


def inflated(html):
    (packed,) = re.findall(
        rb'<script type="application/octet-stream" id="autostamp-document">([A-Za-z0-9+/=]+)</script>', html
    )
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_page_holds_the_document_before_its_script():
    html = page(ring_document(), BUILT)
    assert inflated(html) == ring_document()
    assert html.index(b"autostamp-document") < html.index(b"draw()")
    assert b"AUTOSTAMP" not in html


def test_the_same_document_gives_the_same_bytes():
    assert page(ring_document(), BUILT) == page(ring_document(), BUILT)


def test_a_title_is_escaped():
    assert b"<title>&lt;b&gt; &amp; more</title>" in page(ring_document(title="<b> & more"), BUILT)


def test_markers_within_the_document_stay_inside_it():
    texts = {"title": "<!--AUTOSTAMP-DOCUMENT-->", "notes": ["</script>", "AUTOSTAMP-TITLE"]}
    html = page(ring_document(**texts), BUILT)
    assert inflated(html)["notes"] == ["</script>", "AUTOSTAMP-TITLE"]
    assert html.count(b"</script>") == 2


@pytest.mark.parametrize("built", ["<title>AUTOSTAMP-TITLE</title>", BUILT + BUILT])
def test_a_page_without_its_markers_is_refused(built):
    with pytest.raises(ValueError, match="not once"):
        page(ring_document(), built)
