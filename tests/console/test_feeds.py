"""Writing a feed, seeing it match, and asking why, in a browser with a real run behind it."""

from __future__ import annotations

import re
from urllib.parse import quote, urlparse

import pytest
from playwright.sync_api import CDPSession, Page, Route, expect
from tests.console.newsroom_home import PATIENCE_MS, WatchedPage

pytestmark = pytest.mark.integration
expect.set_options(timeout=PATIENCE_MS)
EDITOR = "/feeds/new?script="
TRAMS = "create feed Trams from CityGazette where title contains 'tram';"
FEEDS = 100_000
FRAMES, FRAMES_PER_S_MIN = 200, 50
LIST_TAKES_KEYS_MS = 100  # a list that has just opened leaves keys to the text, for 75 ms


def write(page: Page, base_url: str, script: str) -> None:
    page.goto(base_url + EDITOR + quote(script))
    expect(page.get_by_role("textbox", name="Statements")).to_be_visible()


def test_a_feed_is_written_saved_and_matches(page: Page, base_url: str) -> None:
    """All items of this source match, so the first one is not far."""
    page.goto(base_url + "/feeds/WayToWork")  # the run has begun
    expect(page.get_by_role("link", name="Why?").first).to_be_visible()
    page.goto(base_url + "/feeds/new")
    page.get_by_role("textbox", name="Statements").click()
    page.keyboard.type("create feed OfMuse from MuseN")
    expect(page.get_by_role("option", name="MuseNews")).to_contain_text("source")
    page.wait_for_timeout(LIST_TAKES_KEYS_MS)
    page.keyboard.press("Tab")
    page.keyboard.type(" where title contains 'muse'")
    page.keyboard.press("Escape")
    expect(page.get_by_text("right", exact=True)).to_be_visible()
    expect(page.get_by_role("tab", name="Matched", exact=False).first).to_be_visible()
    expect(page.locator("mark").first).to_have_text(re.compile("muse", re.IGNORECASE))
    page.keyboard.press("Control+s")
    page.wait_for_url("**/feeds/OfMuse?new=1")
    expect(page.get_by_text("It matches.")).to_be_visible()
    page.get_by_role("button", name="Subscribe", exact=True).click()
    page.get_by_role("button", name="Create a URL").click()
    link = page.get_by_label("Atom").input_value()
    assert page.request.get(base_url + urlparse(link).path).ok
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Drop", exact=True).click()
    page.get_by_role("button", name="Drop OfMuse").click()
    page.wait_for_url("**/feeds")


def test_names_are_offered_before_their_rates_are_known(page: Page, base_url: str) -> None:
    page.route("**/v1/stats?*", lambda _route: None)  # no answer ever
    page.goto(base_url + "/feeds/new")
    page.get_by_role("textbox", name="Statements").click()
    page.keyboard.type("create feed OfMuse from MuseN")
    expect(page.get_by_role("option", name="MuseNews")).to_contain_text("source")


@pytest.mark.parametrize("times_slower", [8, 16, 24])
def test_names_are_offered_on_a_slow_machine(page: Page, base_url: str, times_slower: int) -> None:
    """There the look for names that a letter starts is overtaken by the next letters."""
    page.goto(base_url + "/feeds/new")
    page.get_by_role("textbox", name="Statements").click()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": times_slower})
    page.keyboard.type("create feed OfMuse from MuseN")
    expect(page.get_by_role("option", name="MuseNews")).to_contain_text("source")
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})


def test_errors_block_saving_and_tab_leaves(page: Page, base_url: str) -> None:
    write(page, base_url, "create feed Wrong from CityGazette where titel contains 'x';")
    expect(page.get_by_text("did you mean 'title'?")).to_be_visible()
    expect(page.get_by_role("button", name="Save feed")).to_be_disabled()
    editor = page.get_by_role("textbox", name="Statements")
    editor.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()


def test_what_exists_already_is_said(page: Page, base_url: str) -> None:
    same = "where category in ('traffic', 'weather') and not title contains 'ferry'"
    write(page, base_url, f"create feed Mine from CityGazette {same};")
    expect(page.get_by_text("has exactly the same items")).to_be_visible()
    write(page, base_url, f"create feed Mine from CityGazette {same} and title contains 'tram';")
    page.get_by_role("button", name="Use this cheaper statement").click()
    expect(page.get_by_role("textbox", name="Statements")).to_contain_text("from WayToWork")


