"""The Google Reader API by a real server, called as feed readers call it."""

from __future__ import annotations

import logging
import threading
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import feedparser
import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.service.reader_home import API, STATE, ReaderHome
from tests.service.test_api import PATIENCE_S, apply, serving

from headgate.catalog.principals import Scope
from headgate.service import rate_limits, reading_windows
from headgate.service.reader_ids import ITEM_PREFIX, item_id, long_id, parts_of, read_item_id

READ, STARRED, KEPT = f"{STATE}read", f"{STATE}starred", f"{STATE}kept-unread"
ALL = f"{STATE}reading-list"
ATOM = "{http://www.w3.org/2005/Atom}"


def subscriptions(client: httpx.Client) -> dict[str, dict[str, Any]]:
    answer = client.get(f"{API}/subscription/list", params={"output": "json"})
    assert answer.status_code == 200, answer.text
    return {each["title"]: each for each in answer.json()["subscriptions"]}


def ids(client: httpx.Client, stream: str = ALL, **more: Any) -> list[int]:
    """All ids of a stream, page by page."""
    found: list[int] = []
    params: dict[str, Any] = {"s": stream, "n": 1_000, "output": "json", **more}
    while True:
        answer = client.get(f"{API}/stream/items/ids", params=params).json()
        assert all(isinstance(each["id"], str) for each in answer["itemRefs"])
        found += [int(each["id"]) for each in answer["itemRefs"]]
        if "continuation" not in answer:
            return found
        assert isinstance(answer["continuation"], str)
        params["c"] = answer["continuation"]


def positions(client: httpx.Client, stream: str = ALL, **more: Any) -> list[int]:
    return [parts_of(each)[0] for each in ids(client, stream, **more)]


def edit(client: httpx.Client, path: str, fields: list[tuple[str, str]]) -> None:
    body = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = client.post(f"{API}/{path}", content=body, headers=headers)
    assert (answer.status_code, answer.text) == (200, "OK")


