"""The hub by a real service, a real log, and a subscriber that speaks the protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import feedparser
import httpx
import pytest
from lxml import etree
from tests.deliver.log_world import LogWorld, news
from tests.service.hub_subscriber import (
    Subscriber,
    discovered,
    is_signed,
    subscriber,
    wait_until,
)
from tests.service.test_api import PATIENCE_S, Home, apply, serving

from headgate.acquire.backoff import Backoff
from headgate.catalog import hub_subscriptions
from headgate.model.addresses import LOOPBACK, PUBLIC_ONLY
from headgate.model.errors import CatalogUnavailable
from headgate.service import document_content, hub_sender, hub_worker, rate_limits

PUBLIC = "http://news.example"
SCRIPT = """
register feed http://a.example/ as News;
create feed Rock from News where title contains 'rock';
create feed Jazz from News where title contains 'jazz';
"""


class HubHome(Home):
    """A service with a hub, two feeds, and a log."""

    log: LogWorld

    def __init__(self, folder: Path, *, has_log: bool = True) -> None:
        super().__init__(folder)
        if has_log:
            self.log = self.make_log()

    @property
    def hub(self) -> str:
        return f"{self.url}/hub"

    def link(self, feed: str = "Rock") -> dict[str, str]:
        """The public URLs of a new link, and its id."""
        with self.client("acme") as client:
            made = client.post(f"/v1/feeds/{feed}/links", json={}).json()
        return made["urls"] | {"id": made["entry"]["id"]}

    def publish(self, *names: str, feed: str = "Rock") -> None:
        number = self.catalog.definitions().number_of(f"acme.{feed}")
        self.log.now = datetime.now(UTC)
        self.log.publish(*(news(name, number, source="acme.News") for name in names))

    def subscribe(self, to: Subscriber, topic: str, path: str = "/callback", **more: str) -> None:
        before = len(self.catalog.hub.active())
        answer = to.ask(self.hub, topic, path=path, **more)
        assert answer.status_code == 202, answer.text
        wait_until(lambda: len(self.catalog.hub.active()) > before, "it was not confirmed")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for that a test would wait for."""
    monkeypatch.setattr(hub_worker, "POLL_S", 0.05)
    monkeypatch.setattr(hub_worker, "IDLE_S", 0.2)
    monkeypatch.setattr(hub_worker, "ASK_AGAIN_S", (0.0, 0.0))
    monkeypatch.setattr(hub_sender, "BACKOFF", Backoff(first_s=0.05, max_s=0.2))
    monkeypatch.setattr(rate_limits, "CALLBACKS_AT_ONCE", 1_000.0)
    monkeypatch.setattr(rate_limits, "HUB_AT_ONCE", 1_000.0)


@pytest.fixture
def hub(tmp_path: Path, quick: None) -> Iterator[HubHome]:  # noqa: ARG001
    home = HubHome(tmp_path)
    with serving(home.headgate, PUBLIC, allowed=LOOPBACK) as home.url:
        with home.client("acme") as client:
            assert apply(client, SCRIPT).status_code == 200
        yield home
    home.catalog.close()


@pytest.fixture
def reader() -> Iterator[Subscriber]:
    with subscriber() as found:
        yield found


# --- discovery ------------------------------------------------------------------------------------


def test_documents_name_their_hub_and_themselves(hub: HubHome) -> None:
    urls = hub.link()
    hub.publish("a")
    for format_ in ("atom", "rss", "json"):
        here = urls[format_].replace(PUBLIC, hub.url)
        assert discovered(here) == (f"{PUBLIC}/hub", urls[format_])
        assert discovered(f"{here}?n=7") == (f"{PUBLIC}/hub", f"{urls[format_]}?n=7")
        content = httpx.get(here, timeout=PATIENCE_S).content
        if format_ == "json":
            document = json.loads(content)
            assert document["hubs"] == [{"type": "WebSub", "url": f"{PUBLIC}/hub"}]
            assert document["feed_url"] == urls["json"]
        else:
            etree.fromstring(content)
            links = {each.rel: each.href for each in feedparser.parse(content).feed.links}
            assert (links["hub"], links["self"]) == (f"{PUBLIC}/hub", urls[format_])
    page = httpx.get(urls["html"].replace(PUBLIC, hub.url), timeout=PATIENCE_S)
    assert "link" not in page.headers


