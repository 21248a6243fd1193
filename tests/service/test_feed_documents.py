"""Links and the documents behind them, by a real server: they have what the log has."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import feedparser
import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lxml import etree, html
from tests.deliver.log_world import Published, news
from tests.service.test_api import PATIENCE_S, SCRIPT, Home, apply, problem_in, serving

from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Scope
from headgate.deliver.entry import entry_of, stable_id
from headgate.model.items import Item
from headgate.model.values import Link
from headgate.service import caller, document_content, feed_documents
from headgate.service.document_content import BODIES_BYTES_MAX, BodyCache, BodyKey, DocumentFormat
from headgate.service.log_access import LogAccess

ATOM = "{http://www.w3.org/2005/Atom}"
OLD = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def acme(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """What is new is seen at once."""
    monkeypatch.setattr(caller, "PRINCIPAL_S", 0.0)
    monkeypatch.setattr(feed_documents, "LOOK_S", 0.0)
    with home.client("acme") as client:
        apply(client, SCRIPT)
        yield client


@pytest.fixture
def reader(home: Home) -> Iterator[httpx.Client]:
    """Somebody without an account."""
    with httpx.Client(base_url=home.url, timeout=PATIENCE_S) as client:
        yield client


def link_to(client: httpx.Client, feed: str) -> dict[str, str]:
    """The paths of a new link, by format; and its id."""
    answer = client.post(f"/v1/feeds/{feed}/links", json={"comment": "phone"})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["entry"]["feed"] == feed
    return {name: urlsplit(url).path for name, url in made["urls"].items()} | {
        "id": made["entry"]["id"]
    }


def number_of(home: Home, kept: str) -> int:
    return home.catalog.definitions().number_of(kept)


# --- links ----------------------------------------------------------------------------------------


def test_links_are_made_listed_and_revoked(home: Home, acme: httpx.Client) -> None:
    home.make_log()
    link = link_to(acme, "Rock")
    assert httpx.get(home.url + link["atom"]).status_code == 200
    listed = acme.get("/v1/links")
    (entry,) = listed.json()["entries"]
    assert (entry["id"], entry["feed"], entry["comment"]) == (link["id"], "Rock", "phone")
    assert link["atom"].removesuffix(".atom").removeprefix("/f/") not in listed.text
    for _ in range(2):
        link_to(acme, "News")
    page = acme.get("/v1/links", params={"limit": 2}).json()
    assert (page["total"], len(page["entries"])) == (3, 2)
    rest = acme.get("/v1/links", params={"after": page["next"]}).json()
    assert len({each["id"] for each in page["entries"] + rest["entries"]}) == 3
    with home.client("globex") as globex:
        assert globex.get("/v1/links").json() == {"entries": [], "total": 0}
        problem_in(globex.delete(f"/v1/links/{link['id']}"), 404)
        problem_in(globex.post("/v1/feeds/acme.Rock/links", json={}), 404)
    assert acme.delete(f"/v1/links/{link['id']}").status_code == 204
    problem_in(acme.delete(f"/v1/links/{link['id']}"), 404)
    assert httpx.get(home.url + link["atom"]).status_code == 404
    with home.client("acme", Scope.READ) as other:
        problem_in(other.post("/v1/feeds/Rock/links", json={}), 403)
    audit = acme.get("/v1/audit").text
    assert "created link" in audit
    assert "revoked link" in audit


def test_every_link_that_is_not_valid_gets_the_same_answer(
    home: Home, acme: httpx.Client, reader: httpx.Client
) -> None:
    home.make_log()
    acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": "read"})
    with home.client("globex") as globex:
        granted = link_to(globex, "acme.Rock")
    revoked, dropped = link_to(acme, "Rock"), link_to(acme, "News")
    paths = [granted["atom"], revoked["atom"], dropped["atom"]]
    assert {reader.get(path).status_code for path in paths} == {200}
    acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": None})
    acme.delete(f"/v1/links/{revoked['id']}")
    apply(acme, "drop feed Rock; drop stream News;")
    paths += [
        revoked["atom"].replace("hl_", "hg_"),
        revoked["atom"].replace(".atom", ".txt"),
        revoked["atom"].replace(".atom", ""),
        "/f/x.atom",
        "/f/" + "x" * 5_000 + ".atom",
        "/f/%00%ff.atom",
        "/f/",
        "/nowhere",
    ]
    answers = {(r.status_code, r.text) for path in paths for r in (reader.get(path),)}
    assert len(answers) == 1
    assert answers.pop()[0] == 404


def test_the_public_url_is_the_address_of_documents(home: Home, acme: httpx.Client) -> None:
    log = home.make_log()
    log.publish(news("a", number_of(home, "acme.Rock"), source="acme.News"))
    del acme  # it has applied the script
    public = "https://news.example/x"
    with serving(home.headgate, public) as url, home.client("acme") as client:
        made = client.post(f"{url}/v1/feeds/Rock/links", json={}).json()["urls"]
        assert all(each.startswith(f"{public}/f/hl_") for each in made.values())
        found = {name: httpx.get(each.replace(public, url)) for name, each in made.items()}
        for name in ("atom", "rss"):
            links = feedparser.parse(found[name].content).feed.links
            assert made[name] in [each.href for each in links if each.rel == "self"]
        assert found["json"].json()["feed_url"] == made["json"]
        few = feedparser.parse(httpx.get(made["atom"].replace(public, url) + "?n=3").content)
        assert few.feed.links[0].href == made["atom"] + "?n=3"


def test_a_busy_catalog_holds_up_no_reader(
    home: Home, acme: httpx.Client, reader: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last use is noted when the catalog has time for it."""
    home.make_log()
    released, noted, note = threading.Event(), threading.Semaphore(0), Catalog.note_link_uses

    def wait_and_note(catalog: Catalog, ids: Collection[str]) -> None:
        assert released.wait(PATIENCE_S)
        note(catalog, ids)
        noted.release()

    monkeypatch.setattr(Catalog, "note_link_uses", wait_and_note)
    for feed in ("Rock", "News"):
        assert reader.get(link_to(acme, feed)["rss"]).status_code == 200
    assert all("last_used_at" not in each for each in acme.get("/v1/links").json()["entries"])
    released.set()
    for _ in range(2):
        assert noted.acquire(timeout=PATIENCE_S)
    for entry in acme.get("/v1/links").json()["entries"]:
        assert entry["last_used_at"] >= entry["created_at"]


