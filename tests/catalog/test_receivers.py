"""Secrets of webhooks, and mails: pending until confirmed, ended by a link."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from sqlalchemy import select
from tests.catalog.conftest import ManualClock

from headgate.catalog import tables
from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.language.parse import parse_script
from headgate.language.statements import Renew, Unsubscribe
from headgate.model.errors import BadTicket, BadToken, CatalogError, UnknownName
from headgate.model.receiver_secrets import CONFIRM_WITHIN, LinkPurpose, link_token, webhook_secret

SOURCE = "register feed https://example.org/news as News;"
HOOK = "subscribe to News output webhook 'https://a.org/x' for 30 days;"


def mail(address: str = "me@a.org") -> str:
    return f"subscribe to News output mail '{address}' for 30 days;"


def apply(catalog: Catalog, script: str, **options: bool) -> Outcome:
    return catalog.apply(parse_script(script), **options)[-1]


def token_of(catalog: Catalog, purpose: LinkPurpose, id_: int, last: int | None = None) -> str:
    with catalog._database.reading() as connection:
        salt = connection.scalar(select(tables.subscriptions.c.ticket_hash).filter_by(id=id_))
    return link_token(catalog.installation_key(), purpose, id_, salt=salt, last=last)


def confirm_token(catalog: Catalog, id_: int, last: int | None = None) -> str:
    return token_of(catalog, LinkPurpose.CONFIRM, id_, last or id_)


def pending(catalog: Catalog) -> list[int]:
    return [each.id for each in catalog.list_subscriptions() if each.confirmed_at is None]


# --- secrets --------------------------------------------------------------------------------------


def test_a_webhook_has_a_secret_that_is_stored_nowhere(catalog: Catalog):
    outcome = apply(catalog, SOURCE + HOOK)
    assert outcome.secret.startswith("whsec_")
    assert len(base64.b64decode(outcome.secret.removeprefix("whsec_"))) == 32
    with catalog._database.reading() as connection:
        (row,) = connection.execute(select(tables.subscriptions)).all()
    assert outcome.secret not in repr(row) + repr(outcome)
    made = webhook_secret(
        catalog.installation_key(), 1, number=row.secret_number, salt=row.ticket_hash
    )
    assert made == outcome.secret
    assert apply(catalog, HOOK).secret != outcome.secret
    assert apply(catalog, mail()).secret is None


def test_a_dry_run_issues_no_secret_and_makes_no_key(catalog: Catalog):
    assert apply(catalog, SOURCE + HOOK, dry_run=True).secret is None
    with catalog._database.reading() as connection:
        assert connection.scalar(select(tables.state.c.key_fingerprint)) is None


def test_a_secret_is_rotated_with_the_ticket(catalog: Catalog, clock: ManualClock):
    outcome = apply(catalog, SOURCE + HOOK)
    clock.advance(hours=1)
    version = catalog.version()
    rotated = catalog.rotate_secret(outcome.ticket)
    assert rotated.secret != outcome.secret
    assert rotated.secret not in repr(rotated)
    assert catalog.version() == version + 1
    (output,) = catalog.outputs_of_ids([1]).values()
    assert (output.secret_number, output.rotated_at) == (2, clock.now)
    assert catalog.subscription_states([1])[1].secret_number == 2
    assert catalog.rotate_secret(outcome.ticket).secret not in (rotated.secret, outcome.secret)


def test_only_the_ticket_of_a_webhook_rotates(catalog: Catalog):
    hook, other = apply(catalog, SOURCE + HOOK), apply(catalog, mail())
    with pytest.raises(BadTicket):
        catalog.rotate_secret(hook.ticket[:-1] + ("A" if hook.ticket[-1] != "A" else "B"))
    with pytest.raises(CatalogError, match="output mail: only webhooks have a secret"):
        catalog.rotate_secret(other.ticket)
    catalog.apply([Unsubscribe(hook.ticket)])
    with pytest.raises(BadTicket):
        catalog.rotate_secret(hook.ticket)


# --- confirmation ---------------------------------------------------------------------------------


def test_a_mail_is_pending_and_others_are_not(catalog: Catalog, clock: ManualClock):
    assert apply(catalog, SOURCE + mail()).is_pending
    assert not apply(catalog, HOOK).is_pending
    assert not apply(catalog, "subscribe to News output file 'a.atom';").is_pending
    assert pending(catalog) == [1]
    assert catalog.count_pending() == 1
    clock.advance(hours=1)
    assert catalog.confirm(1).ids == (1,)
    assert catalog.get_subscription(1).confirmed_at == clock.now
    version = catalog.version()
    assert catalog.confirm(1).ids == ()
    assert (catalog.version(), catalog.count_pending()) == (version, 0)
    with pytest.raises(UnknownName):
        catalog.confirm(99)


def test_an_address_that_has_confirmed_is_not_asked_again_while_it_is_subscribed(catalog: Catalog):
    outcomes = catalog.apply(parse_script(SOURCE + mail() * 2 + mail("you@a.org")))
    assert [each.is_pending for each in outcomes[1:]] == [True, True, True]
    catalog.confirm(1)
    known = apply(catalog, mail())
    assert not known.is_pending
    assert pending(catalog) == [2, 3]
    for ticket in (outcomes[1].ticket, known.ticket):
        catalog.apply([Unsubscribe(ticket)])
    assert apply(catalog, mail()).is_pending


def test_without_a_confirmation_it_expires(catalog: Catalog, clock: ManualClock):
    outcome = apply(catalog, SOURCE + mail())
    apply(catalog, mail("you@a.org"))
    catalog.confirm(2)
    token = confirm_token(catalog, 1)
    clock.now += CONFIRM_WITHIN - timedelta(seconds=1)
    assert len(catalog.list_subscriptions()) == 2
    clock.advance(seconds=1)
    assert [each.id for each in catalog.list_subscriptions()] == [2]
    assert catalog.demand() == {"News": 1}
    assert catalog.subscribers(["News"]) == {"News": [(2, 2)]}
    for use in (lambda: catalog.confirm_link(token), lambda: catalog.confirm(1)):
        with pytest.raises((BadToken, UnknownName)):
            use()
    with pytest.raises(BadTicket):
        catalog.apply([Renew(outcome.ticket)])
    assert catalog.expire() == 1


def test_what_nobody_is_asked_about_is_confirmed_from_its_beginning(catalog, clock):
    apply(catalog, SOURCE + mail())
    made_at = clock.now
    clock.advance(hours=1)
    catalog.confirm_unasked([1, 7])
    assert catalog.get_subscription(1).confirmed_at == made_at
    version = catalog.version()
    catalog.confirm_unasked([1])
    assert catalog.version() == version


# --- links ----------------------------------------------------------------------------------------


def test_a_link_confirms_what_its_mail_lists(catalog: Catalog):
    catalog.apply(parse_script(SOURCE + mail() + mail("you@a.org") + mail() + mail()))
    token = confirm_token(catalog, 1, last=3)
    assert catalog.feeds_of_link(LinkPurpose.CONFIRM, token) == ["News"]
    assert pending(catalog) == [1, 2, 3, 4]
    assert catalog.confirm_link(token).ids == (1, 3)
    assert pending(catalog) == [2, 4]
    version = catalog.version()
    assert catalog.confirm_link(token).ids == ()
    assert catalog.version() == version


def test_a_link_ends_one_subscription(catalog: Catalog, clock: ManualClock):
    catalog.apply(parse_script(SOURCE + mail() + mail()))
    token = token_of(catalog, LinkPurpose.UNSUBSCRIBE, 1)
    clock.advance(days=31)  # one that has expired can be ended, too
    assert catalog.feeds_of_link(LinkPurpose.UNSUBSCRIBE, token) == ["News"]
    assert catalog.unsubscribe_link(token) == "News"
    with pytest.raises(BadToken):
        catalog.unsubscribe_link(token)
    assert list(catalog.outputs_of_ids([1, 2])) == [2]


def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(catalog: Catalog):
    catalog.apply(parse_script(SOURCE + mail() + mail("you@a.org") + HOOK))
    confirm = confirm_token(catalog, 1)
    unsubscribe = token_of(catalog, LinkPurpose.UNSUBSCRIBE, 2)
    wrong = {
        LinkPurpose.CONFIRM: [
            unsubscribe,
            "2-2-" + confirm.split("-", 2)[2],
            "1-2-" + confirm.split("-", 2)[2],
            token_of(catalog, LinkPurpose.CONFIRM, 3, 3),
        ],
        LinkPurpose.UNSUBSCRIBE: [
            confirm,
            "1-" + unsubscribe.split("-", 1)[1],
            token_of(catalog, LinkPurpose.UNSUBSCRIBE, 3),
        ],
    }
    uses = {
        LinkPurpose.CONFIRM: catalog.confirm_link,
        LinkPurpose.UNSUBSCRIBE: catalog.unsubscribe_link,
    }
    version, messages = catalog.version(), set()
    for purpose, tokens in wrong.items():
        for token in [*tokens, "", "x", "9-" + "a" * 43, "9" * 1_000_000]:
            for use in (uses[purpose], lambda t, p=purpose: catalog.feeds_of_link(p, t)):
                with pytest.raises(BadToken) as caught:
                    use(token)
                messages.add(str(caught.value))
    assert len(messages) == 1
    assert catalog.version() == version