def test_a_service_that_does_not_know_its_name_has_no_hub(home: Home) -> None:
    home.make_log()
    with home.client("acme") as client:
        apply(client, SCRIPT)
        urls = client.post("/v1/feeds/Rock/links", json={}).json()["urls"]
    assert "link" not in httpx.get(urls["atom"], timeout=PATIENCE_S).headers
    form = {"hub.mode": "subscribe", "hub.topic": urls["atom"], "hub.callback": "https://a.example"}
    assert httpx.post(f"{home.url}/hub", data=form, timeout=PATIENCE_S).status_code == 404


# --- the way of a document ------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["atom", "rss", "json"])
def test_new_items_are_sent_signed_in_the_format_of_the_topic(
    hub: HubHome, reader: Subscriber, format_: str
) -> None:
    topic = hub.link()[format_]
    hub.publish("old")
    hub.subscribe(reader, topic, "/callback?id=1&x=y", secret="s3cret ü", lease_seconds="1000")
    (asked,) = reader.asked
    assert (asked["id"], asked["x"]) == ("1", "y"), "the query of the callback is kept"
    assert (asked["hub.mode"], asked["hub.topic"]) == ("subscribe", topic)
    assert (asked["hub.lease_seconds"], len(asked["hub.challenge"])) == ("1000", 43)
    assert reader.sent == [], "nothing is sent but what is new"
    hub.publish("new")
    reader.wait(lambda: bool(reader.sent))
    (sent,) = reader.sent
    assert is_signed(sent, "s3cret ü")
    assert sent.headers["link"] == f'<{PUBLIC}/hub>; rel="hub", <{topic}>; rel="self"'
    document = httpx.get(topic.replace(PUBLIC, hub.url), timeout=PATIENCE_S)
    assert sent.headers["content-type"] == document.headers["content-type"]
    assert sent.body == document.content, "it is the document that readers get"
    assert b"title new" in sent.body
    assert b"title old" in sent.body


def test_feeds_of_others_are_not_sent_and_nobody_waits_for_a_slow_callback(
    hub: HubHome, reader: Subscriber
) -> None:
    rock, jazz = hub.link("Rock")["atom"], hub.link("Jazz")["atom"]
    released = threading.Event()
    reader.answer = lambda sent: (
        204 if not sent.path.startswith("/slow") or released.wait(PATIENCE_S) else 500
    )
    with subscriber() as other:
        for path in ("/slow1", "/slow2"):
            hub.subscribe(reader, rock, path)
        hub.subscribe(other, rock)
        hub.subscribe(other, jazz, "/jazz")
        for name in ("a", "b", "c"):
            hub.publish(name)
            other.wait(lambda name=name: f"title {name}" in other.titles())
        assert reader.sent == []
        assert other.titles("/jazz") == set()
        hub.publish("j", feed="Jazz")
        other.wait(lambda: other.titles("/jazz") == {"title j"})
        released.set()
        for path in ("/slow1", "/slow2"):
            reader.wait(lambda path=path: len(reader.titles(path)) >= 3)


def test_more_items_than_a_document_shows_are_sent_in_several(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_sender, "ITEMS_MAX", 8)
    hub.subscribe(reader, f"{hub.link()['atom']}?n=5")
    names = [f"n{number}" for number in range(27)]
    hub.publish(*names)
    wanted = {f"title {name}" for name in names}
    reader.wait(lambda: reader.titles() >= wanted)
    assert reader.titles() == wanted
    assert max(len(each.titles) for each in reader.sent) <= 8


def test_items_that_do_not_fit_into_a_document_follow_in_others(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_content, "BODY_BYTES_MAX", 2_000)
    hub.subscribe(reader, hub.link()["atom"])
    names = [f"n{number}" for number in range(12)]
    hub.publish(*names)
    wanted = {f"title {name}" for name in names}
    reader.wait(lambda: reader.titles() >= wanted)
    assert len(reader.sent) > 1


def test_a_callback_that_fails_is_tried_again_and_misses_nothing(
    hub: HubHome, reader: Subscriber
) -> None:
    answers = iter([500, (503, {"retry-after": "0"}), 302])
    reader.answer = lambda _: next(answers, 204)
    hub.subscribe(reader, hub.link()["atom"])
    hub.publish("a")
    reader.wait(lambda: len(reader.sent) == 1)
    hub.publish("b")
    reader.wait(lambda: len(reader.sent) >= 4)
    assert set(reader.sent[-1].titles) == {"title a", "title b"}
    wait_until(lambda: hub.catalog.hub.active()[0].failures == 0, "it succeeded")
    assert hub.catalog.hub.active()[0].position == 2


# --- ends -----------------------------------------------------------------------------------------


