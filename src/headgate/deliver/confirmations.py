"""Mails that ask their readers to confirm: no digest goes to an address that has not agreed.

    pending ──► a lag row that is halted (WAITS), where the subscription begins
       │        one mail asks for everything that waits for the address
       ▼
    confirmed ► the row goes on with the first item that arrived after the confirmation

The row is what makes it exact: whichever worker holds the slot when the confirmation comes, and
however far the cursor of the slot has moved, the row says where the subscription is.

*Nobody is flooded.* An address gets at most one such mail in a day, however many subscriptions are
made and removed: a row (hash of the address, last subscription asked for, time) is written before
the mail is sent, and outlives the subscription. `Me+x@a.org` is the same address as `me@a.org`.
A worker that dies in between delays the mail by a day. The texts of a mail are ours but for the
names of feeds, of which only letters, digits and spaces are kept.

Where the operator has switched confirmation off, pending subscriptions are confirmed from their
beginning on. Mails are sent by a thread of their own: a slow server delays no round.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from queue import Empty, SimpleQueue
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import delete, select, text, update

from headgate.deliver import delivery_tables as tables
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_tables import WAITS
from headgate.deliver.errors import OutputError
from headgate.deliver.held_slots import HeldSlots, RowChanges
from headgate.deliver.output_mail import MAIL_POLICY, checked_address, send_mail
from headgate.deliver.settings import DAY_S, DeliverySettings
from headgate.deliver.subscription_table import PendingMail, SubscriptionTable, slot_of
from headgate.model.receiver_secrets import CONFIRM_WITHIN, LinkPurpose, link_token
from headgate.store.log_index import LogIndex

FEEDS_LISTED_MAX = 10
ASKED_PER_STEP = 50
"""Each is a transaction; a round does not wait for thousands of them."""
NAME_LENGTH_MAX = 60
AGAIN_S = 600.0
"""After a mail was not sent, or an address may not be asked yet."""
KEPT_S = CONFIRM_WITHIN.total_seconds() + DAY_S
_NO_WORD = re.compile(r"[^\w -]+|_+")


class ErrorReport(Protocol):
    def add_error(self, subscription: int, error: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Request:
    """A mail that asks for the confirmation of these subscriptions, which have one address."""

    key: str
    waiting: tuple[PendingMail, ...]
    mail: EmailMessage


class Confirmations:
    """`step` is for one thread."""

    def __init__(
        self,
        settings: DeliverySettings,
        database: DeliveryDatabase,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._settings, self._database, self._now = settings, database, now
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._errors: SimpleQueue[tuple[int, str]] = SimpleQueue()
        self._again_s: dict[tuple[str, str], tuple[int, float]] = {}
        """For each tenant and address the last subscription that was looked at, and when to look
        again."""
        self._sending: set[str] = set()
        """The keys of addresses that have a mail in the thread."""
        self._look_s = self._prune_s = 0.0
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """A mail that is being sent ends; no other is begun, and others may ask in its place."""
        if self._thread is None:
            return
        with suppress(Empty):
            while request := self._requests.get_nowait():
                unclaim(self._database, request.key, now_s=self._now().timestamp())
        self._requests.put(None)
        self._thread.join(self._settings.webhook.total_s)

    def step(
        self,
        table: SubscriptionTable,
        held: HeldSlots,
        index: LogIndex,
        now_s: float,
        report: ErrorReport,
        *,
        has_changed: bool,
    ) -> None:
        """`has_changed`: the catalog, or which slots are held."""
        if has_changed:
            release(table, held, index, now_s)
        while not self._errors.empty():
            report.add_error(*self._errors.get())
        if not table.pending or (not has_changed and now_s < self._look_s):
            return
        self._look_s = now_s + AGAIN_S / 10
        if now_s >= self._prune_s:
            prune_asked(self._database, now_s=now_s)
            self._prune_s = now_s + DAY_S
        valid = [each for each in table.pending.values() if each.until_us > now_s * 1e6]
        if not self._settings.confirm_mail:
            mine = [each.id for each in valid if _slot(each) in held.slots]
            if mine:
                table.catalog.confirm_unasked(mine)
        elif self._settings.mail is not None:
            self._ask(valid, table, held, now_s)

    def _ask(
        self,
        pending: Sequence[PendingMail],
        table: SubscriptionTable,
        held: HeldSlots,
        now_s: float,
    ) -> None:
        by_address: dict[tuple[str, str], list[PendingMail]] = {}
        for each in pending:
            by_address.setdefault((each.tenant, each.target), []).append(each)
        asked = 0
        for target, waiting in by_address.items():
            # One worker asks for an address: the one that delivers its first subscription.
            if _slot(waiting[0]) not in held.slots:
                continue
            newest = waiting[-1].id
            looked_at, again_s = self._again_s.get(target, (0, 0.0))
            if now_s < again_s and newest == looked_at:
                continue
            if asked == ASKED_PER_STEP:
                self._look_s = now_s  # the others in the next step
                break
            asked += 1
            self._again_s[target] = (newest, now_s + AGAIN_S)
            self._ask_address(table, waiting, now_s)
        if len(self._again_s) > len(by_address):
            self._again_s = {key: self._again_s[key] for key in by_address if key in self._again_s}

    def _ask_address(
        self, table: SubscriptionTable, waiting: list[PendingMail], now_s: float
    ) -> None:
        first = table.outputs([waiting[0].id]).get(waiting[0].id)
        if first is None:
            return  # removed meanwhile
        try:
            address = checked_address(first.target)
        except OutputError as error:
            self._errors.put((waiting[0].id, str(error)))
            return
        key = address_key(address, waiting[0].tenant)
        if key in self._sending:
            return
        if not claim(self._database, key, newest=waiting[-1].id, now_s=now_s):
            return
        mail = make_confirmation(self._settings, address, waiting, salt=first.salt, now=self._now())
        self._sending.add(key)
        self._requests.put(_Request(key, tuple(waiting), mail))
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="confirm", daemon=True)
            self._thread.start()

    # --- in the thread ----------------------------------------------------------------------------

    def _send_all(self) -> None:
        assert self._settings.mail is not None
        while (request := self._requests.get()) is not None:
            newest, now_s = request.waiting[-1].id, self._now().timestamp()
            try:
                send_mail(self._settings.mail, request.mail, before_data=lambda: None)
                settle(self._database, request.key, newest=newest)
            except OutputError as error:
                self._errors.put((request.waiting[0].id, str(error)))
                if error.lasting:
                    settle(self._database, request.key, newest=newest)
                elif not error.ambiguous:
                    unclaim(self._database, request.key, now_s=now_s)
            except Exception as error:  # of the database: the claim stands, and ends in a day
                self._errors.put((request.waiting[0].id, f"{type(error).__name__}: {error}"))
            self._sending.discard(request.key)


def _slot(pending: PendingMail) -> int:
    return slot_of(pending.id, "mail", pending.target)


def release(table: SubscriptionTable, held: HeldSlots, index: LogIndex, now_s: float) -> None:
    """Let go on what was confirmed, and end the rows of what was removed."""
    changes = RowChanges()
    for id_, lag in held.lags.items():
        if lag.halted != WAITS or id_ in table.pending:
            continue
        row = table.row_of(id_)
        if row is None:
            changes.ended_lags[id_] = lag.slot
        else:
            start = index.position_at(int(table.rows.created_us[row]))
            changes.lags[id_] = replace(
                lag, position=max(lag.position, start), not_before=now_s, halted=None
            )
    held.commit(changes)


# --- which address was asked when -----------------------------------------------------------------


def address_key(address: str, tenant: str = "local") -> str:
    """One mail asks for the subscriptions of one tenant: who confirms those of one has not
    confirmed those of another.

    >>> address_key("Me+news@A.org") == address_key("me@a.org")
    True
    """
    name, _, domain = address.lower().rpartition("@")
    key = f"{name.partition('+')[0]}@{domain}"
    if tenant != "local":
        key = f"{tenant} {key}"
    return hashlib.sha256(key.encode()).hexdigest()


def claim(database: DeliveryDatabase, key: str, *, newest: int, now_s: float) -> bool:
    """Whether the address may be asked now; then nobody else may within a day."""
    columns = tables.confirmations.c
    with database.changing() as connection:
        claimed = connection.execute(
            update(tables.confirmations)
            .where(
                columns.address == key,
                columns.asked_at <= now_s - DAY_S,
                columns.last_id < newest,
            )
            .values(asked_at=now_s)
        ).rowcount
        if claimed:
            return True
        inserted = connection.execute(
            text(
                f"INSERT INTO {tables.confirmations.name} (address, last_id, asked_at) "
                "VALUES (:address, 0, :now_s) ON CONFLICT (address) DO NOTHING"
            ),
            {"address": key, "now_s": now_s},
        ).rowcount
        return inserted > 0


def ask_again(database: DeliveryDatabase, key: str, *, now_s: float) -> float:
    """Let an address be asked once more for everything that waits for it, if the last mail is a day
    old; how many seconds are left until then. The worker asks within AGAIN_S."""
    columns = tables.confirmations.c
    with database.changing() as connection:
        asked_at = connection.scalar(select(columns.asked_at).where(columns.address == key))
        if asked_at is None:
            return 0.0  # it has not been asked yet, and will be
        left_s: float = asked_at + DAY_S - now_s
        if left_s <= 0:
            connection.execute(
                update(tables.confirmations).where(columns.address == key).values(last_id=0)
            )
        return max(left_s, 0.0)


def prune_asked(database: DeliveryDatabase, *, now_s: float) -> None:
    """Forget addresses whose requests have all expired."""
    old = tables.confirmations.c.asked_at < now_s - KEPT_S
    with database.changing() as connection:
        connection.execute(delete(tables.confirmations).where(old))


def settle(database: DeliveryDatabase, key: str, *, newest: int) -> None:
    """The address was asked for everything up to this subscription."""
    columns = tables.confirmations.c
    with database.changing() as connection:
        connection.execute(
            update(tables.confirmations).where(columns.address == key).values(last_id=newest)
        )


def unclaim(database: DeliveryDatabase, key: str, *, now_s: float) -> None:
    """Nothing was sent: the address may be asked again soon."""
    columns = tables.confirmations.c
    with database.changing() as connection:
        connection.execute(
            update(tables.confirmations)
            .where(columns.address == key)
            .values(asked_at=now_s - DAY_S + AGAIN_S)
        )


# --- the mail -------------------------------------------------------------------------------------


def make_confirmation(
    settings: DeliverySettings,
    address: str,
    waiting: Sequence[PendingMail],
    *,
    salt: str,
    now: datetime,
) -> EmailMessage:
    """`salt` is that of the first subscription."""
    assert settings.mail is not None
    sender = settings.mail.sender
    domain = sender.rpartition("@")[2] or "localhost"
    names = list(dict.fromkeys(plain_name(each.feed) for each in waiting))
    shown = [f"  {name}" for name in names[:FEEDS_LISTED_MAX]]
    if len(names) > FEEDS_LISTED_MAX:
        shown.append(f"  and {len(names) - FEEDS_LISTED_MAX:,} more")
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    mail = EmailMessage(policy=MAIL_POLICY)
    mail["From"] = Address("Headgate", addr_spec=sender)
    mail["To"] = address
    mail["Subject"] = f"Please confirm: {names[0]}{more}"
    mail["Date"] = now
    mail["Message-ID"] = f"<confirm-{waiting[0].id}-{waiting[-1].id}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    host = urlsplit(settings.public_url).netloc or domain
    mail.set_content(
        f"The owner of the Headgate installation at {host} asked to send new items of\n\n"
        + "\n".join(shown)
        + "\n\nto this address. "
        + _how(settings, waiting, salt)
        + "\n\nWithout a confirmation nothing else is sent, and the request ends after seven "
        "days.\nIf you do not want these mails, do nothing.\n"
    )
    return mail


def _how(settings: DeliverySettings, waiting: Sequence[PendingMail], salt: str) -> str:
    if settings.public_url and settings.webhook.key:
        first, last = waiting[0].id, waiting[-1].id
        token = link_token(settings.webhook.key, LinkPurpose.CONFIRM, first, salt=salt, last=last)
        link = f"{settings.public_url}/confirm/{token}"
        return f"To receive them, open this page and confirm:\n\n  {link}"
    numbers = ", ".join(str(each.id) for each in waiting[:FEEDS_LISTED_MAX])
    return f"To receive them, ask that owner to\nconfirm subscription {numbers}."


def plain_name(feed: str) -> str:
    """The name of a feed without anything that a mail program makes a link of.

    >>> plain_name("Win at https://evil.example/x!")
    'Win at https evil example x'
    """
    return " ".join(_NO_WORD.sub(" ", feed).split())[:NAME_LENGTH_MAX] or "a feed"