# --- documents ------------------------------------------------------------------------------------


def test_documents_have_the_last_items(
    home: Home, acme: httpx.Client, reader: httpx.Client
) -> None:
    link = link_to(acme, "Rock")
    assert reader.get(link["atom"]).status_code == 503  # there was no run yet
    log, number = home.make_log(), number_of(home, "acme.Rock")
    for name, path in link.items():
        if name != "id":
            empty = reader.get(path)
            assert empty.status_code == 200
            assert "title n" not in empty.text
    for n in range(60):
        log.publish(news(f"n{n:02}", number if n % 2 else 10_000, source="acme.News"))
    found = feedparser.parse(reader.get(link["atom"]).content)
    assert not found.bozo
    assert found.version == "atom10"
    assert (found.feed.title, len(found.entries)) == ("Rock", 30)
    assert found.entries[0].title == "title n59"
    assert found.entries[0].source.title == "News"
    for suffix, version in (("rss", "rss20"), ("atom", "atom10")):
        few = feedparser.parse(reader.get(link[suffix], params={"n": 3}).content)
        assert (few.version, few.bozo) == (version, False)
        assert [each.title for each in few.entries] == [f"title n{n}" for n in (59, 57, 55)]
        assert few.entries[0].id == stable_id("item", "acme.News", "n59")
    document = reader.get(link["json"], params={"n": 200}).json()
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert [each["id"] for each in document["items"]] == [each.id for each in found.entries]
    page = reader.get(link["html"])
    assert page.text.count("<section>") == 30
    for wrong in ("0", "201", "-1", "x", "9" * 10_000, "0000001000", "٣", ""):
        assert reader.get(link["atom"], params={"n": wrong}).status_code == 400
    assert reader.post(link["atom"]).status_code == 405
    source = feedparser.parse(reader.get(link_to(acme, "News")["rss"], params={"n": 200}).content)
    assert len(source.entries) == 60