def test_a_callback_that_is_gone_ends_it(hub: HubHome, reader: Subscriber) -> None:
    reader.answer = lambda _: 410
    hub.subscribe(reader, hub.link()["atom"])
    hub.publish("a")
    wait_until(hub.catalog.hub.is_empty, "410 ends it")
    assert len(reader.sent) == 1


def test_unsubscribing_is_confirmed_too(hub: HubHome, reader: Subscriber) -> None:
    topic = hub.link()["atom"]
    hub.subscribe(reader, topic)
    # Somebody else asks in its name, and it says no.
    form = {"hub.mode": "unsubscribe", "hub.topic": topic, "hub.callback": reader.url + "/callback"}
    assert httpx.post(hub.hub, data=form, timeout=PATIENCE_S).status_code == 202
    reader.wait(lambda: reader.asked[-1]["hub.mode"] == "unsubscribe")
    hub.publish("a")
    reader.wait(lambda: bool(reader.sent))
    assert reader.ask(hub.hub, topic, mode="unsubscribe").status_code == 202
    wait_until(hub.catalog.hub.is_empty, "it is over")
    asked = len(reader.asked)
    assert reader.ask(hub.hub, topic, mode="unsubscribe").status_code == 202
    hub.publish("b")
    hub.subscribe(reader, topic, "/again")
    assert len(reader.asked) == asked + 1, "what does not exist is not asked about"
    assert reader.titles() == {"title a"}


def test_a_revoked_link_ends_its_subscriptions(hub: HubHome, reader: Subscriber) -> None:
    kept, revoked = hub.link(), hub.link()
    hub.subscribe(reader, revoked["atom"], "/revoked")
    hub.subscribe(reader, kept["atom"], "/kept")
    with hub.client("acme") as client:
        assert client.delete(f"/v1/links/{revoked['id']}").status_code == 204
    hub.publish("a")
    reader.wait(lambda: reader.titles("/kept") == {"title a"})
    reader.wait(lambda: reader.asked[-1]["hub.mode"] == "denied")
    assert reader.asked[-1]["path"] == "/revoked"
    assert reader.titles("/revoked") == set()
    assert len(hub.catalog.hub.active()) == 1


def test_a_feed_that_is_not_seen_any_more_is_not_sent(hub: HubHome, reader: Subscriber) -> None:
    with hub.client("acme") as acme, hub.client("globex") as globex:
        grant = {"definition": "Rock", "tenant": "globex"}
        acme.put("/v1/grants", json={**grant, "right": "read"})
        topic = globex.post("/v1/feeds/acme.Rock/links", json={}).json()["urls"]["atom"]
        hub.subscribe(reader, topic)
        hub.publish("a")
        reader.wait(lambda: bool(reader.sent))
        acme.put("/v1/grants", json={**grant, "right": None})
    hub.publish("b")
    wait_until(hub.catalog.hub.is_empty, "it has ended")
    assert reader.titles() == {"title a"}


# --- abuse ----------------------------------------------------------------------------------------


def test_nothing_is_sent_to_a_callback_that_does_not_answer_with_the_challenge(
    hub: HubHome, reader: Subscriber
) -> None:
    topic = hub.link()["atom"]
    answers = [
        (200, lambda _: b""),
        (200, lambda query: query["hub.challenge"].encode() + b"\n"),
        (200, lambda query: b"x" * 200_000 + query["hub.challenge"].encode()),
        (404, lambda query: query["hub.challenge"].encode()),
        (500, lambda query: query["hub.challenge"].encode()),
        (302, lambda query: query["hub.challenge"].encode()),
    ]
    for number, (status, body) in enumerate(answers):
        reader.challenge = lambda query, status=status, body=body: (status, body(query))
        asked = len(reader.asked)
        assert reader.ask(hub.hub, topic, path=f"/{number}").status_code == 202
        wait_until(hub.catalog.hub.is_empty, "what was not confirmed is forgotten")
        assert 1 <= len(reader.asked) - asked <= 3
    hub.publish("a")
    reader.challenge = None
    hub.subscribe(reader, topic, "/good")
    hub.publish("b")
    reader.wait(lambda: bool(reader.sent))
    assert {each.path for each in reader.sent} == {"/good"}


