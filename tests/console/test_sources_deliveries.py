"""Sources and deliveries in a browser: add one, see it, drop it; pause, test and replay."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def test_a_source_is_added_looked_at_and_dropped(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/sources")
    page.get_by_role("link", name="Add a source").first.click()
    page.get_by_role("link", name="Posted events").click()
    page.get_by_label("Name", exact=True).fill("BrowserTickets")
    page.get_by_label("Name of attribute 1").fill("price")
    page.get_by_label("Type of attribute 1").select_option("float")
    expect(page.get_by_text("It can be registered.")).to_be_visible()
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="BrowserTickets")).to_be_visible()
    expect(page.get_by_role("region", name="Command")).to_contain_text("$HEADGATE_TOKEN")
    page.goto(f"{base_url}/sources?q=browsert")
    expect(page.get_by_role("list", name="Sources").get_by_role("listitem")).to_have_count(1)
    page.get_by_role("link", name="BrowserTickets").click()
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Drop BrowserTickets").click()
    expect(page).to_have_url(f"{base_url}/sources")


def test_a_wrong_statement_cannot_be_registered(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/sources/new?kind=statement")
    page.get_by_label("Statement").fill("register stream X from nowhere (a int);")
    expect(page.get_by_text("line 1, column")).to_be_visible()
    expect(page.get_by_role("button", name="Register")).to_be_disabled()


def test_what_is_behind_a_source_is_shown_before_it_is_dropped(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/sources/EventAnnounces")
    page.get_by_role("button", name="Drop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("It is in use.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Drop EventAnnounces")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_keys_choose_a_source(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/sources")
    expect(page.get_by_role("list", name="Sources")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Parts of the source")).to_be_visible()


def test_a_subscription_is_paused_and_resumed(page: Page, base_url: str) -> None:
    page.goto(f"{base_url}/deliveries")
    page.get_by_role("list", name="Subscriptions").get_by_role("link").first.click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("region", name="State")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