def test_entries_are_those_of_files(home: Home, acme: httpx.Client, reader: httpx.Client) -> None:
    """The ids do not depend on the tenant, its names, or the format."""
    log, number = home.make_log(), number_of(home, "acme.Rock")
    log.publish(news("a", number, source="acme.News"))
    acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": "read"})
    with home.client("globex") as globex:
        foreign = reader.get(link_to(globex, "acme.Rock")["atom"])
    own = reader.get(link_to(acme, "Rock")["atom"])
    written = entry_of(news("a", source="acme.News").item).id
    for answer, title, source in ((own, "Rock", "News"), (foreign, "acme.Rock", "acme.Rock")):
        document = feedparser.parse(answer.content)
        assert document.feed.title == title
        assert [each.id for each in document.entries] == [written]
        assert document.entries[0].source.title == source
    assert "News" not in foreign.text  # globex does not see it
    assert feedparser.parse(own.content).feed.id == feedparser.parse(foreign.content).feed.id


def test_a_title_is_made_of_names_that_are_seen(
    home: Home, acme: httpx.Client, reader: httpx.Client
) -> None:
    log, number = home.make_log(), number_of(home, "acme.Rock")
    log.publish(Published(Item("x", "acme.News", OLD, {}), (number,)))
    acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": "read"})
    with home.client("globex") as globex:
        foreign = reader.get(link_to(globex, "acme.Rock")["json"]).json()
    assert foreign["items"][0]["title"].startswith("acme.Rock, 2026-11-16")
    own = reader.get(link_to(acme, "Rock")["json"]).json()
    assert own["items"][0]["title"].startswith("News, 2026-11-16")


def test_answers_are_private_and_run_nothing(
    home: Home, acme: httpx.Client, reader: httpx.Client
) -> None:
    log, number = home.make_log(), number_of(home, "acme.Rock")
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)><b>bold</b>"
    log.publish(
        Published(Item("x", "acme.News", OLD, {"title": attack, "content": attack}), (number,))
    )
    types = {
        "atom": "application/atom+xml; charset=utf-8",
        "rss": "application/rss+xml; charset=utf-8",
        "json": "application/feed+json",
        "html": "text/html; charset=utf-8",
    }
    link = link_to(acme, "Rock")
    for name, type_ in types.items():
        path = link[name]
        answer = reader.get(path)
        assert answer.headers["content-type"] == type_
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert policy.endswith("sandbox")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "private, max-age=60"
        head = reader.head(path)
        assert (head.status_code, head.content) == (200, b"")
        kept = ("etag", "content-type", "content-length")
        assert [head.headers[each] for each in kept] == [answer.headers[each] for each in kept]
    page = html.fromstring(reader.get(link["html"]).content)
    assert not page.xpath("//script|//*[@onerror]")
    assert page.xpath("//b/text()") == ["bold"]


def test_a_document_is_read_again_only_if_it_is_new(
    home: Home, acme: httpx.Client, reader: httpx.Client
) -> None:
    log, number = home.make_log(), number_of(home, "acme.Rock")
    path = link_to(acme, "Rock")["atom"]
    seen: list[str] = []
    for n in range(4):
        first = reader.get(path)
        seen.append(first.headers["etag"])
        for header in (first.headers["etag"], f'"x", {first.headers["etag"]}', "*"):
            again = reader.get(path, headers={"if-none-match": header})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == first.headers["etag"]
        since = {"if-modified-since": first.headers["last-modified"]}
        assert reader.get(path, headers=since).status_code == 304
        assert reader.get(path, headers=since | {"if-none-match": '"x"'}).status_code == 200
        for wrong in ("yesterday", "", "Mon, 16 Nov 2026 12:00:00 -0000"):
            answer = reader.get(path, headers={"if-modified-since": wrong})
            assert answer.status_code in (200, 304)
        log.publish(news(f"other{n}", 10_000, source="acme.News"))  # of another feed
        assert reader.get(path, headers={"if-none-match": seen[-1]}).status_code == 304
        log.pass_time(5)
        log.publish(news(f"n{n}", number, source="acme.News"))
        answer = reader.get(path, headers={"if-none-match": seen[-1]})
        assert answer.status_code == 200
        assert f"title n{n}" in answer.text
    assert len(set(seen)) == 4


