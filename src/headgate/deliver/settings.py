"""What the operator decides about deliveries, in one place."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from headgate.acquire.backoff import Backoff
from headgate.deliver.output_kafka import KafkaSettings
from headgate.deliver.output_mail import MailSettings
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.transform import TransformLimits

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
    console: TextIO = field(default_factory=lambda: sys.stdout)

    items_in_file: int = 100
    items_per_run: int = 200
    """A run with more goes on at once with the next part: a digest of 10,000 items helps nobody."""
    subscriptions_per_run: int = 10_000
    attempts_max: int = 10
    """Then a mail or call is a dead letter. Files are tried for ever: it is the same file."""

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
