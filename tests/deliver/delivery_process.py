"""A worker process that the tests kill at any moment: python delivery_process.py FOLDER URL."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.deliver.log_world import MemoryCatalog, Sub

from headgate.acquire.backoff import Backoff
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.model.addresses import LOOPBACK
from headgate.store.log_storage import FolderStorage

FILES = ("a.atom", "b/c.rss", "d.json")


def catalog(url: str) -> MemoryCatalog:
    found = MemoryCatalog()
    for number, path in enumerate(FILES, 1):
        found.add(Sub(number, "Rock", "file", path))
    found.add(Sub(9, "Rock", "webhook", url))
    return found


def delivery_settings(folder: Path) -> DeliverySettings:
    return DeliverySettings(
        folder / "out",
        folder / "stylesheets",
        webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
        backoff=Backoff(first_s=0.0),
        items_in_file=100_000,
        lease_s=0.2,
    )


def main(folder: Path, url: str) -> None:
    with DeliveryDatabase(str(folder / "deliver.db")) as database:
        worker = DeliveryWorker(
            FolderStorage(folder), catalog(url), database, delivery_settings(folder)
        )
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            worker.step(datetime.now(UTC))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
