"""What the operator decides about deliveries, in one place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from headgate.acquire.backoff import Backoff
from headgate.deliver.errors import OutputError
from headgate.deliver.output_kafka import KafkaSettings
from headgate.deliver.output_mail import MailSettings
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.transform import TransformLimits
from headgate.model.errors import printable

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    output_folder: Path
    stylesheet_folder: Path
    mail: MailSettings | None = None
    webhook: WebhookSettings = field(default_factory=WebhookSettings)
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    transform: TransformLimits = field(default_factory=TransformLimits)
    backoff: Backoff = field(default_factory=Backoff)
    public_url: str = ""
    """By which URL the world reaches `headgate serve`, for links in mails; empty: no links."""
    confirm_mail: bool = True
    """Whether readers of mails are asked before the first digest."""
    console: TextIO = field(default_factory=lambda: sys.stdout)

    items_in_file: int = 100
    items_per_run: int = 200
    """A run with more goes on at once with the next part: a digest of 10,000 items helps nobody."""
    subscriptions_per_run: int = 10_000
    attempts_max: int = 10
    """Then a mail or call is a dead letter. Files are tried for ever: it is the same file."""
    retries_max: int = 1_000
    """A receiver that has refused so many messages, which wait to be tried again, counts as down:
    no further ones are tried until it takes some."""

    workers: int = 8
    workers_per_target: int = 2
    run_budget_s: float = 30.0
    """After this long no further message is begun for a target, until the next run."""

    round_budget_s: float = 2.0
    """How long the slots of a round wait for messages that are being sent. A subscription that
    takes longer gets a row of its own, and the cursor moves on."""
    lease_s: float = 20.0
    """After so long without a sign of life, the slots of a worker are taken by others."""

    sent_kept_s: float = 30 * DAY_S
    """As long as a batch may be replayed, or its matches would be delivered again."""
    dead_kept_s: float = 90 * DAY_S

    def __post_init__(self) -> None:
        assert 1 <= self.workers_per_target <= self.workers
        assert min(self.items_in_file, self.items_per_run, self.attempts_max) >= 1


def asks_for_confirmation(environment: Mapping[str, str]) -> bool:
    """Whether readers of mails are asked: HEADGATE_MAIL_CONFIRM is on or off."""
    word = environment.get("HEADGATE_MAIL_CONFIRM", "") or "on"
    if word not in ("on", "off"):
        raise OutputError(f"HEADGATE_MAIL_CONFIRM is on or off, not '{printable(word)[:20]}'")
    return word == "on"


def checked_public_url(text: str) -> str:
    """
    >>> checked_public_url("https://news.example/headgate/")
    'https://news.example/headgate'
    >>> checked_public_url("")
    ''
    """
    try:
        url = urlsplit(text)
        is_plain = not (url.query or url.fragment or url.username or url.password)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and is_plain
        usable = usable and text.isascii() and text.isprintable() and " " not in text
    except ValueError:
        usable = False
    if text and not usable:
        raise OutputError(
            f"'{printable(text)[:100]}' is no URL by which this installation can be reached: "
            "write https://host or https://host/path"
        )
    return text.rstrip("/")
