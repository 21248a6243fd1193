"""kill -9 at any moment, again and again: nothing lost, nothing twice, no half file."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import feedparser
import pytest
from tests.deliver import deliverer_process
from tests.deliver.deliverer_process import BATCH_ITEMS, FILES, subscriptions
from tests.deliver.servers import Receiver, receiver

from headgate.deliver.deliverer import Deliverer
from headgate.deliver.outbox import Outbox
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.records import DeliveryState
from headgate.deliver.settings import DeliverySettings
from headgate.model.addresses import LOOPBACK

pytestmark = pytest.mark.integration

KILLS = 20


def titles_in(path: Path) -> list[str]:
    """Every title of a whole document; a half one could not be read."""
    content = path.read_bytes()
    if path.suffix == ".json":
        return [each["title"] for each in json.loads(content)["items"]]
    read = feedparser.parse(content)
    assert not read.bozo
    return [each.title for each in read.entries]


def run_and_kill(folder: Path, url: str, after_s: float) -> list[int]:
    """The batches that were acknowledged before the process was killed."""
    process = subprocess.Popen(
        [sys.executable, deliverer_process.__file__, str(folder), url],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    timer = threading.Timer(after_s, process.kill)
    timer.start()
    rest = process.stdout.read()
    assert process.wait() == -9
    process.stdout.close()
    timer.join()
    return [int(line) for line in (first + rest).split()]


def test_nothing_is_lost_or_doubled_by_kill_9(tmp_path: Path):
    chance = random.Random(9)
    acknowledged: list[int] = []
    with receiver() as hook:
        for _ in range(KILLS):
            acknowledged += run_and_kill(tmp_path, hook.url, chance.uniform(0.0, 0.15))
            for path in FILES:
                titles = titles_in(tmp_path / "out" / path)
                assert len(titles) == len(set(titles))
        finish(tmp_path, hook)
    assert acknowledged == sorted(set(acknowledged))
    with Outbox.open(tmp_path / "outbox") as outbox:
        counts = outbox.count()
        stored = [each.delivery.item.id for each in outbox.latest(1, limit=10**6)]
    batches = max(acknowledged) + 1
    # One batch more may be in it: committed, but killed before it could say so.
    assert len(stored) in (batches * BATCH_ITEMS, (batches + 1) * BATCH_ITEMS)
    assert counts[DeliveryState.SENT] == sum(counts.values()) == len(stored) * (len(FILES) + 1)
    expected = {f"item {number}" for number in stored}
    for path in FILES:
        titles = titles_in(tmp_path / "out" / path)
        assert len(titles) == len(expected)
        assert set(titles) == expected
        names = [each.name for each in (tmp_path / "out" / path).parent.iterdir() if each.is_file()]
        assert not [name for name in names if name.startswith(".")]
    assert_calls(hook, stored)


def finish(folder: Path, hook: Receiver) -> None:
    known = subscriptions(hook.url)
    settings = DeliverySettings(
        folder / "out",
        folder / "stylesheets",
        webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
        items_in_file=100_000,
    )
    with (
        Outbox.open(folder / "outbox") as outbox,
        Deliverer(outbox, settings, lambda ids: {each: known[each] for each in ids}) as deliverer,
    ):
        while deliverer.run_due(datetime.now(UTC)).runs:
            pass


def assert_calls(hook: Receiver, stored: list[str]) -> None:
    """At least once, always under the same id; more than once only where a process was killed."""
    ids: dict[str, set[str]] = {}
    for _, headers, body in hook.calls:
        (item,) = json.loads(body)["data"]["items"]
        ids.setdefault(item["id"], set()).add(headers["webhook-id"])
    assert set(ids) == set(stored)
    assert all(len(each) == 1 for each in ids.values())
    assert len(hook.calls) <= len(stored) + KILLS
