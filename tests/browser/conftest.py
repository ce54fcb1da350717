# SPDX-License-Identifier: Apache-2.0
"""A Chromium without a network, and pages of which any error, warning or request fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from tests.browser.documents import write
from tests.conftest import CHROMIUM

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a document from disk. When the test ends, the pages must have asked for nothing and complained about nothing."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts = []

    def refuse(route: Route) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            route.abort()

    def open_document(document: dict[str, Any], **options: Any) -> Page:
        context = browser.new_context(**{"offline": True, "viewport": {"width": 1400, "height": 1100}, **options})
        contexts.append(context)
        page = context.new_page()
        page.route("**", refuse)
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        path = write(document, tmp_path / f"report-{len(contexts)}.html")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        page.wait_for_function("() => !document.getElementById('empty').hidden || window.autostamp?.frame || "
                               "document.documentElement.dataset.ready === 'error'")  # fmt: skip
        return page

    yield open_document
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == len(contexts)