def test_what_is_wrong_with_a_request_is_said(hub: HubHome, reader: Subscriber) -> None:
    topic = hub.link()["atom"]
    good = {
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.callback": reader.url + "/c",
        "hub.unknown": "x",
    }
    wrong: list[tuple[int, dict[str, str]]] = [
        (400, {"hub.mode": "publish"}),
        (400, {"hub.mode": ""}),
        (400, {"hub.callback": "ftp://a.example/"}),
        (400, {"hub.callback": "https://user:pw@a.example/"}),
        (400, {"hub.callback": f"{PUBLIC}/f/x"}),
        (400, {"hub.callback": "https://a.example/#part"}),
        (400, {"hub.callback": "https://a.example/\r\nx: y"}),
        (400, {"hub.callback": "https://a.example/" + "x" * 3_000}),
        (400, {"hub.callback": ""}),
        (400, {"hub.lease_seconds": "-1"}),
        (400, {"hub.lease_seconds": "٣"}),
        (400, {"hub.lease_seconds": "9" * 30}),
        (400, {"hub.secret": "x" * 200}),
        (404, {"hub.topic": ""}),
        (404, {"hub.topic": topic.replace(PUBLIC, "http://other.example")}),
        (404, {"hub.topic": topic.replace(".atom", ".html")}),
        (404, {"hub.topic": topic + "?n=0"}),
        (404, {"hub.topic": topic + "?n=201"}),
        (404, {"hub.topic": topic[:-10] + "xxxxx.atom"}),
        (404, {"hub.topic": topic + "\n"}),
    ]
    for status, change in wrong:
        answer = httpx.post(hub.hub, data={**good, **change}, timeout=PATIENCE_S)
        assert (answer.status_code, change) == (status, change)
        assert answer.headers["content-type"].startswith("text/plain")
    for body in (b"hub.topic=a&hub.topic=b", b"\xff\xfe", b"&".join([b"a=b"] * 100), b"%ff=%ff"):
        assert httpx.post(hub.hub, content=body, timeout=PATIENCE_S).status_code == 400
    assert httpx.post(hub.hub, content=b"x" * 20_000, timeout=PATIENCE_S).status_code == 413
    assert hub.catalog.hub.is_empty()
    assert httpx.post(hub.hub, data=good, timeout=PATIENCE_S).status_code == 202


def test_requests_are_limited_by_address_and_by_callback_host(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "CALLBACKS_AT_ONCE", 2.0)
    monkeypatch.setattr(rate_limits, "CALLBACKS_PER_S", 0.001)
    topic = hub.link()["atom"]
    codes = [reader.ask(hub.hub, topic, path=f"/{n}").status_code for n in range(4)]
    assert codes == [202, 202, 429, 429]
    form = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": "http://192.0.2.1/"}
    assert httpx.post(hub.hub, data=form, timeout=PATIENCE_S).status_code == 202, "another host"
    monkeypatch.setattr(rate_limits, "HUB_AT_ONCE", 1.0)
    monkeypatch.setattr(rate_limits, "HUB_PER_S", 0.001)
    last = httpx.post(hub.hub, data=form, timeout=PATIENCE_S)
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1


def test_a_link_has_so_many_subscriptions(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_subscriptions, "LINK_MAX", 1)
    topic = hub.link()["atom"]
    hub.subscribe(reader, topic)
    refused = reader.ask(hub.hub, topic, path="/second")
    assert (refused.status_code, refused.text) == (
        429,
        "this link has 1 subscriptions of the hub; end some first\n",
    )
    assert reader.ask(hub.hub, topic).status_code == 202, "it is renewed"


def test_callbacks_that_hang_hold_up_only_their_own_link(hub: HubHome, reader: Subscriber) -> None:
    hanging, released = hub.link()["atom"], threading.Event()

    def hang(query: dict[str, str]) -> tuple[int, bytes]:
        if query["hub.topic"] == hanging:
            released.wait(PATIENCE_S)
        return 200, query["hub.challenge"].encode()

    reader.challenge = hang
    for number in range(hub_worker.ASKED_MAX + 4):
        assert reader.ask(hub.hub, hanging, path=f"/{number}").status_code == 202
    reader.wait(lambda: len(reader.asked) >= hub_worker.ASKED_PER_LINK)
    hub.subscribe(reader, hub.link()["atom"], "/quick")
    assert hanging not in {each.topic for each in hub.catalog.hub.active()}
    assert len({each["path"] for each in reader.asked}) < hub_worker.ASKED_MAX, "not all at once"
    released.set()


