"""A process of its own that puts and delivers; the tests start it, and kill it at any moment.

python deliverer_process.py FOLDER URL

puts batch after batch, each of it twice, as a replay would, and delivers to files and a webhook. It
writes the number of a batch when the outbox has acknowledged it. A new process goes on with the
batch after the last one that is in the outbox, and with what the dead one left.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from headgate.acquire.backoff import Backoff
from headgate.deliver.deliverer import Deliverer
from headgate.deliver.outbox import Outbox
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.records import ItemDelivery, PushSubscription, Transport
from headgate.deliver.settings import DeliverySettings
from headgate.model.addresses import LOOPBACK
from headgate.model.items import Item
from headgate.model.values import Link

FILES = ("a.atom", "b/c.rss", "d.json")
BATCH_ITEMS = 3
START = datetime(2026, 11, 16, tzinfo=UTC)


def subscriptions(url: str) -> dict[int, PushSubscription]:
    found = [
        PushSubscription(number, 1, "Rock", Transport.FILE, path)
        for number, path in enumerate(FILES, 1)
    ]
    found.append(PushSubscription(9, 1, "Rock", Transport.WEBHOOK, url))
    return {each.id: each for each in found}


def batch(number: int, ids: list[int]) -> list[ItemDelivery]:
    items = [
        Item(
            f"{number}.{n}", "S", START, {"title": f"item {number}.{n}", "link": Link("http://a.b")}
        )
        for n in range(BATCH_ITEMS)
    ]
    return [ItemDelivery(each, 1, "Rock", item) for item in items for each in ids]


def main(folder: str, url: str) -> None:
    home = Path(folder)
    known = subscriptions(url)
    settings = DeliverySettings(
        home / "out",
        home / "stylesheets",
        webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
        backoff=Backoff(first_s=0.0),
        items_in_file=100_000,
    )
    with Outbox.open(home / "outbox") as outbox:
        done = outbox.latest(1, limit=1)
        number = int(done[0].delivery.item.id.partition(".")[0]) + 1 if done else 0
        with Deliverer(outbox, settings, lambda ids: {i: known[i] for i in ids}) as deliverer:
            deliverer.run_due(datetime.now(UTC))
            while True:
                for _ in range(2):
                    outbox.put(batch(number, list(known)), now_s=datetime.now(UTC).timestamp())
                sys.stdout.write(f"{number}\n")
                sys.stdout.flush()
                deliverer.run_due(datetime.now(UTC))
                number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