def contents(client: httpx.Client, wanted: list[str]) -> dict[str, Any]:
    answer = client.post(f"{API}/stream/items/contents", data={"i": wanted, "output": "json"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


# --- signing in -----------------------------------------------------------------------------------


def test_signing_in_gives_a_token_that_ends_with_its_password(readers: ReaderHome) -> None:
    password = readers.passwords["ada"]
    url = f"{readers.url}/accounts/ClientLogin"
    form = {"Email": "ada", "Passwd": password, "service": "reader"}
    answer = httpx.post(url, data=form, timeout=PATIENCE_S)
    names = [line.partition("=")[0] for line in answer.text.splitlines()]
    assert names == ["SID", "LSID", "Auth"]
    token = answer.text.splitlines()[2].removeprefix("Auth=")
    assert "=" not in token
    assert password not in token
    as_json = httpx.post(url, data={**form, "output": "json"}, timeout=PATIENCE_S).json()
    assert as_json["Auth"] == token
    in_query = httpx.get(url, params={**form, "Email": "ada/acme"}, timeout=PATIENCE_S)
    assert token in in_query.text
    for wrong in (
        {"Email": "ada", "Passwd": "x"},
        {"Email": "bob", "Passwd": password},
        {"Email": "ada/globex", "Passwd": password},
        {"Email": "ada\0", "Passwd": password},
        {},
    ):
        refused = httpx.post(url, data=wrong, timeout=PATIENCE_S)
        assert (refused.status_code, refused.text) == (401, "Error=BadAuthentication\n")
    with readers.reader() as reader:
        assert reader.get(f"{API}/user-info").json()["userName"] == "ada/acme"
        readers.catalog.reader_passwords.revoke("ada", "acme", actor="the test")
        refused = reader.get(f"{API}/user-info")
        assert refused.status_code == 401
        assert refused.headers["x-reader-google-bad-token"] == "true"
    made = readers.catalog.reader_passwords.create("ada", "acme", actor="the test")
    readers.passwords["ada"] = made.password
    with readers.reader() as reader:
        assert reader.get(f"{API}/user-info").status_code == 200
        readers.catalog.accounts.join("ada", "acme", [])
        assert reader.get(f"{API}/user-info").status_code == 401, "it is no member any more"


def test_only_tokens_of_readers_are_taken(readers: ReaderHome) -> None:
    token = readers.token("acme")
    with readers.session("ada", "acme") as session:
        other = session.headers["authorization"].removeprefix("Bearer ")
    for value in (
        token,
        other,
        "",
        "hgr_x",
        f"hgr_{'a' * 12}_{'0' * 64}",
        readers.passwords["ada"],
    ):
        headers = {"authorization": f"GoogleLogin auth={value}"}
        answer = httpx.get(f"{readers.url}{API}/token", headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == 401
    with readers.reader() as reader:
        own = reader.headers["authorization"].removeprefix("GoogleLogin auth=")
    refused = httpx.get(f"{readers.url}/v1/me", headers={"authorization": f"Bearer {own}"})
    assert refused.status_code == 401, "it is for /reader only"


def test_guessing_is_slowed_down(readers: ReaderHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "GUESSES_PER_S", 0.001)
    url = f"{readers.url}/accounts/ClientLogin"
    codes = [
        httpx.post(url, data={"Email": "ada", "Passwd": str(n)}, timeout=PATIENCE_S).status_code
        for n in range(12)
    ]
    assert codes == [401] * 10 + [429] * 2
    with readers.reader("bob") as bob:
        assert bob.get(f"{API}/token").status_code == 200


def test_passwords_are_in_no_log(readers: ReaderHome, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    password = readers.passwords["ada"]
    query = {"Email": "ada", "Passwd": password}
    for path in ("/accounts/ClientLogin", f"{API}/stream/contents", "/fever/", "/nowhere"):
        httpx.get(readers.url + path, params=query, timeout=PATIENCE_S)
    ours = [each for each in caplog.records if not each.name.startswith("http")]
    assert password not in "".join(each.getMessage() for each in ours)
    with readers.client("acme") as acme:
        audit = acme.get("/v1/audit").text
    assert "made a reader password" in audit
    assert password not in audit


# --- as clients do --------------------------------------------------------------------------------


def test_as_netnewswire(readers: ReaderHome) -> None:
    """Lists with conditional requests, ids by state, contents, edits."""
    rock, plain = readers.put("acme", "rock 1", "Rock"), readers.put("acme", "jazz")
    with readers.reader() as reader:
        listed = reader.get(f"{API}/subscription/list?output=json")
        feeds = {each["title"]: each for each in listed.json()["subscriptions"]}
        assert feeds["Rock"]["categories"] == [{"id": "user/-/label/Queries", "label": "Queries"}]
        assert feeds["Muse"]["categories"][0]["label"] == "Music › Bands"
        assert feeds["Muse"]["url"] == "https://muse.example/rss"
        etag = {"if-none-match": listed.headers["etag"]}
        assert reader.get(f"{API}/subscription/list?output=json", headers=etag).status_code == 304
        tags = reader.get(f"{API}/tag/list?output=json")
        assert {each["id"] for each in tags.json()["tags"]} >= {STARRED, "user/-/label/Queries"}
        not_new = {"if-none-match": tags.headers["etag"]}
        assert reader.get(f"{API}/tag/list?output=json", headers=not_new).status_code == 304

        token = reader.get(f"{API}/token").text
        assert "\n" not in token
        unread = ids(reader, ALL, xt=READ)
        assert [parts_of(each)[0] for each in unread] == [plain, rock, rock]
        found = contents(reader, [f"{ITEM_PREFIX}{each:016x}" for each in unread])
        assert {"id", "updated", "items"} <= found.keys()
        for item in found["items"]:
            assert {"id", "summary", "categories", "origin"} <= item.keys()
            assert isinstance(item["timestampUsec"], str)
            assert isinstance(item["crawlTimeMsec"], str)
            assert isinstance(item["published"], int)
            assert item["canonical"][0]["href"].startswith("https://a.example/")
            assert READ not in item["categories"]
        titles = {each["origin"]["title"] for each in found["items"]}
        assert titles == {"Rock", "News"}

        base = parsedate_to_datetime(reader.get(f"{API}/token").headers["date"]).timestamp()
        assert ids(reader, ALL, ot=int(base)) == [], "all of them arrived before"
        assert ids(reader, ALL, ot=readers.arrived_s(plain)) == ids(reader, feeds["News"]["id"])[:1]

        edit(reader, "edit-tag", [("i", str(unread[-1])), ("a", READ), ("T", token)])
        assert positions(reader, ALL, xt=READ) == [plain], "it is read in both of its feeds"
        edit(reader, "edit-tag", [("i", str(unread[0])), ("a", STARRED), ("T", token)])
        assert positions(reader, STARRED) == [plain]
        edit(reader, "edit-tag", [("i", long_id(unread[0])), ("r", STARRED), ("T", token)])
        assert positions(reader, STARRED) == []


def test_as_netnewswire_edits_feeds(readers: ReaderHome) -> None:
    with readers.reader() as reader:
        before = reader.get(f"{API}/subscription/list").headers["etag"]
        url = "https://oboe.example/feed"
        made = reader.post(f"{API}/subscription/quickadd", data={"quickadd": url}).json()
        assert made["numResults"] == 1
        after = reader.get(f"{API}/subscription/list", headers={"if-none-match": before})
        assert after.status_code == 200, "the ETag has changed at once"
        for same in (url, f"feed/{url}"):
            again = reader.post(f"{API}/subscription/quickadd", data={"quickadd": same}).json()
            assert again["streamId"] == made["streamId"]
        for near in (f"{url}?a=%27b%27&c='d'", f"{url}%25_"):
            other = reader.post(f"{API}/subscription/quickadd", data={"quickadd": near}).json()
            assert other["streamId"] != made["streamId"], other
            again = reader.post(f"{API}/subscription/quickadd", data={"quickadd": near}).json()
            assert again["streamId"] == other["streamId"]
        stream = ("s", made["streamId"])
        edit(reader, "subscription/edit", [("ac", "edit"), stream, ("t", "Oboes")])
        label = ("a", "user/-/label/Wood")
        edit(reader, "subscription/edit", [("ac", "edit"), stream, label])
        assert subscriptions(reader)["Oboes"]["categories"][0]["label"] == "Wood"
        new = ("dest", "user/-/label/Wind")
        edit(reader, "rename-tag", [("s", "user/-/label/Wood"), new])
        assert subscriptions(reader)["Oboes"]["categories"][0]["label"] == "Wind"
        edit(reader, "disable-tag", [("s", "user/7/label/Wind")])
        assert subscriptions(reader)["Oboes"]["categories"] == []
        edit(reader, "subscription/edit", [("ac", "unsubscribe"), stream])
        assert "Oboes" not in subscriptions(reader)
        edit(reader, "subscription/edit", [("ac", "subscribe"), stream])
        assert subscriptions(reader)["Oboes"]["id"] == made["streamId"]
        opml = (
            '<opml version="2.0"><body><outline text="Harps" '
            'xmlUrl="https://harp.example/x"/><outline text="m" xmlUrl="https://muse.example/rss"/>'
            "</body></opml>"
        )
        answer = reader.post(f"{API}/subscription/import", content=opml)
        assert (answer.status_code, answer.text) == (200, "OK")
        assert {"Harps", "Muse"} <= subscriptions(reader).keys()
        refused = reader.post(f"{API}/subscription/import", content="no list")
        assert refused.status_code == 400


def test_quickadd_needs_the_scope_and_the_checks(readers: ReaderHome) -> None:
    with readers.reader() as reader:
        for wrong in ("https://", "ftp://a.example/x", "file:///etc/passwd", "javascript:/x", "?"):
            answer = reader.post(f"{API}/subscription/quickadd", data={"quickadd": wrong})
            assert answer.json()["numResults"] == 0, wrong
            assert answer.json()["error"]
        named = reader.post(f"{API}/subscription/quickadd", data={"quickadd": "Loud"}).json()
        assert named["streamName"] == "Loud"
        other = reader.post(f"{API}/subscription/quickadd", data={"quickadd": "globex.Loud"})
        assert other.json()["numResults"] == 0
    readers.catalog.accounts.join("ada", "acme", [Scope.READ])
    with readers.reader() as reader:
        refused = reader.post(f"{API}/subscription/quickadd", data={"quickadd": "http://a.example"})
        assert refused.status_code == 403
        assert "'write'" in refused.text
        assert reader.post(f"{API}/subscription/import", content="<opml/>").status_code == 403


def test_as_reeder(readers: ReaderHome) -> None:
    """Contents of a hundred ids, and edits with the token `x`."""
    wanted = [readers.put("acme", f"rock {n}", "Rock") for n in range(30)]
    with readers.reader() as reader:
        rock = subscriptions(reader)["Rock"]["id"]
        found = ids(reader, rock, xt=READ, n=7)
        assert [parts_of(each)[0] for each in found] == wanted[::-1]
        mixed = [(f"{each:016x}", str(each), long_id(each))[each % 3] for each in found]
        answered = contents(reader, mixed)["items"]
        assert [read_item_id(each["id"]) for each in answered] == found
        edit(reader, "edit-tag", [("T", "x"), *(("i", each) for each in mixed), ("a", READ)])
        assert ids(reader, rock, xt=READ) == []
        edit(reader, "edit-tag", [("T", "x"), ("i", mixed[0]), ("r", READ)])
        assert positions(reader, rock, xt=READ) == [wanted[-1]]


def test_as_feedme(readers: ReaderHome) -> None:
    """Contents without a stream, unread counts, an empty token."""
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock", "Loud")
    with readers.reader() as reader:
        counted = reader.get(f"{API}/unread-count?output=json").json()
        counts = {each["id"]: each["count"] for each in counted["unreadcounts"]}
        feeds = subscriptions(reader)
        assert counted["max"] == 1_000
        assert counts[feeds["Rock"]["id"]] == 3
        assert counts["user/-/label/Queries"] == 6
        assert counts[ALL] == 9
        assert feeds["Muse"]["id"] not in counts
        page = reader.get(f"{API}/stream/contents", params={"n": 2, "output": "json"}).json()
        assert len(page["items"]) == 2
        assert isinstance(page["continuation"], str)
        assert len(ids(reader, ALL, n=500, ot=0)) == 9
        edit(reader, "edit-tag", [("T", ""), ("i", page["items"][0]["id"]), ("a", READ)])
        ts = (readers.arrived_s(1)) * 1_000_000
        edit(reader, "mark-all-as-read", [("s", feeds["Rock"]["id"]), ("ts", str(ts)), ("T", "")])
        assert positions(reader, ALL, xt=READ) == []
        edit(reader, "edit-tag", [("i", page["items"][0]["id"]), ("a", KEPT), ("r", READ)])
        assert set(positions(reader, ALL, xt=READ)) == {2}
        edit(
            reader, "mark-all-as-read", [("s", feeds["Loud"]["id"]), ("s", "user/-/label/Queries")]
        )
        assert positions(reader, ALL, xt=READ) == []
        readers.put("acme", "jazz")
        edit(reader, "mark-all-as-read", [("s", ALL), ("ts", str(readers.arrived_s(2)))])
        assert positions(reader, ALL, xt=READ) == [3], "it arrived later"


def test_streams_are_named_in_many_ways(readers: ReaderHome) -> None:
    readers.put("acme", "rock 1", "Rock")
    readers.put("acme", "jazz")
    with readers.reader() as reader:
        rock = subscriptions(reader)["Rock"]["id"]
        for path in (rock, rock.replace("/", "%2F"), f"/{rock}", rock.replace("/", "//")):
            page = reader.get(f"{API}/stream/contents/{path}").json()
            assert [each["title"] for each in page["items"]] == ["rock 1"], path
        for stream in (ALL, ALL.replace("-", "17", 1), quote(ALL, safe="")):
            page = reader.get(f"{API}/stream/contents/{stream}", params={"r": "o"}).json()
            titles = [each["title"] for each in page["items"]]
            assert titles == ["rock 1", "rock 1", "jazz"], stream
        label = reader.get(f"{API}/stream/contents/user/-/label/Queries").json()
        assert [each["title"] for each in label["items"]] == ["rock 1"]
        for nothing in (
            f"{STATE}broadcast",
            f"{STATE}like",
            "feed/99",
            "feed/x",
            "x",
            "user/-/label/",
        ):
            assert reader.get(f"{API}/stream/contents/{nothing}").json()["items"] == [], nothing
        for state in ("tracking-kept-unread", "broadcast", "like"):
            edit(reader, "edit-tag", [("i", "1"), ("a", STATE + state), ("ac", "edit")])
        assert len(ids(reader, ALL, xt=rock)) == 2
        assert len(ids(reader, ALL, xt="user/-/label/Queries")) == 2
        assert ids(reader, ALL, nt=readers.arrived_s(0)) == ids(reader, ALL, r="o")[1::-1]
        assert ids(reader, READ) == []
        assert reader.get(f"{API}/stream/items/ids", params={"n": "-1", "c": "?", "ot": "x"})


def test_content_is_sanitised_as_in_documents(readers: ReaderHome) -> None:
    evil = '<p onclick="x()">hi<script>alert(1)</script><a href="javascript:x">y</a></p>'
    readers.put("acme", "<b>rock</b> & \x01roll", "Rock", description=evil)
    with readers.reader() as reader:
        stream = subscriptions(reader)["Rock"]["id"]
        answers = [
            reader.get(f"{API}/stream/contents/{stream}").text,
            reader.get(f"/reader/atom/{stream}").text,
        ]
    for text in answers:
        assert "hi" in text
        for bad in ("script", "onclick", "javascript"):
            assert bad not in text


def test_atom_has_states_that_newsboat_reads(readers: ReaderHome) -> None:
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock")
    with readers.reader() as reader:
        stream = quote(subscriptions(reader)["Rock"]["id"], safe="")
        newest = ids(reader, subscriptions(reader)["Rock"]["id"])[0]
        edit(reader, "edit-tag", [("i", str(newest)), ("a", READ), ("a", STARRED)])
        answer = reader.get(f"/reader/atom/{stream}?n=2")
        assert answer.headers["content-type"].startswith("application/atom+xml")
        assert len(feedparser.parse(answer.content).entries) == 2
        entries = etree.fromstring(answer.content).findall(f"{ATOM}entry")
        labels = [
            {
                each.get("label")
                for each in entry.findall(f"{ATOM}category")
                if each.get("scheme") == "http://www.google.com/reader/"
            }
            & {"read", "fresh"}
            for entry in entries
        ]
        assert labels == [{"read"}, {"fresh"}]
        assert entries[0].findtext(f"{ATOM}id") == long_id(newest)
        known = {"if-none-match": answer.headers["etag"]}
        assert reader.get(f"/reader/atom/{stream}?n=2", headers=known).status_code == 304
        edit(reader, "edit-tag", [("i", str(newest)), ("r", READ)])
        assert reader.get(f"/reader/atom/{stream}?n=2", headers=known).status_code == 200


def test_starred_items_stay_when_the_log_trims_them(readers: ReaderHome) -> None:
    first = readers.put("acme", "rock 1", "Rock", description="long ago")
    readers.put("acme", "rock 2", "Rock")
    with readers.reader() as reader:
        starred = ids(reader, ALL, r="o")[0]
        edit(reader, "edit-tag", [("i", str(starred)), ("a", STARRED)])
        readers.log.trim(2)
        assert ids(reader, ALL) == []
        assert set(positions(reader, STARRED)) == {first}
        for id_ in ids(reader, STARRED):
            (item,) = contents(reader, [str(id_)])["items"]
            assert item["title"] == "rock 1"
            assert "long ago" in item["summary"]["content"]
            assert {STARRED, READ} <= set(item["categories"])
        with readers.client("acme") as acme:
            assert apply(acme, "drop feed Loud; drop feed Rock;").status_code == 200
        assert positions(reader, STARRED)
        edit(reader, "edit-tag", [("i", str(starred)), ("r", STARRED)])
        assert ids(reader, STARRED) == []


def test_nothing_was_run_yet(readers: ReaderHome, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = ReaderHome(tmp_path_factory.mktemp("empty"))
    del readers
    with other.catalog:
        other.headgate.folder = other.folder.parent / "nothing"
        with serving(other.headgate) as other.url, other.reader() as reader:
            assert len(subscriptions(reader)) == 4
            assert ids(reader) == []
            assert reader.get(f"{API}/unread-count").json()["unreadcounts"] == []
            edit(reader, "mark-all-as-read", [("s", ALL)])


# --- two tenants ----------------------------------------------------------------------------------


def test_nothing_of_one_is_visible_to_the_other(readers: ReaderHome) -> None:
    own = readers.put("acme", "rock secret", "Rock", "Loud")
    readers.put("globex", "rock other", "Rock")
    with readers.reader("ada") as ada, readers.reader("bob") as bob:
        assert positions(ada, ALL) == [own] * 3
        forged = [str(item_id(own, feed_id)) for feed_id in range(1, 20)]
        assert contents(bob, forged)["items"] == []
        edit(bob, "edit-tag", [*(("i", each) for each in forged), ("a", STARRED), ("a", READ)])
        assert ids(bob, STARRED) == []
        assert len(ids(bob, ALL)) == 2
        edit(bob, "mark-all-as-read", [("s", ALL)])
        assert len(ids(ada, ALL, xt=READ)) == 3
        for path in ("stream/contents", "subscription/list", "tag/list", "stream/contents/feed/1"):
            assert "secret" not in bob.get(f"{API}/{path}").text
            assert "acme" not in bob.get(f"{API}/{path}").text
        assert "secret" not in bob.get("/reader/atom/feed/1").text
        for name in ("feed/acme.Rock", "feed/acme.News"):
            answer = bob.post(f"{API}/subscription/edit", data={"ac": "subscribe", "s": name})
            assert answer.status_code == 404


def test_a_star_ends_with_the_grant(readers: ReaderHome) -> None:
    position = readers.put("acme", "rock 1", "Rock")
    with readers.client("acme") as acme, readers.reader("bob") as bob:
        grant = {"definition": "Rock", "tenant": "globex"}
        assert acme.put("/v1/grants", json={**grant, "right": "read"}).status_code < 300
        edit(bob, "subscription/edit", [("ac", "subscribe"), ("s", "feed/acme.Rock")])
        (id_,) = ids(bob, ALL)
        edit(bob, "edit-tag", [("i", str(id_)), ("a", STARRED)])
        (item,) = contents(bob, [str(id_)])["items"]
        assert item["origin"]["title"] == "acme.Rock"
        assert "acme.News" not in str(item), "its source is not granted"
        acme.put("/v1/grants", json={**grant, "right": None})
        assert ids(bob, ALL) == []
        assert ids(bob, STARRED) == []
        assert contents(bob, [str(id_)])["items"] == []
        acme.put("/v1/grants", json={**grant, "right": "read"})
        assert ids(bob, STARRED) == [id_]
        assert parts_of(id_)[0] == position


# --- properties -----------------------------------------------------------------------------------


@given(position=st.integers(0, 2**40 - 1), feed=st.integers(1, 8_191))
def test_ids_are_read_in_all_their_forms(position: int, feed: int) -> None:
    id_ = item_id(position, feed)
    assert 0 < id_ < 2**53
    assert parts_of(id_) == (position, feed)
    forms = [
        str(id_),
        f"{id_:016x}",
        long_id(id_),
        f"{ITEM_PREFIX}{id_:x}",
        f"{ITEM_PREFIX}{id_:X}",
    ]
    assert {read_item_id(each) for each in forms} == {id_}
    assert item_id(position + 1, 1) > id_


@given(text=st.text(max_size=40))
def test_what_is_no_id_is_none(text: str) -> None:
    found = read_item_id(text)
    assert found is None or 0 < found < 2**53


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(
    arriving=st.lists(st.integers(0, 3), max_size=6),
    page=st.integers(1, 5),
    is_ascending=st.booleans(),
    window=st.sampled_from([1, 3, 1 << 14]),
)
def test_a_walk_gives_each_item_once_whatever_arrives(
    readers: ReaderHome,
    monkeypatch: pytest.MonkeyPatch,
    arriving: list[int],
    page: int,
    is_ascending: bool,
    window: int,
) -> None:
    monkeypatch.setattr(reading_windows, "WINDOW_MIN", window)
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock", "Loud")
    with readers.reader() as reader:
        feeds = {each["id"] for each in subscriptions(reader).values()}
        before = set(ids(reader))
        params: dict[str, Any] = {"s": ALL, "n": page, "r": "o" if is_ascending else "d"}
        seen: list[int] = []
        while True:
            answer = reader.get(f"{API}/stream/items/ids", params=params).json()
            seen += [int(each["id"]) for each in answer["itemRefs"]]
            if "continuation" not in answer:
                break
            params["c"] = answer["continuation"]
            for _ in range(arriving.pop() if arriving else 0):
                readers.put("acme", f"rock new {readers.count}", "Rock")
        assert len(seen) == len(set(seen))
        assert before <= set(seen) if is_ascending else before == set(seen)
        assert seen == sorted(seen, reverse=not is_ascending)
        assert {f"feed/{parts_of(each)[1]}" for each in seen} <= feeds


def test_many_mark_at_once(readers: ReaderHome) -> None:
    for n in range(12):
        readers.put("acme", f"rock {n}", "Rock")
    with readers.reader() as reader:
        wanted = ids(reader)
        errors: list[str] = []

        def mark(part: list[int]) -> None:
            try:
                for each in part:
                    edit(reader, "edit-tag", [("i", str(each)), ("a", READ)])
            except AssertionError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=mark, args=[wanted[n::4]]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not errors
        assert ids(reader, ALL, xt=READ) == []
