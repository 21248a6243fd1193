"""The Fever API by a real server, called as phones call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.service.reader_home import ReaderHome
from tests.service.test_api import PATIENCE_S

from headgate.catalog.reader_passwords import fever_key
from headgate.service import fever
from headgate.service.reader_ids import item_id, parts_of


class Phone:
    def __init__(self, home: ReaderHome, account: str = "ada", login: str = "") -> None:
        self.client = httpx.Client(base_url=home.url, timeout=PATIENCE_S)
        self.key = fever_key(login or account, home.passwords[account])

    def ask(self, query: str = "", **form: Any) -> dict[str, Any]:
        """The key and marks are in the body, selectors in the query."""
        answer = self.client.post(f"/fever/?api&{query}", data={"api_key": self.key, **form})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ids(self, selector: str) -> list[int]:
        text = self.ask(selector)[selector]
        return [int(each) for each in text.split(",")] if text else []


@pytest.fixture
def phone(readers: ReaderHome) -> Iterator[Phone]:
    phone = Phone(readers)
    with phone.client:
        yield phone


def test_the_key_is_that_of_a_reader_password(readers: ReaderHome, phone: Phone) -> None:
    assert phone.ask().keys() == {"api_version", "auth", "last_refreshed_on_time"}
    assert phone.ask()["auth"] == 1
    phone.key = fever_key("ada/acme", readers.passwords["ada"]).upper()
    assert phone.ask()["auth"] == 1
    right = phone.key
    for wrong in (fever_key("bob", readers.passwords["ada"]), "", "x" * 5_000, "\0", "hgr_x"):
        phone.key = wrong
        assert phone.ask("items&feeds") == {"api_version": 3, "auth": 0}
    phone.key = right
    assert phone.client.get("/fever/?api").json()["auth"] == 0
    assert phone.client.get("/fever/").status_code == 404
    readers.catalog.reader_passwords.revoke("ada", "acme", actor="the test")
    assert phone.ask()["auth"] == 0, "without a reader password it is off"


def test_several_selectors_in_one_request(readers: ReaderHome, phone: Phone) -> None:
    readers.put("acme", "rock 1", "Rock", description="<p>x<script>y</script></p>")
    found = phone.ask("groups&feeds&favicons&items&unread_item_ids&saved_item_ids&links")
    titles = {each["title"]: each["id"] for each in found["groups"]}
    assert titles.keys() == {"Queries", "Sources", "Music › Bands"}
    feeds = {each["title"]: each for each in found["feeds"]}
    groups = {each["group_id"]: each["feed_ids"] for each in found["feeds_groups"]}
    wanted = sorted([feeds["Rock"]["id"], feeds["Loud"]["id"]])
    assert sorted(map(int, groups[titles["Queries"]].split(","))) == wanted
    assert feeds["Muse"]["url"] == "https://muse.example/rss"
    assert feeds["Muse"]["site_url"] == "https://muse.example/"
    assert found["favicons"][0]["data"].startswith("image/gif;base64,")
    assert found["links"] == []
    assert found["total_items"] == 2, "the item is in two followed feeds"
    (of_rock,) = [each for each in found["items"] if each["feed_id"] == feeds["Rock"]["id"]]
    assert of_rock["title"] == "rock 1"
    assert (of_rock["is_read"], of_rock["is_saved"]) == (0, 0)
    assert "script" not in of_rock["html"]
    assert str(of_rock["id"]) in found["unread_item_ids"].split(",")
    assert found["saved_item_ids"] == ""


def test_items_come_in_pages(
    readers: ReaderHome, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fever, "ITEMS_MAX", 3)
    for n in range(4):
        readers.put("acme", f"rock {n}", "Rock")
    everything = phone.ids("unread_item_ids")
    assert everything == sorted(everything)
    assert len(everything) == 8
    ascending: list[int] = []
    while True:
        after = ascending[-1] if ascending else 0
        part = [each["id"] for each in phone.ask(f"items&since_id={after}")["items"]]
        if not part:
            break
        assert len(part) <= 3
        ascending += part
    assert ascending == everything
    descending: list[int] = []
    while True:
        before = descending[-1] if descending else everything[-1] + 1
        part = [each["id"] for each in phone.ask(f"items&max_id={before}")["items"]]
        if not part:
            break
        descending += part
    assert descending == everything[::-1]
    readers.log.trim(1)
    assert phone.ask("items")["total_items"] == 6
    wanted = f"{everything[5]},{everything[3]},17,x"
    found = phone.ask(f"items&with_ids={wanted}")["items"]
    assert [each["id"] for each in found] == [everything[5], everything[3]]


def test_marks_are_set_and_seen_by_both_doors(readers: ReaderHome, phone: Phone) -> None:
    first = readers.put("acme", "rock 1", "Rock")
    readers.put("acme", "jazz")
    id_ = phone.ids("unread_item_ids")[0]
    for _ in range(2):
        phone.ask(mark="item", **{"as": "saved"}, id=id_)
    assert {parts_of(each)[0] for each in phone.ids("saved_item_ids")} == {first}
    with readers.session("ada", "acme") as session:
        (starred,) = session.get("/v1/reading/items", params={"starred": True}).json()["items"]
        assert starred["position"] == first
    phone.ask(mark="item", **{"as": "unsaved"}, id=id_)
    assert phone.ids("saved_item_ids") == []
    answer = phone.ask(mark="item", **{"as": "read"}, id=id_)
    assert [int(each) for each in answer["unread_item_ids"].split(",")] == phone.ids(
        "unread_item_ids"
    )
    assert {parts_of(each)[0] for each in phone.ids("unread_item_ids")} == {1}
    phone.ask(mark="item", **{"as": "unread"}, id=id_)
    assert {parts_of(each)[0] for each in phone.ids("unread_item_ids")} == {0, 1}
    for wrong in (
        {"mark": "item", "as": "x"},
        {"mark": "feed", "as": "read", "id": "x"},
        {"mark": ""},
    ):
        assert phone.ask(**wrong)["auth"] == 1
    assert len(phone.ids("unread_item_ids")) == 3


def test_feeds_and_groups_are_marked_by_arrival(readers: ReaderHome, phone: Phone) -> None:
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock")
    found = phone.ask("groups&feeds")
    feeds = {each["title"]: each["id"] for each in found["feeds"]}
    groups = {each["title"]: each["id"] for each in found["groups"]}
    read = {"as": "read"}

    def unread() -> set[int]:
        return {parts_of(each)[0] for each in phone.ids("unread_item_ids")}

    phone.ask(mark="feed", **read, id=feeds["Rock"], before=readers.arrived_s(0))
    assert unread() == {1, 2}
    phone.ask(mark="group", **read, id=groups["Queries"], before=readers.arrived_s(1))
    assert unread() == {2}
    phone.ask(mark="group", **read, id=0, before=readers.arrived_s(2) - 1)
    assert unread() == {2}
    phone.ask(mark="group", **read, id=0, before=int(phone.ask()["last_refreshed_on_time"]))
    assert unread() == set()
    readers.put("acme", "rock 3", "Rock")
    phone.ask(mark="feed", **read, id=feeds["Rock"])
    assert unread() == set()


def test_nothing_of_another_tenant(readers: ReaderHome, phone: Phone) -> None:
    own = readers.put("acme", "rock secret", "Rock")
    other = Phone(readers, "bob")
    with other.client:
        forged = ",".join(str(item_id(own, feed)) for feed in range(1, 30))
        assert other.ask(f"items&with_ids={forged}")["items"] == []
        other.ask(mark="item", **{"as": "saved"}, id=item_id(own, 1))
        other.ask(mark="group", **{"as": "read"}, id=0)
        assert other.ids("saved_item_ids") == []
        assert "secret" not in str(other.ask("items&feeds&groups"))
    assert len(phone.ids("unread_item_ids")) == 2
