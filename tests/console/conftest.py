"""A run with a console, and a browser: once for all tests here, and no longer, as a run takes most
of a core; a page of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.console.newsroom_home import ARGUMENTS, AXE, CHROMIUM, NewsroomHome, WatchedPage

from headgate.service import console


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: chromium)")
    if not (console.FILES / "index.html").exists() or not AXE.exists():
        pytest.skip("the console is not built: scripts/build_console")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def newsroom(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewsroomHome]:
    assert browser.is_connected()
    home = NewsroomHome(tmp_path_factory.mktemp("console") / "demo")
    yield home
    home.close()


@pytest.fixture
def base_url(newsroom: NewsroomHome) -> str:
    return newsroom.url


@pytest.fixture
def watched(
    browser: Browser, newsroom: NewsroomHome, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[WatchedPage]:
    """The page of somebody who is signed in. Its console must stay silent."""
    made = WatchedPage(browser, newsroom.sign_in_link(), viewport={"width": 1280, "height": 800})
    yield made
    made.page.screenshot(path=tmp_path / f"{request.node.name[:80]}.png")
    made.context.close()
    assert made.said == []


@pytest.fixture
def page(watched: WatchedPage) -> Page:
    return watched.page
