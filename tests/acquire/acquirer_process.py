"""A process that acquires until it is killed: python acquirer_process.py FOLDER URL…"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.acquire.rss import rows_of

from headgate.acquire.acquirer import Acquirer, AcquirerSettings
from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.limits import IntakeLimits
from headgate.acquire.refresh_queue import RefreshPolicy
from headgate.model.addresses import LOOPBACK

QUICK = AcquirerSettings(
    threads=4,
    fetches_per_minute=60_000.0,
    policy=RefreshPolicy(0.0, 0.01),
    limits=IntakeLimits(host_delay_s=0.0, total_s=2.0),
    allowed=LOOPBACK,
)


def feeds_at(urls: list[str]) -> list[ListedFeed]:
    return [ListedFeed(url.rpartition("/")[2], url) for url in urls]


if __name__ == "__main__":
    inbox = Inbox(Path(sys.argv[1]), wait_s=5.0)
    acquirer = Acquirer(inbox, rows_of, settings=QUICK)
    acquirer.watch(feeds_at(sys.argv[2:]))
    acquirer.start()
    print("started", flush=True)
    threading.Event().wait()
