"""The river in a browser, with a real run behind it: reading, marks, arrivals, hostile content."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.acquire import hostile_server
from tests.acquire.hostile_server import Server, says
from tests.console.newsroom_home import PATIENCE_MS, NewsroomHome, WatchedPage

pytestmark = pytest.mark.integration
expect.set_options(timeout=PATIENCE_MS)
TOP_PX = 120  # below what sticks to the upper edge
PAGE = b"""<html><head><title>A site</title>
<link rel="alternate" type="application/rss+xml" href="/news.rss" title="River test news">
</head><body>Hello</body></html>"""
FEED = b"""<rss version="2.0"><channel><title>River test news</title>
<item><guid>1</guid><title>The first item of the site</title></item></channel></rss>"""
HOSTILE = """<p>Safe words</p><script>parent.document.title='taken'</script>
<img src="{url}/pixel.png" onerror="parent.document.title='taken'">
<form action="{url}/form"><input name="password"></form><iframe src="{url}/frame"></iframe>
<a href="javascript:parent.document.title='taken'">click</a><a href="{url}/link">a link</a>
<style>body {{ background: url({url}/style) }}</style>"""


@pytest.fixture
def site() -> Iterator[Server]:
    with hostile_server.serving() as made:
        made.on("/", says(PAGE, headers={"Content-Type": "text/html"}))
        made.on("/news.rss", says(FEED, headers={"Content-Type": "application/rss+xml"}))
        made.on("/pixel.png", says(status="404 Not Found"))
        yield made


def items(page: Page) -> Locator:
    return page.get_by_role("feed", name="Items").get_by_role("article")


def title_of(item: Locator) -> Locator:
    return item.get_by_role("heading").get_by_role("button")


def open_river(page: Page, base_url: str, path: str = "/river") -> None:
    page.goto(base_url + path)
    expect(items(page).first).to_be_visible()


def test_items_are_read_with_keys(page: Page, base_url: str) -> None:
    open_river(page, base_url)
    for key in ("j", "j", "o"):
        page.keyboard.press(key)
    item = items(page).nth(1)
    expect(title_of(item)).to_have_attribute("aria-expanded", "true")
    expect(title_of(item)).to_be_focused()
    expect(item.get_by_text("Unread:")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/river\?item=\d+$"))
    expect(item.get_by_role("button", name="Keep unread")).to_be_visible()
    page.keyboard.press("m")
    expect(item.get_by_text("Unread:")).to_have_count(1)
    expect(title_of(item)).to_be_focused()
    page.keyboard.press("s")
    star = item.get_by_role("button", name="Star:")
    expect(star).to_have_attribute("aria-pressed", "true")
    position = item.get_attribute("data-position")
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{base_url}/river")
    page.goto(f"{base_url}/river?view=starred")
    starred = page.locator(f'[data-position="{position}"]')
    expect(starred).to_be_visible()
    starred.get_by_role("button", name="Star:").click()
    expect(starred.get_by_role("button", name="Star:")).to_have_attribute("aria-pressed", "false")


def test_an_open_item_survives_a_reload(page: Page, base_url: str) -> None:
    open_river(page, base_url, "/river/RockConcertStream?view=all")
    title_of(items(page).nth(2)).click()
    why = items(page).nth(2).get_by_role("region", name="Why it is here")
    expect(why.get_by_text("description contains 'concert'")).to_be_visible()
    marked = items(page).nth(2).locator("mark")
    expect(marked.first).to_have_text(re.compile("concert|rock", re.IGNORECASE))
    page.reload()
    expect(page.get_by_role("heading").get_by_role("button", expanded=True)).to_be_visible()
    page.get_by_role("link", name="Why RockConcertStream has it").click()
    expect(page).to_have_url(re.compile(r"/why/\d+/RockConcertStream$"))


def test_what_arrives_waits_above_and_nothing_jumps(page: Page, base_url: str) -> None:
    """Not even where what comes on top was shown already, at another position of the log."""
    shown: list[dict[str, object]] = []

    def answer(route: Route) -> None:
        answered = route.fetch()
        page_of_items = answered.json()
        if moving is not None:
            again = dict(next(each for each in shown if each["position"] == moving))
            again["position"] = page_of_items["items"][0]["position"] + 1
            page_of_items["items"].insert(0, again)
        shown.extend(page_of_items["items"])
        route.fulfill(response=answered, json=page_of_items)

    moving: int | None = None
    page.route("**/v1/reading/items?*", answer)
    open_river(page, base_url)
    first = items(page).first.get_attribute("data-position")
    pill = page.get_by_role("button", name=re.compile(r"^[\d,]+\+? new$"))
    expect(pill).to_be_visible()
    expect(items(page).first).to_have_attribute("data-position", str(first))
    pill.click()
    expect(items(page).first).not_to_have_attribute("data-position", str(first))
    page.mouse.move(800, 500)
    page.mouse.wheel(0, 900)
    page.wait_for_function("window.scrollY === 900")
    expect(pill).to_be_visible()
    newest = items(page).first.get_attribute("data-position")
    before = {each: y for each, y in places(page).items() if y > TOP_PX}
    moving = next(iter(before))
    pill.evaluate("button => button.click()")  # a click by pointer may scroll to what it clicks on
    expect(items(page).first).not_to_have_attribute("data-position", str(newest))
    after = places(page)
    assert moving not in after
    # What lies below the card that went moves up to its place, unless what lies above moves down.
    assert min(abs(y - after[each]) for each, y in before.items() if each in after) < 10


def places(page: Page) -> dict[int, float]:
    """By positions in the log: where the items are, in pixels below the upper edge."""
    found: list[tuple[int, float]] = items(page).evaluate_all(
        """all => all.map(each => [
            Number(each.dataset.position), each.getBoundingClientRect().top])"""
    )
    return dict(found)


def test_marking_all_as_read_can_be_undone(page: Page, base_url: str) -> None:
    open_river(page, base_url, "/river/AcmeNews")
    page.keyboard.press("A")
    notice = page.get_by_role("status").filter(has_text="marked as read")
    expect(notice).to_be_visible()
    expect(items(page).first.get_by_text("Unread:")).to_have_count(0)
    notice.get_by_role("button", name="Undo").click()
    expect(items(page).first.get_by_text("Unread:")).to_have_count(1)
    page.reload()
    expect(items(page).first).to_be_visible()


def test_marks_wait_while_the_service_is_away(watched: WatchedPage, base_url: str) -> None:
    page = watched.page
    open_river(page, base_url, "/river/WayToWork?view=all")
    position = items(page).nth(1).get_attribute("data-position")
    page.keyboard.press("j")
    page.keyboard.press("j")
    watched.context.set_offline(True)
    page.keyboard.press("s")
    expect(page.get_by_text("will be sent when the service is back")).to_be_visible()
    watched.context.set_offline(False)
    expect(page.get_by_text("will be sent when the service is back")).to_have_count(0)
    watched.said.clear()  # that it was not connected
    page.goto(f"{base_url}/river/WayToWork?view=starred")
    star = page.locator(f'[data-position="{position}"]').get_by_role("button", name="Star:")
    expect(star).to_have_attribute("aria-pressed", "true")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "false")


def test_words_are_searched_and_marked(page: Page, base_url: str) -> None:
    open_river(page, base_url, "/river/RockConcertStream?view=all")
    page.keyboard.press("/")
    page.keyboard.type("concert")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"search=concert"))
    expect(page.get_by_text("looked at")).to_be_visible()
    expect(items(page).first.locator("mark").first).to_have_text(
        re.compile("concert", re.IGNORECASE)
    )
    page.goto(f"{base_url}/river?search=zzqx")
    expect(page.get_by_role("heading", name="No item has all of these words")).to_be_visible()
    page.get_by_role("link", name="Clear the search").click()
    expect(items(page).first).to_be_visible()


def test_a_site_is_followed_by_its_address(page: Page, base_url: str, site: Server) -> None:
    open_river(page, base_url)
    page.keyboard.press("+")
    dialog = page.get_by_role("dialog", name="Follow a site")
    dialog.get_by_label("Address of the site").fill(site.url("/"))
    dialog.get_by_role("button", name="Find feeds").click()
    expect(dialog.get_by_role("radio", name="River test news")).to_be_checked()
    dialog.get_by_label("Label").fill("River test")
    dialog.get_by_role("button", name="Follow").click()
    expect(page.get_by_role("heading", level=1, name="River test news")).to_be_visible()
    expect(items(page).filter(has_text="The first item of the site")).to_be_visible()
    page.get_by_role("button", name="Edit the feed").click()
    settings = page.get_by_role("dialog", name="Settings of River test news")
    settings.get_by_role("button", name="Stop following").click()
    expect(page).to_have_url(f"{base_url}/river")
    expect(page.get_by_role("link", name="River test news")).to_have_count(0)


def test_a_list_of_feeds_is_dropped(page: Page, base_url: str, site: Server) -> None:
    open_river(page, base_url)
    list_ = (
        f"<opml version='2.0'><body><outline text='Dropped feed' xmlUrl='{site.url('/news.rss')}'/>"
    )
    data = page.evaluate_handle(
        """text => { const data = new DataTransfer();
            data.items.add(new File([text], "x.opml", {type: "text/x-opml"})); return data; }""",
        f"{list_}<outline text='bad' xmlUrl='ftp://x'/></body></opml>",
    )
    page.dispatch_event("main", "drop", {"dataTransfer": data})
    dialog = page.get_by_role("dialog", name="Import feeds")
    outcome = dialog.get_by_role("list", name="What became of each feed")
    expect(outcome.get_by_text("not an http or https link")).to_be_visible()
    expect(outcome.get_by_text(re.compile("followed|known already")).first).to_be_visible()


def test_a_feed_is_read_by_its_url(page: Page, base_url: str) -> None:
    open_river(page, base_url, "/river/JazzNights?view=all")
    page.get_by_role("button", name="Copy URL of the feed").click()
    dialog = page.get_by_role("dialog", name="The URL of JazzNights")
    dialog.get_by_role("button", name="Make a link").click()
    url = dialog.get_by_label("Atom", exact=True).input_value()
    assert "JazzNights" in httpx.get(url, timeout=60.0).text
    expect(dialog.get_by_text("secret, and shown only now")).to_be_visible()


def test_hostile_content_does_nothing(
    watched: WatchedPage, newsroom: NewsroomHome, site: Server
) -> None:
    page = watched.page
    with newsroom.open() as h:
        h.execute("register stream RiverHostile from post (title text, description text);")
        html = HOSTILE.format(url=site.url("").rstrip("/"))
        h.post(
            "RiverHostile", [{"title": "<b>Not bold</b><script>x</script>", "description": html}]
        )
    page.goto(f"{newsroom.url}/river/RiverHostile?view=all")
    follow = page.get_by_role("button", name="Follow it")
    expect(
        follow.or_(items(page).first).or_(page.get_by_role("heading", name="No items"))
    ).to_be_visible()
    if follow.is_visible():
        follow.click()
        watched.said.clear()  # that it was not followed
    expect(items(page).first).to_be_visible()
    expect(items(page).first).to_contain_text("Not bold")
    page.keyboard.press("j")
    page.keyboard.press("o")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Safe words")).to_be_visible()
    expect(frame.locator("script, form, iframe, img, input")).to_have_count(0)
    link = frame.get_by_role("link", name="a link")
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    assert page.title() != "taken"
    assert not site.requests, "nothing was loaded"
    page.get_by_role("button", name="Show the picture").click()
    expect(frame.locator("img")).to_have_count(1)
    expect(frame.locator("img")).not_to_have_attribute("onerror", re.compile("."))
    assert page.title() != "taken"
    assert {each.path for each in site.requests} <= {"/pixel.png"}
    watched.said.clear()  # that the picture is none


def test_open_items_and_dialogs_can_be_used_by_everybody(
    watched: WatchedPage, base_url: str
) -> None:
    page = watched.page
    open_river(page, base_url, "/river/MusePhotoStream?view=all")
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.get_by_role("region", name="Why it is here")).to_be_visible()
    assert watched.violations() == []
    page.keyboard.press("+")
    expect(page.get_by_role("dialog", name="Follow a site")).to_be_visible()
    assert watched.violations() == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_role("button", name="Feeds", exact=True).click()
    expect(page.get_by_role("dialog", name="Feeds")).to_be_visible()
    assert watched.violations() == []
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
