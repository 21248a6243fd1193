"""The state of a run as one value, for the screen of `headgate run`, its summary and Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.acquire.file_log import file_problems
from headgate.acquire.inbox_tables import BrokenFeed, broken_feeds
from headgate.deliver.delivery_status import DeliveryCounts
from headgate.pipeline.latest_matches import LatestMatch
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
    deliveries: DeliveryCounts
    behind: int
    """How many items of the log delivery has not reached yet."""
    rejected: dict[str, int]
    """How many records of each source could not be read (`headgate rejected` lists them)."""
    broken: tuple[BrokenFeed, ...]
    """Web feeds whose last fetch failed."""
    refused: dict[str, str]
    """Feeds and sources that cannot run, each with the reason."""
    errors: dict[str, str]
    """Current errors, by query, thread, source or operator."""
    operators: dict[str, OperatorStatus]
    latest: tuple[LatestMatch, ...]
    """The last matches."""


def status_of(run: Run) -> Status:
    plans, operators, deliveries = run.plans, run.ledger.status(), run.deliveries()
    head = run.context.log.state.next_position
    return Status(
        tally=run.meters.tally(),
        sources=len(plans.sources),
        feeds=len(plans.names),
        catalog_version=plans.snapshot.catalog_version,
        deliveries=deliveries,
        behind=0 if deliveries.cursor is None else max(head - deliveries.cursor, 0),
        rejected=run.rejected.by_source(),
        broken=tuple(
            feed for group in run.source_groups.groups for feed in _broken_feeds(run, group)
        ),
        refused={
            **run.source_groups.refused,
            **plans.refused,
            **run.windows.unsupported,
            **{name: f"suspended: {why}" for name, why in plans.suspended.items()},
        },
        errors={
            **run.queries.errors(),
            **{f"table {name}": why for name, why in run.tables.problems.items()},
            **({"tables": run.table_query.error} if run.table_query.error else {}),
            **{
                name: why
                for group in run.source_groups.groups
                for name, why in _problems(run, group)
            },
            **run.materialise.errors,
            **{
                f"operator {name}": f"failed {known.failures:,} times, the last time: {known.last}"
                for name, known in operators.items()
                if known.failures
            },
            **({"deliver": run.delivery.error} if run.delivery and run.delivery.error else {}),
            **run.errors,
        },
        operators=operators,
        latest=run.latest.look(plans),
    )


def _problems(run: Run, group: str) -> Iterable[tuple[str, str]]:
    """Sources of a group that cannot be read, each with the reason."""
    folder = run.folder.sources / group
    kind = re.split(r"[-.]", group, maxsplit=1)[0]
    read_problems = {"files": file_problems, "kafka": kafka_problems}.get(kind)
    return () if read_problems is None else read_problems(folder).items()


def _broken_feeds(run: Run, group: str) -> list[BrokenFeed]:
    folder = run.folder.sources / group
    return broken_feeds(folder) if group.startswith("feeds-") and folder.exists() else []
