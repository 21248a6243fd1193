"""What a worker process is told: plain values, as JSON, from the run that starts it.

    run ── DeliveryConfig.to_json() ──► stdin of `python -m headgate deliver --config -`

The child inherits stdout, so lines of `output console` appear where the run was started, and ends
when its stdin is closed: with the run, however that ends. Keys and passwords are not on the command
line, where other users could read them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headgate.acquire.backoff import Backoff
from headgate.deliver.output_kafka import KafkaSettings
from headgate.deliver.output_mail import MailSettings, Tls
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.transform import TransformLimits
from headgate.model.addresses import AllowedNetworks


@dataclass(frozen=True, slots=True)
class DeliveryConfig:
    """A worker's settings as plain values."""

    catalog: str
    folder: str
    """The folder of the run: the log is in it, or where it says."""
    database: str
    """The URL or path of the delivery database."""
    output_folder: str
    stylesheet_folder: str
    mail: dict[str, object] | None = None
    webhook_key: str = field(default="", repr=False)
    allowed: tuple[str, ...] = ()
    """Networks that may be called although they are not public."""
    webhook_step_s: float = 10.0
    webhook_total_s: float = 20.0
    kafka_brokers: str = ""
    kafka_options: dict[str, str] = field(default_factory=dict, repr=False)
    transform: dict[str, float] = field(default_factory=dict)
    backoff_first_s: float = 30.0
    backoff_max_s: float = 6 * 3_600.0
    public_url: str = ""
    confirm_mail: bool = True
    log: str = ""
    """The address of the log, where the folder does not say it or is not here."""
    limits: dict[str, float] = field(default_factory=dict)
    """Further settings of `DeliverySettings`, by name."""

    @classmethod
    def of(
        cls, settings: DeliverySettings, *, catalog: str, folder: Path, database: str
    ) -> DeliveryConfig:
        """The settings of a run. The console is that of the process, and the resolver is the
        system's."""
        mail = None if settings.mail is None else asdict(settings.mail)
        return cls(
            catalog=catalog,
            folder=str(folder),
            database=database,
            output_folder=str(settings.output_folder),
            stylesheet_folder=str(settings.stylesheet_folder),
            mail=mail,
            webhook_key=settings.webhook.key.decode("latin-1"),
            allowed=tuple(str(each) for each in settings.webhook.allowed.networks),
            webhook_step_s=settings.webhook.step_s,
            webhook_total_s=settings.webhook.total_s,
            kafka_brokers=settings.kafka.brokers,
            kafka_options=dict(settings.kafka.options),
            transform=asdict(settings.transform),
            public_url=settings.public_url,
            confirm_mail=settings.confirm_mail,
            backoff_first_s=settings.backoff.first_s,
            backoff_max_s=settings.backoff.max_s,
            limits={name: getattr(settings, name) for name in _LIMITS},
        )

    def settings(self) -> DeliverySettings:
        mail = None
        if self.mail is not None:
            mail = MailSettings(**{**self.mail, "tls": Tls(self.mail["tls"])})  # type: ignore[arg-type]
        return DeliverySettings(
            Path(self.output_folder),
            Path(self.stylesheet_folder),
            mail=mail,
            webhook=WebhookSettings(
                key=self.webhook_key.encode("latin-1"),
                allowed=AllowedNetworks.of(*self.allowed),
                step_s=self.webhook_step_s,
                total_s=self.webhook_total_s,
            ),
            kafka=KafkaSettings(self.kafka_brokers, self.kafka_options),
            public_url=self.public_url,
            confirm_mail=self.confirm_mail,
            transform=TransformLimits(**self.transform),  # type: ignore[arg-type]
            backoff=Backoff(first_s=self.backoff_first_s, max_s=self.backoff_max_s),
            **self.limits,  # type: ignore[arg-type]
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DeliveryConfig:
        values = json.loads(text)
        return cls(**{**values, "allowed": tuple(values["allowed"])})


_LIMITS = (
    *("items_in_file", "items_per_run", "attempts_max", "workers", "workers_per_target"),
    *("run_budget_s", "round_budget_s", "lease_s", "dead_kept_s"),
)
