"""kill -9 of a worker at any moment, again and again: nothing lost, files exact, stable ids."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import feedparser
import pytest
from tests.deliver import delivery_process
from tests.deliver.delivery_process import FILES, catalog, delivery_settings
from tests.deliver.log_world import LogWorld, news
from tests.deliver.servers import receiver

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.replace_files import STAGING

pytestmark = pytest.mark.integration

KILLS, THREADS = 8, 2
ROOT = Path(__file__).parents[2]


def titles_in(path: Path) -> list[str]:
    """Every title of a whole document; a half one could not be read."""
    content = path.read_bytes()
    if path.suffix == ".json":
        return [each["title"] for each in json.loads(content)["items"]]
    read = feedparser.parse(content)
    assert not read.bozo
    return [each.title for each in read.entries]


def run_and_kill(folder: Path, url: str, after_s: float) -> None:
    paths = os.pathsep.join([str(ROOT), *sys.path])
    process = subprocess.Popen(
        [sys.executable, delivery_process.__file__, str(folder), url],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    timer = threading.Timer(after_s, process.kill)
    timer.start()
    process.stdout.read()
    assert process.wait() == -9
    process.stdout.close()
    timer.join()


def test_a_killed_worker_loses_nothing(tmp_path: Path):
    chance, log, names = random.Random(9), LogWorld(tmp_path), []
    with receiver() as hook:
        for kill in range(KILLS):
            for batch in range(3):
                published = [news(f"{kill}.{batch}.{n}") for n in range(4)]
                log.publish(*published)
                names += [each.item.id for each in published]
            run_and_kill(tmp_path, hook.url, chance.uniform(0.0, 0.6))
        finish(tmp_path, hook.url, log)
        ids: dict[str, set[str]] = {}
        for _, headers, body in hook.calls:
            (item,) = json.loads(body)["data"]["items"]
            ids.setdefault(item["id"], set()).add(headers["webhook-id"])
    assert set(ids) == set(names)
    assert all(len(each) == 1 for each in ids.values())
    assert len(hook.calls) <= len(names) + KILLS * THREADS
    for path in FILES:
        titles = titles_in(tmp_path / "out" / path)
        assert titles == [f"title {each}" for each in reversed(names)]
    assert not list((tmp_path / "out" / STAGING).iterdir())


def finish(folder: Path, url: str, log: LogWorld) -> None:
    time.sleep(0.7)  # the lease of the last one expires: there is nobody to wait for
    with DeliveryDatabase(str(folder / "deliver.db")) as database:
        with DeliveryWorker(
            log.storage, catalog(url), database, delivery_settings(folder)
        ) as worker:
            while not worker.step(datetime.now(UTC)).is_idle or database.lags_of(range(256)):
                pass
        DeliveryWorker(log.storage, catalog(url), database, delivery_settings(folder)).close()
