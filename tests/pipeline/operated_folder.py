"""The folder of a run that was never there: a log, web feeds, deliveries and a heartbeat."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.deliver.log_world import LogWorld

from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import FailedFetch, FeedMemory, ListedFeed, SuccessfulFetch
from headgate.acquire.refresh_state import RefreshState
from headgate.api.headgate import Headgate
from headgate.catalog.catalog import Catalog
from headgate.deliver.delivery_database import DeliveryChange, DeliveryDatabase
from headgate.deliver.delivery_tables import SLOTS, DeadLetter, LagRow, RetryRow
from headgate.language.parse import parse_script
from headgate.pipeline.heartbeat import Heartbeat, StageProgress, write_heartbeat
from headgate.store.data_folder import DataFolder

SCRIPT = """
register feed https://a.example/rss as News;
register feed https://b.example/rss as Sport;
create feed Rock from News where title contains 'rock';
subscribe to Rock output webhook 'https://c.example/hook' for 30 days;
subscribe to Rock output file 'rock.atom' for 30 days;
"""


class OperatedFolder:
    """As if there had been a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.catalog = Catalog.open(str(path / "headgate.db"))
        self.catalog.apply(parse_script(SCRIPT))
        self.folder = DataFolder(path / "data").make()
        self.headgate = Headgate(self.catalog, self.folder.path)
        self.world = LogWorld(self.folder.path, self.folder.storage)
        self.now_s = time.time()
        self._listed: list[ListedFeed] = []
        (path / "feeds").mkdir()

    def close(self) -> None:
        self.catalog.close()

    def number(self, feed: str) -> int:
        numbers = {name: n for n, name in self.catalog.names_of_numbers(range(1, 100)).items()}
        return numbers[feed]

    def pass_back(self, seconds: float) -> None:
        """What is published next arrived so long ago."""
        self.world.now = datetime.now(UTC) - timedelta(seconds=seconds)

    def fetch(
        self, name: str, error: str = "", *, ago_s: float = 60.0, next_s: float = 300.0
    ) -> None:
        """A fetch of a web feed, good or bad; the next one is in some seconds from now."""
        feed, at = ListedFeed(name, f"https://{name}.example/rss"), self.now_s - ago_s
        self._listed.append(feed)
        with Inbox(self.folder.sources / "feeds-a") as inbox:
            inbox.list_feeds(self._listed, at)
            state = RefreshState(fetched_at=at, items=3.0, failures=3 if error else 0)
            next_at = self.now_s + next_s
            if error:
                inbox.put_failure(feed, FailedFetch(at, state, next_at, error))
            else:
                inbox.put(feed, SuccessfulFetch(at, state, next_at, FeedMemory()))

    def deliver(
        self,
        *,
        cursor: int,
        lags: Sequence[LagRow] = (),
        retries: Sequence[RetryRow] = (),
        dead: Sequence[DeadLetter] = (),
    ) -> None:
        with (
            DeliveryDatabase(self.folder.delivery_database) as database,
            database.changing() as connection,
        ):
            change = DeliveryChange(connection)
            change.move_cursors(range(SLOTS), cursor, seen_id=2)
            change.put_lags(lags)
            change.put_retries(retries)
            change.put_dead(dead)

    def beat(self, *, ago_s: float = 1.0, **changes: object) -> Heartbeat:
        beat = Heartbeat(
            at_s=time.time() - ago_s,
            started_s=time.time() - ago_s - 7_200,
            pid=os.getpid(),
            host="here",
            version="1",
            output=str(self.path / "feeds"),
            items=12,
            queries={"feeds-a": True},
            stages={
                "feeds-a": StageProgress(time.time() - ago_s),
                "windows": StageProgress(time.time() - ago_s),
            },
        )
        beat = replace(beat, **changes)  # type: ignore[arg-type]
        write_heartbeat(self.folder, beat)
        return beat
