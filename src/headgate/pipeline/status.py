"""The state of a run as one value, for the screen of `headgate run`, its summary and Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.acquire.file_log import file_problems
from headgate.acquire.inbox_tables import BrokenFeed, broken_feeds
from headgate.deliver.records import DeliveryState
from headgate.pipeline.deliveries import FeedMatch
from headgate.pipeline.operator_stage import OperatorStatus
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import Tally
from headgate.pipeline.sources.kafka_topics import kafka_problems


@dataclass(frozen=True, slots=True)
class Status:
    tally: Tally
    sources: int
    feeds: int
    catalog_version: int
    outbox: dict[DeliveryState, int]
    rejected: dict[str, int]
    """How many records of each source could not be read (`headgate rejected` lists them)."""
    broken: tuple[BrokenFeed, ...]
    """Web feeds whose last fetch failed."""
    refused: dict[str, str]
    """Feeds and sources that cannot run, each with the reason."""
    errors: dict[str, str]
    """Current errors, by query, thread, source or operator."""
    operators: dict[str, OperatorStatus]
    latest: tuple[FeedMatch, ...]
    """The last matches."""

    @property
    def backlog(self) -> int:
        """Deliveries that wait, are being sent, or will be retried."""
        return sum(
            self.outbox[state]
            for state in (DeliveryState.WAITING, DeliveryState.SENDING, DeliveryState.FAILED)
        )


def status_of(run: Run) -> Status:
    plans, operators = run.plans, run.ledger.status()
    return Status(
        tally=run.meters.tally(),
        sources=len(plans.sources),
        feeds=len(plans.names),
        catalog_version=plans.snapshot.catalog_version,
        outbox=run.outbox.count(),
        rejected=run.rejected.by_source(),
        broken=tuple(
            feed for group in run.source_groups.groups for feed in _broken_feeds(run, group)
        ),
        refused={**run.source_groups.refused, **plans.refused, **run.windows.unsupported},
        errors={
            **run.queries.errors(),
            **{f"table {name}": why for name, why in run.tables.problems.items()},
            **({"tables": run.table_query.error} if run.table_query.error else {}),
            **{
                name: why
                for group in run.source_groups.groups
                for name, why in _problems(run, group)
            },
            **run.batches.materialiser.errors,
            **{
                f"operator {name}": f"failed {known.failures:,} times, the last time: {known.last}"
                for name, known in operators.items()
                if known.failures
            },
            **run.errors,
        },
        operators=operators,
        latest=tuple(run.batches.dispatcher.latest),
    )


def _problems(run: Run, group: str) -> Iterable[tuple[str, str]]:
    """Sources of a group that cannot be read, each with the reason."""
    folder = run.folder.sources / group
    read_problems = {"files": file_problems, "kafka": kafka_problems}.get(group.split("-", 1)[0])
    return () if read_problems is None else read_problems(folder).items()


def _broken_feeds(run: Run, group: str) -> list[BrokenFeed]:
    folder = run.folder.sources / group
    return broken_feeds(folder) if group.startswith("feeds-") and folder.exists() else []
