"""A delivery worker in this process: opens the catalog, the log and the delivery database.

`run_worker` is what `headgate deliver` calls, and what a run starts as a child process
(deliver/delivery_config.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.deliver.delivery_config import DeliveryConfig
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_kafka import KafkaSettings
from headgate.deliver.output_mail import MailSettings
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import (
    DeliverySettings,
    asks_for_confirmation,
    checked_public_url,
)
from headgate.deliver.step_report import StepReport
from headgate.model.errors import CatalogUnavailable, LogError, StateError
from headgate.store.data_folder import DataFolder, checked_state, find_folder

AGAIN_S = 1.0
"""After an error of a database or the log, the worker tries again."""


def environment_config(
    environment: Mapping[str, str],
    *,
    catalog: str,
    folder: Path,
    log: str = "",
    state: str = "",
    output: Path,
    stylesheets: Path,
    public_url: str = "",
) -> DeliveryConfig:
    """The settings of `headgate deliver`: servers and keys are in the environment.

    A worker uses the delivery database of the run: with one of its own it would deliver everything
    once more. Where the folder of the run is not here, it cannot be known without `state`."""
    run_folder = DataFolder(folder, log, checked_state(folder, state))
    if not run_folder.has_deliveries:
        raise StateError(
            f"there is no run in the folder '{folder}' whose deliveries could be made: name its "
            "folder by --folder, or its delivery database by --state"
        )
    settings = DeliverySettings(
        output,
        stylesheets,
        mail=MailSettings.from_environment(environment),
        webhook=WebhookSettings.from_environment(environment),
        kafka=KafkaSettings.from_environment(environment),
        public_url=checked_public_url(public_url or environment.get("HEADGATE_PUBLIC_URL", "")),
        confirm_mail=asks_for_confirmation(environment),
    )
    config = DeliveryConfig.of(
        settings, catalog=catalog, folder=folder, database=run_folder.delivery_database
    )
    return replace(config, log=log)


class WorkerControl:
    """What other threads say to a worker."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.wake: Callable[[], None] = lambda: None
        """The log has something new: do not wait for the next look at it."""


def run_worker(
    config: DeliveryConfig,
    control: WorkerControl,
    on_step: Callable[[StepReport], None] = lambda _: None,
) -> None:
    """Deliver until `stopping` is set; then the slots are given back."""
    stopping = control.stopping
    with (
        Catalog.open(config.catalog) as catalog,
        DeliveryDatabase(config.database) as database,
        DeliveryWorker(
            find_folder(Path(config.folder), config.log).storage,
            DeliveryCatalog(catalog),
            database,
            _settings(config, catalog),
        ) as worker,
    ):
        control.wake = worker.wake
        while not stopping.is_set():
            try:
                report = worker.step(datetime.fromtimestamp(database.now_s(), UTC))
            except (CatalogUnavailable, LogError) as error:
                report = StepReport()
                report.add_error(0, str(error))
                stopping.wait(AGAIN_S)
            on_step(report)
            if report.is_idle:
                worker.wait()


def _settings(config: DeliveryConfig, catalog: Catalog) -> DeliverySettings:
    """With the key of the installation; `KeyMissing` where it is not on this host."""
    settings = config.settings()
    return replace(settings, webhook=replace(settings.webhook, key=catalog.installation_key()))