def test_a_request_that_comes_while_another_is_confirmed_ends_nothing(
    hub: HubHome, reader: Subscriber
) -> None:
    """A renewal is confirmed after a stranger has asked for the end, which is then refused."""
    topic, asked, released = hub.link()["atom"], threading.Event(), threading.Event()
    hub.subscribe(reader, topic)

    def slow(query: dict[str, str]) -> tuple[int, bytes]:
        if query["hub.mode"] == "unsubscribe":
            return 404, b""
        asked.set()
        assert released.wait(PATIENCE_S)
        return 200, query["hub.challenge"].encode()

    reader.challenge = slow
    assert reader.ask(hub.hub, topic).status_code == 202
    assert asked.wait(PATIENCE_S)
    assert reader.ask(hub.hub, topic, mode="unsubscribe").status_code == 202
    released.set()
    reader.wait(lambda: reader.asked[-1]["hub.mode"] == "unsubscribe")
    wait_until(lambda: not hub.catalog.hub.due_requests(1), "it was refused")
    hub.publish("a")
    reader.wait(lambda: bool(reader.sent), "it is subscribed as before")


def test_a_hub_may_be_there_before_the_first_run(
    tmp_path: Path,
    quick: None,  # noqa: ARG001
    reader: Subscriber,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_sender, "BACKOFF", Backoff(first_s=1_000.0))
    home = HubHome(tmp_path, has_log=False)
    with serving(home.headgate, PUBLIC, allowed=LOOPBACK) as home.url:
        with home.client("acme") as client:
            apply(client, SCRIPT)
        home.subscribe(reader, home.link()["atom"])
        home.log = home.make_log()
        home.publish("a")
        reader.wait(lambda: bool(reader.sent), "there is nothing to be tried again")
    home.catalog.close()


def test_a_catalog_that_is_away_is_asked_again(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []

    def failing(name: str) -> None:
        real = getattr(hub_subscriptions.HubSubscriptions, name)

        def first_fails(*given: object) -> object:
            if name not in failed:
                failed.append(name)
                raise CatalogUnavailable("it is away")
            return real(*given)

        monkeypatch.setattr(hub_subscriptions.HubSubscriptions, name, first_fails)

    monkeypatch.setattr(hub_worker, "AGAIN_S", 0.1)
    for name in ("take_lease", "due_requests", "confirm", "has_taken"):
        failing(name)
    hub.subscribe(reader, hub.link()["atom"])
    hub.publish("a")
    reader.wait(lambda: len(reader.sent) >= 2, "what was not noted is sent again")
    wait_until(lambda: hub.catalog.hub.active()[0].position == 1, "it is noted")
    assert sorted(failed) == ["confirm", "due_requests", "has_taken", "take_lease"]


def test_addresses_of_this_machine_are_not_called(
    tmp_path: Path,
    quick: None,  # noqa: ARG001
    reader: Subscriber,
) -> None:
    home = HubHome(tmp_path)
    with serving(home.headgate, PUBLIC, allowed=PUBLIC_ONLY) as home.url:
        with home.client("acme") as client:
            apply(client, SCRIPT)
        topic = home.link()["atom"]
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
            port = reader.url.rpartition(":")[2]
            form = {
                "hub.mode": "subscribe",
                "hub.topic": topic,
                "hub.callback": f"http://{host}:{port}/",
            }
            assert httpx.post(home.hub, data=form, timeout=PATIENCE_S).status_code == 202
            wait_until(home.catalog.hub.is_empty, "it was refused")
    home.catalog.close()
    assert reader.asked == []


# --- processes ------------------------------------------------------------------------------------


def test_two_services_send_once_and_the_other_takes_over(
    hub: HubHome, reader: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_worker, "LEASE_S", 2.0)
    topic = hub.link()["atom"]
    with serving(hub.headgate, PUBLIC, allowed=LOOPBACK):
        hub.subscribe(reader, topic)
        for name in ("a", "b", "c"):
            hub.publish(name)
            reader.wait(lambda name=name: f"title {name}" in reader.titles())
        times = [each.titles[0] for each in reader.sent]
        assert len(times) == len({each.body for each in reader.sent}), "none was sent twice"
    hub.publish("d")
    reader.wait(lambda: "title d" in reader.titles(), "the service that is left sends")


def test_without_subscriptions_the_hub_does_nothing(
    hub: HubHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    looked = threading.Event()
    real = hub_subscriptions.HubSubscriptions.is_empty

    def is_empty(self: hub_subscriptions.HubSubscriptions) -> bool:
        looked.set()
        return real(self)

    monkeypatch.setattr(hub_subscriptions.HubSubscriptions, "is_empty", is_empty)
    for name in ("take_lease", "due_requests", "active", "sweep"):
        monkeypatch.setattr(
            hub_subscriptions.HubSubscriptions, name, lambda *_, name=name: called.append(name)
        )
    hub.publish("a")
    for _ in range(3):
        looked.clear()
        assert looked.wait(PATIENCE_S)
    assert called == []
