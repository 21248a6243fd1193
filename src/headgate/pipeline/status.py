"""How a run is doing, in one value: for the display, the summary and Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.acquire.feed_table import BrokenFeed, broken_feeds
from headgate.deliver.outbox import State
from headgate.pipeline.deliveries import Found
from headgate.pipeline.meters import Tally
from headgate.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class Status:
    tally: Tally
    sources: int
    feeds: int
    catalog_version: int
    outbox: dict[State, int]
    broken: tuple[BrokenFeed, ...]
    refused: dict[str, str]
    """Feeds and sources that cannot run, each with the reason."""
    errors: dict[str, str]
    """What does not work at the moment, by the query or thread."""
    latest: tuple[Found, ...]

    @property
    def backlog(self) -> int:
        """Deliveries that wait, are being sent, or will be tried again."""
        return sum(self.outbox[each] for each in (State.WAITING, State.SENDING, State.FAILED))


def status_of(run: Run) -> Status:
    planned = run.planned
    return Status(
        tally=run.meters.tally(),
        sources=len(planned.sources),
        feeds=len(planned.names),
        catalog_version=planned.snapshot.catalog_version,
        outbox=run.outbox.count(),
        broken=tuple(each for group in run.grouped.groups for each in _broken_of(run, group)),
        refused={**run.grouped.refused, **planned.refused, **run.joins.unsupported},
        errors={**run.queries.errors(), **run.runner.materialiser.errors, **run.errors},
        latest=tuple(run.runner.dispatcher.latest),
    )


def _broken_of(run: Run, group: str) -> list[BrokenFeed]:
    folder = run.folder.sources / group
    return broken_feeds(folder) if group.startswith("feeds-") and folder.exists() else []
