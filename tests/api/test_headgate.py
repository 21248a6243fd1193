"""`hg.open`: the catalog, what is stored and a run, as one object."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.pipeline.spark_session import spark
from tests.store.small_log import NOON, SmallLog, news, ticket

import headgate as hg
from headgate.api.headgate import Headgate
from headgate.model.errors import BadTicket, InvalidValue, StateError

SCRIPT = """
register stream Tickets from json 'tickets/*.json' (id text, price int, place text);
create feed Cheap from Tickets as $t where $t[price < 50];
create feed Paris from Tickets as $t where $t[place contains 'Paris' and price < 100];
"""


@pytest.fixture
def h():
    with hg.open("sqlite://") as opened:
        opened.execute(SCRIPT)
        yield opened


@pytest.fixture
def stored(tmp_path: Path):
    store = SmallLog(tmp_path)
    catalog = store.catalog()
    store.put([ticket("1", 10, "Paris"), ticket("2", 90, "Rome")], arrived=NOON)
    store.put([news("1", "A rock concert", hours=1)], arrived=NOON + timedelta(hours=1))
    with Headgate(catalog, store.folder.path) as opened:
        yield opened, store


def test_a_script_is_executed_whole_or_not_at_all(h: Headgate) -> None:
    assert [each.name for each in h.show("feeds").entries] == ["Cheap", "Paris"]
    with pytest.raises(hg.LanguageError, match="did you mean 'price'") as caught:
        h.execute("create feed A from Tickets;\ncreate feed B from Tickets where prise < 3;")
    assert (caught.value.line, caught.value.column) == (2, 34)
    assert h.counts()["feeds"] == 2


def test_a_dry_run_changes_nothing(h: Headgate) -> None:
    (outcome,) = h.execute("create feed A from Tickets;", dry_run=True)
    assert outcome.name == "A"
    assert h.counts()["feeds"] == 2


def test_subscriptions(h: Headgate) -> None:
    ticket = h.subscribe("Cheap", file="cheap.atom", every="10 minutes", for_="2 days")
    (entry,) = h.show("subscriptions").entries
    assert (entry.feed, entry.target, entry.period_s) == ("Cheap", "cheap.atom", 600)
    expires = h.renew(ticket, "30 days")
    assert timedelta(days=29) < expires - datetime.now(UTC) <= timedelta(days=30)
    h.unsubscribe(ticket)
    assert h.show("subscriptions").total == 0
    with pytest.raises(BadTicket):
        h.renew(ticket)


@pytest.mark.parametrize("outputs", [{}, {"file": "a.rss", "mail": "a@b.org"}])
def test_a_subscription_has_one_output(h: Headgate, outputs: dict[str, str]) -> None:
    with pytest.raises(InvalidValue, match="one output"):
        h.subscribe("Cheap", **outputs)


@pytest.mark.parametrize("duration", ["soon", "3 fortnights", "'); drop feed Cheap;"])
def test_a_bad_duration_is_refused(h: Headgate, duration: str) -> None:
    with pytest.raises(InvalidValue, match="is no duration"):
        h.subscribe("Cheap", console=True, every=duration)
    assert h.counts()["feeds"] == 2


def test_pages(h: Headgate) -> None:
    first = h.show("feeds", limit=1)
    assert ([each.name for each in first.entries], first.total) == (["Cheap"], 2)
    assert [each.name for each in h.show("feeds", after=first.last).entries] == ["Paris"]
    with pytest.raises(InvalidValue, match="expected sources, feeds"):
        h.show("fields")
    with pytest.raises(InvalidValue, match="by number"):
        h.show("subscriptions", after="Cheap")


def test_explanations(h: Headgate) -> None:
    assert "price < 50" in h.explain("Cheap").text
    assert json.loads(h.explain().json()) == h.explain().data
    why = h.explain_item("Paris", {"price": 20, "place": "Rome"})
    assert "place contains 'Paris'" in str(why)
    assert "program of Tickets" in h.explain_program("Tickets").text
    with pytest.raises(InvalidValue, match="no feed reads 'Cheap'"):
        h.explain_program("Cheap")


@pytest.mark.parametrize("method", ["auto", "prefix", "vcb", "vca", "sta"])
def test_the_method_of_factorising_is_chosen_by_name(h: Headgate, method: str) -> None:
    explained = h.explain_factorized("Tickets", method=method)
    if method != "auto":
        assert explained.data["algorithm"] == method
    with pytest.raises(hg.HeadgateError, match="vcb"):
        h.explain_factorized("Tickets", method="vcbb")


def test_a_run_is_explained_with_its_methods(h: Headgate) -> None:
    text = h.explain_run().text
    assert "Tickets: 2 filters" in text
    assert "operator order adaptive (default)" in text


def test_what_is_stored(stored: tuple[Headgate, SmallLog]) -> None:
    h, _ = stored
    assert [row.id for row in h.tail("Tickets")] == ["1", "2"]
    assert [row.id for row in h.tail("Tickets", 1)] == ["2"]
    assert [row.id for row in h.tail("Rock", since=NOON)] == ["1"]
    why = h.why("1", "Cheap", source="Tickets")
    assert why.has
    assert "Cheap has it" in why.verdict()
    stats = h.stats(NOON - timedelta(days=1))
    assert stats.stored.items == 3
    found = h.backtest(
        "create feed X from Tickets as $t where $t[price > 50]", since=NOON, local=True
    )
    assert (found.matched, found.items) == (1, 2)
    assert found.ran


def test_without_a_folder_nothing_is_stored(h: Headgate, tmp_path: Path) -> None:
    h.folder = tmp_path / "none"
    with pytest.raises(StateError, match="a run makes it"):
        h.tail("Cheap")


def test_following_shows_each_item_once(stored: tuple[Headgate, SmallLog]) -> None:
    h, store = stored
    stop = threading.Event()
    seen = []
    for row in h.follow("Tickets", 10, stop=stop):
        seen.append(row.id)
        if row.id == "2":
            store.put([ticket("3", 5, "Rome")], arrived=NOON + timedelta(hours=3))
        if row.id == "3":
            stop.set()
    assert seen == ["1", "2", "3"]


@pytest.mark.integration
def test_a_run_of_ones_own_session(tmp_path: Path) -> None:
    """Statements take effect while it runs, and what it finds is followed."""
    (tmp_path / "in" / "tickets").mkdir(parents=True)
    with hg.open(str(tmp_path / "catalog.db"), folder=tmp_path / "data") as h:
        h.execute(SCRIPT)
        h.subscribe("Cheap", file="cheap.json")
        options = {"output": tmp_path / "out", "data": tmp_path / "in", "operator_order": "naive"}
        with h.run(spark=spark(), **options) as run:
            assert run.context.operators.order == "naive"
            row = {"id": "7", "price": 20, "place": "Paris"}
            (tmp_path / "in" / "tickets" / "a.json").write_text(json.dumps(row) + "\n")
            item = next(h.follow("Cheap"))
            assert (item.id, item.attributes["place"]) == ("7", "Paris")
    with pytest.raises(hg.HeadgateError, match="adaptive"):
        h.run(spark=spark(), operator_order="adaptiv").__enter__()


def test_a_webhook_has_a_secret_that_can_be_rotated(tmp_path):
    with hg.open(str(tmp_path / "c.db")) as h:
        h.execute("register feed https://a.b/c as S;")
        ticket = h.subscribe("S", webhook="https://a.org/x", for_="2 days")
        assert isinstance(ticket, str)
        assert ticket.secret.startswith("whsec_")
        assert not ticket.is_pending
        assert h.rotate_secret(ticket) != ticket.secret
        h.unsubscribe(ticket)
        mail = h.subscribe("S", mail="me@a.org")
        assert (mail.secret, mail.is_pending) == (None, True)
        assert h.confirm(mail.subscription_id)
        assert not h.confirm(mail.subscription_id)


def test_a_catalog_in_memory_has_suggestions() -> None:
    """It has one connection, so looks must not lie within each other."""
    with hg.open("sqlite://") as h:
        h.execute(
            "register stream S from post (t text); create feed A from S where t contains 'a';"
        )
        (known,) = h.suggest("create feed X from S where t contains 'a'").feeds
        assert (known.name, known.relation) == ("A", "equal")
