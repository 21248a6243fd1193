"""What holds for every page of the console, in a browser, with a real run behind it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.console.newsroom_home import PATIENCE_MS, NewsroomHome, WatchedPage, serving

from headgate.catalog.principals import Scope

pytestmark = pytest.mark.integration
expect.set_options(timeout=PATIENCE_MS)
PAGES = {
    "/river": "River",
    "/feeds": "Feeds",
    "/feeds/new": "New feed",
    "/why": "Why",
    "/sources": "Sources",
    "/deliveries": "Deliveries",
    "/system": "System",
    "/admin": "Admin",
    "/admin/tokens": "Admin",
    "/admin/accounts": "Admin",
    "/admin/audit": "Admin",
}
BYTES_MAX = 250_000
INTERACTIVE_MS = 1_500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_used_by_everybody(
    browser: Browser, newsroom: NewsroomHome, scheme: str
) -> None:
    watched = WatchedPage(browser, newsroom.sign_in_link(), color_scheme=scheme)
    found = {}
    for path in PAGES:
        watched.page.goto(newsroom.url + path)
        expect(watched.page.get_by_role("heading", level=1)).to_be_visible()
        expect(watched.page.get_by_text("Loading")).to_have_count(0)
        if violations := watched.violations():
            found[path] = violations
    watched.context.close()
    assert found == {}
    assert watched.said == []


@pytest.mark.parametrize("width", [360, 3_840])
def test_pages_fit_small_and_large_screens(
    browser: Browser, newsroom: NewsroomHome, width: int
) -> None:
    size = {"width": width, "height": 800}
    watched = WatchedPage(browser, newsroom.sign_in_link(), viewport=size)
    wider = {}
    for path in PAGES:
        watched.page.goto(newsroom.url + path)
        expect(watched.page.get_by_role("heading", level=1)).to_be_visible()
        over = watched.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if over > 0:
            wider[path] = over
    watched.context.close()
    assert wider == {}


def test_pages_have_addresses_titles_and_keys(page: Page, base_url: str) -> None:
    for path, title in PAGES.items():
        page.goto(base_url + path)
        expect(page).to_have_title(f"{title} · Headgate")
        assert page.url == base_url + path, "it survives a reload"
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(f"{base_url}/sources")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.get_by_text("Show the keys")).to_be_visible()
    dialog.get_by_label("Switch single keys off").check()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("y")
    expect(page).to_have_url(f"{base_url}/sources")
    page.get_by_role("link", name="System").click()
    expect(page.get_by_role("heading", name="Stages")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(f"{base_url}/sources")


def test_the_colours_are_as_chosen(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.get_by_role("button", name="Colours: as the system").click()
    page.get_by_role("button", name="Colours: light").click()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    assert page.evaluate(ground) != light


def test_the_first_load_is_small_and_soon_usable(browser: Browser, newsroom: NewsroomHome) -> None:
    watched = WatchedPage(browser, newsroom.sign_in_link())
    page, sizes = watched.page, list[int]()
    page.on("response", lambda answer: sizes.append(_size(answer.headers, answer.url)))
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    times = []
    for _ in range(5):
        sizes.clear()
        page.goto(f"{newsroom.url}/river")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        times.append(page.evaluate("performance.now()"))
    watched.context.close()
    assert 10_000 < sum(sizes) < BYTES_MAX
    assert min(times) < INTERACTIVE_MS, times


def _size(headers: dict[str, str], url: str) -> int:
    return int(headers.get("content-length", 0)) if "/console/" in url else 0


def test_who_is_signed_out_comes_back_to_the_page(browser: Browser, newsroom: NewsroomHome) -> None:
    password = "a long enough password"
    with newsroom.open() as h:
        h.catalog.accounts.add("grace", password)
        h.catalog.accounts.join("grace", "local", [Scope.READ])
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{newsroom.url}/feeds/NewAlbums")
    page.get_by_label("Account").fill("grace")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{newsroom.url}/feeds/NewAlbums")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{newsroom.url}/sign-in")
    context.close()


@pytest.fixture
def tenants(newsroom: NewsroomHome) -> Iterator[str]:
    """An account of two tenants."""
    with newsroom.open() as h:
        for tenant in ("acme", "globex"):
            h.catalog.add_tenant(tenant)
        h.catalog.accounts.add("ada")
        for tenant in ("acme", "globex"):
            h.catalog.accounts.join("ada", tenant, Scope)
    yield "ada"
    with newsroom.open() as h:
        h.catalog.accounts.remove("ada")


def test_two_tenants_see_nothing_of_each_other(
    browser: Browser, newsroom: NewsroomHome, tenants: str
) -> None:
    watched = WatchedPage(browser, newsroom.sign_in_link(tenants))
    page = watched.page
    page.goto(f"{newsroom.url}/admin/tokens")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("of acme only")
    dialog.get_by_role("button", name="Make the token").click()
    expect(dialog.get_by_label("Token")).to_have_value(re.compile("^hg_"))
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_role("cell", name="of acme only").first).to_be_visible()
    page.get_by_label("Tenant").select_option("globex")
    page.wait_for_url("**/river")
    page.goto(f"{newsroom.url}/admin/tokens")
    expect(page.get_by_text("No tokens yet")).to_be_visible()
    page.goto(f"{newsroom.url}/system")
    expect(page.get_by_text("This is for operators")).to_be_visible()
    watched.context.close()


def test_the_system_page_shows_a_living_run(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/system")
    way = page.get_by_role("list", name="The way of an item")
    expect(way.get_by_text("Read and match")).to_be_visible()
    expect(way).to_contain_text(re.compile(r"\d+ sources"))
    expect(page.get_by_role("img", name="Items read over the last minutes")).to_be_visible()
    rate = page.get_by_role("figure").filter(has_text="Items read").locator("strong")
    expect(rate).to_have_text(re.compile(r"^[\d.]+K?/s$"))


def test_a_killed_service_is_found_again(browser: Browser, newsroom: NewsroomHome) -> None:
    with serving(newsroom) as (url, first):
        link = newsroom.sign_in_link().replace(newsroom.url, url)
        watched = WatchedPage(browser, link)
        page = watched.page
        page.goto(f"{url}/system")
        expect(page.get_by_role("heading", name="Stages")).to_be_visible()
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        stale = page.get_by_role("status").filter(has_text="as of")
        expect(stale).to_contain_text("cannot be reached")
        expect(page.get_by_role("heading", name="Stages")).to_be_visible()
        with serving(newsroom, int(url.rpartition(":")[2])):
            stale.get_by_role("button", name="Try again").click()
            expect(stale).to_have_count(0)
        watched.context.close()