def test_a_new_item_has_no_date_yet(home: Home, acme: httpx.Client, reader: httpx.Client) -> None:
    """Another one may arrive in the same second, and a reader that asks by date would miss it."""
    log, number = home.make_log(), number_of(home, "acme.Rock")
    path = link_to(acme, "Rock")["atom"]
    log.now = datetime.now(UTC)
    log.publish(news("a", number, source="acme.News"))
    assert "last-modified" not in reader.get(path).headers
    log.now -= timedelta(minutes=1)


def test_trimmed_items_disappear(home: Home, acme: httpx.Client, reader: httpx.Client) -> None:
    log, number = home.make_log(), number_of(home, "acme.Rock")
    path = link_to(acme, "Rock")["atom"]
    for n in range(4):
        log.publish(news(f"n{n}", number, source="acme.News"))
    assert reader.get(path).text.count("<entry>") == 4
    log.trim(2)
    assert reader.get(path).text.count("<entry>") == 2
    log.trim(4)
    assert reader.get(path).text.count("<entry>") == 0
    log.publish(news("late", number, source="acme.News"))
    assert "title late" in reader.get(path).text


def test_what_is_remembered_costs_no_lookup(
    home: Home, acme: httpx.Client, reader: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "PRINCIPAL_S", 1_000.0)
    monkeypatch.setattr(feed_documents, "LOOK_S", 1_000.0)
    log, number = home.make_log(), number_of(home, "acme.Rock")
    log.publish(news("a", number, source="acme.News"))
    path = link_to(acme, "Rock")["atom"]
    first = reader.get(path)

    def refused(*_: object) -> None:
        raise AssertionError("it was remembered")

    monkeypatch.setattr(LogAccess, "_refreshed", refused)
    monkeypatch.setattr(feed_documents, "run_in_threadpool", refused)
    assert reader.get(path).content == first.content
    etag = {"if-none-match": first.headers["etag"]}
    assert reader.get(path, headers=etag).status_code == 304


def test_a_large_document_is_cut(
    home: Home, acme: httpx.Client, reader: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_content, "BODY_BYTES_MAX", 5_000)
    log, number = home.make_log(), number_of(home, "acme.Rock")
    for n in range(4):
        content = {"title": f"t{n}", "content": "x" * 2_000}
        log.publish(Published(Item(f"n{n}", "acme.News", OLD, content), (number,)))
    path = link_to(acme, "Rock")["atom"]
    titles = [each.title for each in feedparser.parse(reader.get(path).content).entries]
    assert titles == ["t3", "t2"]
    monkeypatch.setattr(document_content, "BODY_BYTES_MAX", 10)
    assert len(feedparser.parse(reader.get(path + "?n=2").content).entries) == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, BODIES_BYTES_MAX)), max_size=40))
def test_the_cache_keeps_its_bound(added: list[tuple[int, int]]) -> None:
    class Content(bytes):
        """As long as it says."""

        def __new__(cls, length: int) -> Content:
            made = super().__new__(cls)
            made.length = length
            return made

        def __len__(self) -> int:
            return self.length

        length: int

    cache = BodyCache()
    kept: dict[BodyKey, int] = {}
    for number, length in added:
        key = BodyKey("acme", str(number), "", 0, DocumentFormat.ATOM, 50)
        kept.setdefault(key, length)
        cache.add(key, document_content.DocumentBody(Content(kept[key]), b"", None, False))
        held = [each for each in kept if cache.get(each) is not None]
        assert cache.size == sum(kept[each] + document_content.OVERHEAD_BYTES for each in held)
        assert cache.size <= BODIES_BYTES_MAX