def test_the_form_writes_a_statement_that_the_editor_keeps(page: Page, base_url: str) -> None:
    page.goto(base_url + "/feeds/new?form=1")
    page.get_by_role("combobox", name="Source or feed").fill("City")
    page.get_by_role("option", name="CityGazette").click()
    page.get_by_label("All of these words").fill("tram")
    page.get_by_label("None of these, by commas").fill("ferry")
    page.get_by_label("Name of the feed").fill("From the form")
    text = page.get_by_role("textbox", name="Statements")
    expect(text).to_contain_text("create feed `From the form`")
    expect(text).to_contain_text("not contains 'ferry'")
    page.get_by_role("link", name="Language").click()
    expect(text).to_contain_text("create feed `From the form`")
    expect(page.get_by_role("button", name="Save feed")).to_be_enabled()


def test_why_not_names_the_condition_and_an_edit(page: Page, base_url: str) -> None:
    write(page, base_url, "create feed Never from CityGazette where title contains 'zzyzx';")
    expect(page.get_by_role("button", name="Save feed")).to_be_enabled()
    page.get_by_role("button", name="Save feed").click()
    page.wait_for_url("**/feeds/Never?new=1")
    page.goto(base_url + "/why?feed=Never")
    page.get_by_role("article").get_by_role("link").first.click()
    page.wait_for_url("**/why/*/Never")
    verdict = page.get_by_role("heading", name=re.compile("^Never does not have it"))
    expect(verdict).to_be_visible()
    expect(page.get_by_text("decides")).to_be_visible()
    expect(page.locator("del")).to_contain_text("title contains 'zzyzx'")
    expect(page.get_by_text("items a day", exact=False).first).to_be_visible()
    page.reload()
    expect(verdict).to_be_visible()
    page.goto(base_url + "/feeds/Never")
    page.get_by_role("button", name="Drop", exact=True).click()
    page.get_by_role("button", name="Drop Never").click()
    page.wait_for_url("**/feeds")


def test_pages_of_a_feed_and_of_why_can_be_used_by_everybody(
    watched: WatchedPage, base_url: str
) -> None:
    page = watched.page
    write(page, base_url, TRAMS)
    expect(page.get_by_role("tab", name="Matched", exact=False).first).to_be_visible()
    assert watched.violations() == []
    page.goto(base_url + "/feeds/WayToWork")
    expect(page.get_by_role("link", name="Why?").first).to_be_visible()
    assert watched.violations() == []
    page.get_by_role("link", name="Why?").first.click()
    expect(page.get_by_role("heading", name="WayToWork has it.")).to_be_visible()
    assert watched.violations() == []


def many_feeds(route: Route) -> None:
    """The page of a list of FEEDS feeds that is asked for."""
    query = route.request.url.partition("after=")[2].partition("&")[0]
    first = int(query[1:]) + 1 if query else 0
    names = [f"F{number:06}" for number in range(first, min(FEEDS, first + 200))]
    entry = {"kind": "feed", "created_at": "2026-11-18T00:00:00Z", "version": 1, "cpu_us": 0}
    entries = [
        {**entry, "name": each, "definition": f"create feed {each} from News;"} for each in names
    ]
    route.fulfill(json={"entries": entries, "total": FEEDS, "next": names[-1]})


def test_a_long_list_scrolls_smoothly(page: Page, base_url: str) -> None:
    """A frame may take what 50 a second leave. Its time is the CPU time of the page's thread:
    how soon frames follow each other depends on what else the machine does."""
    page.route("**/v1/feeds?*", many_feeds)
    page.goto(base_url + "/feeds")
    expect(page.get_by_text("100,000 feeds")).to_be_visible()
    feeds = page.get_by_role("list", name="Feeds")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    began_s = thread_time_s(devtools)
    feeds.evaluate(
        """async (list, frames) => {
            for (let frame = 0; frame < frames; frame++) {
                list.scrollTop += 120;
                await new Promise(requestAnimationFrame);
            }
        }""",
        FRAMES,
    )
    took_s = thread_time_s(devtools) - began_s
    assert took_s / FRAMES <= 1 / FRAMES_PER_S_MIN
    assert feeds.evaluate("list => list.scrollTop") > 100 * FRAMES
    assert page.get_by_role("listitem").count() < 100


def thread_time_s(devtools: CDPSession) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))
