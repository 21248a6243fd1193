"""A catalog in a file, a log and workers on them, for tests of mails that readers confirm."""

from __future__ import annotations

import email
import re
import time
from collections.abc import Callable
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from tests.deliver.log_world import LogWorld, news
from tests.deliver.servers import MailServer
from tests.deliver.things import settings

from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.transaction import Outcome
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.message_jobs import SendMessage
from headgate.deliver.output_webhook import WebhookSettings
from headgate.language.parse import parse_script
from headgate.model.addresses import LOOPBACK

PATIENCE_S = 60.0
PUBLIC_URL = "https://news.example/h"


class MailWorld:
    """Time passes when a test says so."""

    def __init__(self, folder: Path, *, send: SendMessage | None = None, **changes: object) -> None:
        self.folder, self.send = folder, send
        self.log = LogWorld(folder)
        self.catalog = Catalog.open(str(folder / "catalog.db"), clock=lambda: self.log.now)
        self.catalog.apply(
            parse_script("register feed https://a.b/c as S; create feed Rock from S;")
        )
        hooks = WebhookSettings(key=self.catalog.installation_key(), allowed=LOOPBACK)
        plain: dict[str, object] = {"webhook": hooks, "public_url": PUBLIC_URL}
        self.settings = settings(folder, **(plain | changes))
        self.database = DeliveryDatabase(str(folder / "deliver.db"))
        self.worker: DeliveryWorker | None = None

    def subscribe(self, address: str = "me@a.org", feed: str = "Rock") -> Outcome:
        return self.apply(f"subscribe to {feed} output mail '{address}' for 300 days;")

    def apply(self, script: str) -> Outcome:
        outcome = self.catalog.apply(parse_script(script))[-1]
        self.log.pass_time(1)
        return outcome

    def publish(self, name: str) -> None:
        self.log.publish(news(name, 2))
        self.log.pass_time(1)

    def step(self) -> None:
        if self.worker is None:
            self.worker = DeliveryWorker(
                self.log.storage,
                DeliveryCatalog(self.catalog),
                self.database,
                self.settings,
                now=lambda: self.log.now,
                send=self.send,
            )
        self.worker.step(self.log.now)

    def until(self, is_true: Callable[[], bool]) -> None:
        """Step until it is true."""
        patience = time.monotonic() + PATIENCE_S
        while not is_true():
            assert time.monotonic() < patience, "it does not become true"
            self.step()

    def pass_days(self, days: float) -> None:
        self.log.pass_time(timedelta(days=days).total_seconds())

    def restart(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def close(self) -> None:
        self.restart()
        self.database.close()
        self.catalog.close()


def mails(server: MailServer) -> list[EmailMessage]:
    read = [email.message_from_bytes(each.content, policy=default) for each in server.taken]
    assert all(isinstance(each, EmailMessage) for each in read)
    return read  # type: ignore[return-value]


def token_in(mail: EmailMessage, purpose: str) -> str:
    """The token of the link in the text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    found = re.search(rf"{re.escape(PUBLIC_URL)}/{purpose}/(\S+)", body.get_content())
    assert found is not None
    return found[1]