def test_many_readers_at_once_get_the_same(home: Home, acme: httpx.Client) -> None:
    log, number = home.make_log(), number_of(home, "acme.Rock")
    for n in range(20):
        log.publish(news(f"n{n}", number, source="acme.News"))
    path = link_to(acme, "Rock")["atom"]
    answers: list[bytes] = []

    def read() -> None:
        with httpx.Client(base_url=home.url, timeout=PATIENCE_S) as client:
            answers.extend(client.get(path).content for _ in range(5))

    threads = [threading.Thread(target=read) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    assert len(answers) == 60
    assert len(set(answers)) == 1


# --- hostile items --------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "<b>bold",
        "]]>",
        "<![CDATA[x",
        "&lt;b&gt;",
        "&#0;",
        "&amp;amp;",
        "\u202egnp.exe",
        "\u2066x\u2069",
        "\x00\x1b[2J",
        "\ufffe",
        "</title></entry></feed>",
        "<a href='javascript:alert(1)' onclick=x>y</a>",
        "<style>*{}</style>",
        "<iframe src=x>",
        "<!--",
        "<?xml?>",
        "<svg/onload=alert(1)>",
        "\r\n\t",
        "日本語",
    ]
)
characters = st.characters(exclude_categories=["Cs"])
hostile = st.lists(pieces | st.text(characters, max_size=20), max_size=4).map("".join)
items = st.builds(
    lambda title, content, author, category, link, minutes: Item(
        "",
        "acme.News",
        OLD,
        {
            "title": title,
            "content": content,
            "author": author,
            "category": category,
            "link": Link(link),
            "published": OLD + timedelta(minutes=minutes),
        },
    ),
    *[hostile] * 4,
    hostile | hostile.map("https://a.example/".__add__),
    st.integers(-100, 100),
)
FORBIDDEN = "script|iframe|style|object|embed|form|svg|link|meta|base"


def _as_feedparser_reads(text: str) -> str:
    """feedparser takes text whose characters are the bytes of UTF-8 for text that was encoded
    twice."""
    try:
        return text.encode("iso-8859-1").decode("utf-8")
    except UnicodeError:
        return text


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(Path(tmp_path_factory.mktemp("hostile")))
    with pytest.MonkeyPatch.context() as patch, serving(home.headgate) as home.url:
        patch.setattr(feed_documents, "LOOK_S", 0.0)
        home.log = home.make_log()  # type: ignore[attr-defined]
        with home.client("acme") as client:
            apply(client, SCRIPT)
            home.link = link_to(client, "Rock")  # type: ignore[attr-defined]
        with httpx.Client(base_url=home.url, timeout=PATIENCE_S) as home.reader:  # type: ignore[attr-defined]
            yield home
    home.catalog.close()


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # each example makes the log larger
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(made=st.lists(items, min_size=1, max_size=5))
def test_parsed_documents_have_what_the_log_has(hostile_home: Home, made: list[Item]) -> None:
    home: Any = hostile_home
    number = number_of(home, "acme.Rock")
    published = [
        Published(
            Item(f"{home.log.batches}-{n}", each.source, each.time, each.attributes), (number,)
        )
        for n, each in enumerate(made)
    ]
    home.log.publish(*published)
    answers = {
        name: home.reader.get(path, params={"n": len(made)})
        for name, path in home.link.items()
        if name != "id"
    }
    assert {each.status_code for each in answers.values()} == {200}
    # The oracle: the items that were published last, the newest first, as entries.
    entries = sorted(
        (entry_of(each.item, name_of=lambda _: "News") for each in reversed(published)),
        key=lambda each: each.shown_at,
        reverse=True,
    )
    for name in ("atom", "rss"):
        found = feedparser.parse(answers[name].content, sanitize_html=False)
        assert not found.bozo
        assert [each.id for each in found.entries] == [each.id for each in entries]
        if name == "atom":  # RSS does not say whether a title is text or HTML
            titles = [_as_feedparser_reads(each.title) for each in entries]
            assert [each.title for each in found.entries] == titles
    atom = etree.fromstring(answers["atom"].content)
    rows = [
        tuple(element.findtext(f"{ATOM}{tag}") for tag in ("id", "title", "content"))
        for element in atom.iter(f"{ATOM}entry")
    ]
    expected = [(each.id, each.title, each.body_html) for each in entries]
    assert rows == expected
    items = json.loads(answers["json"].content)["items"]
    assert [(x["id"], x["title"], x["content_html"]) for x in items] == expected
    page = html.fromstring(answers["html"].content)
    assert len(page.xpath("//section")) == len(made)
    contents = [each.body_html for each in entries]
    for text in [answers["html"].text.partition("<body>")[2], *contents]:
        tree = html.fromstring(f"<div>{text}</div>")
        assert not tree.xpath(" | ".join(f"//{tag}" for tag in FORBIDDEN.split("|")))
        for _, attribute, target, _ in tree.iterlinks():
            assert urlsplit(target).scheme in ("http", "https", "ftp", "mailto"), attribute
        assert not [a for each in tree.iter() for a in each.attrib if a.startswith("on")]
    for title in (each.title for each in entries):
        assert title.isprintable()
        assert not set(title) & set("\u202e\u2066\u2069")
