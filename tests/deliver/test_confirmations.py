"""Mails that wait for their readers: nothing before the confirmation, everything after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.catalog.test_receivers import confirm_token, token_of
from tests.deliver.mail_world import PUBLIC_URL, MailWorld, mails, token_in
from tests.deliver.servers import MailServer, mail_server
from tests.deliver.things import NOW, settings

from headgate.catalog.principals import Principal, Scope
from headgate.deliver.confirmations import ASKED_PER_STEP, FEEDS_LISTED_MAX, make_confirmation
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import count_deliveries
from headgate.deliver.delivery_tables import WAITS
from headgate.deliver.errors import DeliveryError
from headgate.deliver.output_mail import MailSettings
from headgate.deliver.records import PushSubscription
from headgate.deliver.replay import replay
from headgate.deliver.settings import asks_for_confirmation, checked_public_url
from headgate.deliver.subscription_table import PendingMail
from headgate.language.parse import parse_script
from headgate.model.receiver_secrets import CONFIRM_WITHIN, LinkPurpose


@pytest.fixture
def server() -> Iterator[tuple[MailServer, MailSettings]]:
    with mail_server() as found:
        yield found


@pytest.fixture
def smtp(server: tuple[MailServer, MailSettings]) -> MailServer:
    return server[0]


@pytest.fixture
def world(tmp_path: Path, server: tuple[MailServer, MailSettings]) -> Iterator[MailWorld]:
    world = MailWorld(tmp_path, mail=server[1])
    yield world
    world.close()


def titles(smtp: MailServer) -> list[str]:
    """What the mails are about, in the order in which they were sent."""
    return [each["Subject"] for each in mails(smtp)]


def test_no_digest_precedes_the_confirmation(world: MailWorld, smtp: MailServer):
    world.subscribe()
    world.publish("before")
    world.until(lambda: len(smtp.taken) == 1)
    world.publish("between")
    world.step()
    (asked,) = mails(smtp)
    assert (asked["To"], asked["Subject"]) == ("me@a.org", "Please confirm: Rock")
    assert "installation at news.example" in asked.get_content()
    world.catalog.confirm_link(token_in(asked, "confirm"))
    world.log.pass_time(1)
    world.publish("after")
    world.until(lambda: len(smtp.taken) == 2)
    assert titles(smtp)[1:] == ["Rock: title after"]
    world.step()
    assert len(smtp.taken) == 2
    digest = mails(smtp)[1]
    token = token_in(digest, "unsubscribe")
    assert digest["List-Unsubscribe"] == f"<{PUBLIC_URL}/unsubscribe/{token}>"
    assert digest["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    world.catalog.unsubscribe_link(token)
    world.publish("too late")
    world.step()
    assert len(smtp.taken) == 2


def test_what_arrives_between_the_confirmation_and_a_new_worker_is_not_lost(world, smtp):
    """The cursor of the slot has passed the item before any worker knew of the confirmation."""
    world.subscribe()
    world.until(lambda: len(smtp.taken) == 1)
    version = world.catalog.version()
    world.worker.table.catalog._catalog.version = lambda: version  # it does not see what follows
    world.catalog.confirm(1)
    world.log.pass_time(1)
    world.publish("n1")
    world.step()
    assert {each.cursor for each in world.worker.held.slots.values()} == {1}
    del world.catalog.version
    world.restart()
    world.until(lambda: len(smtp.taken) == 2)
    assert titles(smtp)[1] == "Rock: title n1"


def test_one_mail_asks_for_everything_that_waits(world: MailWorld, smtp: MailServer):
    world.apply("create feed `Win at https://evil.example/` from S;")
    world.subscribe()
    world.subscribe(feed="`Win at https://evil.example/`")
    world.until(lambda: len(smtp.taken) == 1)
    (asked,) = mails(smtp)
    assert asked["Subject"] == "Please confirm: Rock and 1 more"
    assert "evil." not in asked.get_content()
    world.catalog.confirm_link(token_in(asked, "confirm"))
    assert world.catalog.count_pending() == 0


def test_each_tenant_asks_for_its_own(world: MailWorld, smtp: MailServer):
    """Who confirms the subscriptions of one tenant has not confirmed those of another."""
    world.catalog.add_tenant("acme")
    acme = world.catalog.acting_as(Principal("acme", "acme's", frozenset(Scope)))
    script = "register feed https://a.b/c as S; create feed Spam from S;"
    acme.apply(parse_script(script + "subscribe to Spam output mail 'me@a.org' for 300 days;"))
    world.log.pass_time(1)
    world.subscribe()
    world.until(lambda: len(smtp.taken) == 2)
    asked = {str(mail["Subject"]): mail for mail in mails(smtp)}
    assert len(asked) == 2
    (spam,) = [subject for subject in asked if "Spam" in subject]
    world.catalog.confirm_link(token_in(asked[spam], "confirm"))
    pending = [each.confirmed_at is None for each in world.catalog.list_subscriptions()]
    assert pending == [False, True]


def test_an_address_is_asked_once_a_day_whatever_is_done(world: MailWorld, smtp: MailServer):
    ticket = world.subscribe().ticket
    world.until(lambda: len(smtp.taken) == 1)
    for address in ("me@a.org", "ME@a.org", "me+x@a.org"):
        world.apply(f"unsubscribe '{ticket}';")
        ticket = world.subscribe(address).ticket
        world.log.pass_time(3600)
        world.step()
        world.restart()
        world.step()
    assert len(smtp.taken) == 1
    world.pass_days(1)
    world.until(lambda: len(smtp.taken) == 2)
    world.pass_days(3)
    world.step()
    world.restart()
    assert len(smtp.taken) == 2, "one mail for a subscription"


def test_a_mail_that_was_not_taken_is_sent_later(world: MailWorld, smtp: MailServer):
    smtp.answers["DATA"] = "451 later"
    world.subscribe()
    world.until(lambda: len(smtp.seen) == 1)
    smtp.answers.clear()
    world.restart()
    world.log.pass_time(601)
    world.until(lambda: len(smtp.taken) == 1)


def test_many_addresses_are_asked_step_by_step_and_none_is_forgotten(world, smtp):
    count = 2 * ASKED_PER_STEP + 5
    world.apply(
        "".join(f"subscribe to Rock output mail 'a{n}@a.org' for 9 days;" for n in range(count))
    )
    world.step()
    world.restart()  # what was not sent yet is left to the next worker
    world.log.pass_time(601)
    world.until(lambda: len(smtp.taken) == count)
    assert len({each["To"] for each in mails(smtp)}) == count


def test_where_nobody_is_asked_everything_is_delivered(tmp_path: Path, server):
    smtp, mail = server
    world = MailWorld(tmp_path, mail=mail, confirm_mail=False)
    world.subscribe()
    world.publish("n1")
    world.until(lambda: len(smtp.taken) == 1)
    assert titles(smtp) == ["Rock: title n1"]
    assert world.catalog.count_pending() == 0
    world.close()


@pytest.mark.parametrize("confirm_mail", [True, False])
def test_nobody_is_asked_about_what_has_expired(tmp_path: Path, server, confirm_mail: bool):
    smtp, mail = server
    world = MailWorld(tmp_path, mail=mail, confirm_mail=confirm_mail)
    world.subscribe("old@a.org")
    world.pass_days(8)
    world.subscribe()
    world.publish("n1")
    world.until(lambda: len(smtp.taken) == 1)
    world.step()
    world.restart()
    assert [each["To"] for each in mails(smtp)] == ["me@a.org"]
    world.close()


def test_a_database_of_before_gets_the_table(world: MailWorld, smtp: MailServer):
    with world.database.changing() as connection:
        connection.exec_driver_sql("DROP TABLE delivery_confirmations")
    world.database.close()
    world.database = DeliveryDatabase(str(world.folder / "deliver.db"))
    world.subscribe()
    world.until(lambda: len(smtp.taken) == 1)


def test_those_that_wait_are_neither_behind_nor_halted(world: MailWorld):
    world.subscribe()
    world.publish("n1")
    world.step()
    counts = count_deliveries(world.database)
    assert (counts.lagging, counts.halted) == (0, 0)
    replay(world.database, 1, now_s=0.0)
    assert [each.halted for each in world.database.lags_of(range(256))] == [WAITS]
    world.catalog.unsubscribe_link(token_of(world.catalog, LinkPurpose.UNSUBSCRIBE, 1))
    world.step()
    assert world.database.lags_of(range(256)) == []


def test_without_a_public_url_the_mail_names_the_number(tmp_path: Path):
    plain = settings(tmp_path, mail=MailSettings("127.0.0.1", sender="news@a.org"))
    waiting = [PendingMail(n, f"F{n}", "me@a.org", 0, 1) for n in range(5, 20)]
    mail = make_confirmation(plain, "me@a.org", waiting, salt="s", now=NOW)
    text = mail.get_content()
    assert "http" not in text
    assert "confirm subscription 5, 6," in text
    assert f"and {15 - FEEDS_LISTED_MAX} more" in text
    assert "installation at a.org" in text


def test_settings_of_the_environment():
    assert asks_for_confirmation({})
    assert not asks_for_confirmation({"HEADGATE_MAIL_CONFIRM": "off"})
    with pytest.raises(DeliveryError, match="on or off, not 'no'"):
        asks_for_confirmation({"HEADGATE_MAIL_CONFIRM": "no"})
    for url in ("ftp://a", "https://", "https://me@a.org", "https://a.org/?x", "x", "https://a b"):
        with pytest.raises(DeliveryError, match="is no URL"):
            checked_public_url(url)


# --- histories ------------------------------------------------------------------------------------


class MailHistories(RuleBasedStateMachine):
    """The model: each subscription with its address, when it was confirmed and what it has got."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.got: dict[int, list[str]] = {}
        self.world = MailWorld(Path(self._folder.name), send=self._take)
        self.waiting: dict[int, tuple[str, object]] = {}
        self.confirmed: dict[int, str] = {}
        self.expected: dict[int, list[str]] = {}
        self.published = 0

    def teardown(self) -> None:
        self.deliver()
        self.world.close()
        self._folder.cleanup()

    def _take(self, subscription: PushSubscription, message: object) -> None:
        names = [part.item.id for part in reversed(message.parts)]  # type: ignore[attr-defined]
        self.got.setdefault(subscription.id, []).extend(sorted(names, key=lambda n: int(n[1:])))

    @rule(address=st.sampled_from(["me@a.org", "you@a.org"]))
    def subscribe(self, address: str) -> None:
        made_at = self.world.log.now
        outcome = self.world.subscribe(address)
        assert outcome.is_pending is (address not in self.confirmed.values())
        assert outcome.subscription_id is not None
        self.expected[outcome.subscription_id] = []
        if outcome.is_pending:
            self.waiting[outcome.subscription_id] = (address, made_at)
        else:
            self.confirmed[outcome.subscription_id] = address

    @rule(choice=st.integers(0, 20))
    def confirm(self, choice: int) -> None:
        if self.waiting:
            id_ = sorted(self.waiting)[choice % len(self.waiting)]
            self.world.catalog.confirm_link(confirm_token(self.world.catalog, id_))
            self.world.log.pass_time(1)
            self.confirmed[id_] = self.waiting.pop(id_)[0]

    @rule(choice=st.integers(0, 20))
    def unsubscribe(self, choice: int) -> None:
        known = sorted([*self.waiting, *self.confirmed])
        if known:
            id_ = known[choice % len(known)]
            token = token_of(self.world.catalog, LinkPurpose.UNSUBSCRIBE, id_)
            self.world.catalog.unsubscribe_link(token)
            self.waiting.pop(id_, None)
            self.confirmed.pop(id_, None)
            # What it had not got yet it never gets.
            self.expected[id_] = list(self.got.get(id_, []))

    @rule()
    def publish(self) -> None:
        self.published += 1
        self.world.publish(f"n{self.published}")
        for id_ in self.confirmed:
            self.expected[id_].append(f"n{self.published}")

    @rule(days=st.sampled_from([0.1, 1, 4]))
    def pass_days(self, days: float) -> None:
        self.world.pass_days(days)
        now = self.world.log.now
        for id_, (_, made_at) in list(self.waiting.items()):
            if now - made_at >= CONFIRM_WITHIN:  # type: ignore[operator]
                del self.waiting[id_]

    @rule()
    def deliver(self) -> None:
        wanted = {id_: items for id_, items in self.expected.items() if items}
        self.world.until(lambda: all(self.got.get(i) == items for i, items in wanted.items()))
        self.world.step()
        assert self.got == wanted

    @rule()
    def restart(self) -> None:
        self.deliver()
        self.world.restart()


def test_any_history_of_mails():
    run_state_machine_as_test(
        MailHistories, settings=hypothesis_settings(max_examples=25, stateful_step_count=20)
    )


def test_a_pending_subscription_of_before_the_last_day_is_kept(world: MailWorld, smtp: MailServer):
    world.subscribe()
    world.until(lambda: len(smtp.taken) == 1)
    world.log.pass_time((CONFIRM_WITHIN - timedelta(minutes=1)).total_seconds())
    world.publish("n1")
    world.step()
    world.catalog.confirm_link(token_in(mails(smtp)[0], "confirm"))
    world.log.pass_time(1)
    world.publish("n2")
    world.until(lambda: len(smtp.taken) == 2)
    assert titles(smtp)[1] == "Rock: title n2"
