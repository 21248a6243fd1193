"""Whether all is well with a run, from its folder and its catalog: `Headgate.status`.

    folder_status.py ──► FolderStatus ──► problems_of ──► the worst first ──► headgate status

A problem is something that somebody has to do something about. What stops everything comes first:

    disk       a file system is almost full
    run        it has ended by itself, or gives no sign of life
    part       a part of the state cannot be read
    query      a query, thread or operator fails
    lag        a stage or delivery is behind
    source     web feeds are broken, or are not fetched in time
    feed       feeds cannot run, or are suspended
    delivery   receivers are down or gone, messages were given up

A run that was stopped is no problem. Of a folder in which nothing was run nothing can be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headgate.acquire.inbox_tables import BrokenFeed
from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.pipeline.folder_status import FolderStatus
from headgate.pipeline.heartbeat import RunState

FREE_SHARE_MIN, FREE_BYTES_MIN = 0.05, 5_000_000_000
"""A disk is almost full if it has less than both."""
LAG_S = 300.0
UNDELIVERED_S = 3_600.0
NAMED_MAX = 3
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True)
class OperatingProblem:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class OperatingStatus:
    folder: FolderStatus
    problems: Sequence[OperatingProblem]
    """The worst first."""
    sources: int
    """Registered ones of all kinds."""
    feeds: int
    subscriptions: int

    @property
    def is_well(self) -> bool | None:
        """None if it cannot be told."""
        if self.problems:
            return False
        return None if self.folder.heartbeat is None else True

    @property
    def sentence(self) -> str:
        """Whether all is well, or the worst that is wrong."""
        if self.problems:
            more = len(self.problems) - 1
            others = f" (and {counted(more, 'other problem')})" if more else ""
            return self.problems[0].text + others
        beat, now_s = self.folder.heartbeat, self.folder.at_s
        if beat is None:
            was_run = self.folder.log is not None and self.folder.log.next_position
            unknown = "the run of this folder is of an earlier version: nothing is known of it"
            return unknown if was_run else "nothing was run in this folder yet"
        if beat.ended_s is not None:
            return f"no run is on; the last one was stopped {span_text(now_s - beat.ended_s)} ago"
        return f"all is well; the run is on since {span_text(now_s - beat.started_s)}"


def operating_status(catalog: Catalog, status: FolderStatus) -> OperatingStatus:
    return OperatingStatus(
        status,
        problems_of(status),
        sources=catalog.count_definitions(tuple(SOURCE_KINDS)),
        feeds=catalog.count_definitions((DefinitionKind.FEED,)),
        subscriptions=catalog.count_subscriptions(),
    )


BEHIND_S = 2.0
"""A stage that is so far behind is worth a word."""


def bottleneck_of(status: FolderStatus) -> str:
    """What holds items up on their way, in a sentence."""
    beat = status.heartbeat
    if beat is None or status.run_state is not RunState.RUNNING:
        return "Nothing flows: no run is on."
    behind = {name: (each.lag_s, each.lag_items) for name, each in beat.stages.items()}
    if status.delivery is not None:
        behind["deliver"] = (status.delivery.behind_s, status.delivery.behind)
    slowest, (lag_s, items) = max(behind.items(), key=lambda each: each[1], default=("", (0.0, 0)))
    if lag_s > BEHIND_S:
        return f"{slowest} holds items up: it is {span_text(lag_s)} behind, by {items:,} items."
    slow = max(beat.stages.items(), key=lambda each: each[1].batch_s, default=None)
    if slow is None or not beat.batches:
        return "Nothing has arrived yet."
    return (
        f"Nothing is behind. Half of the batches take less than {beat.batch_p50_ms:,.0f} ms; the "
        f"last one of {slow[0]} took {1e3 * slow[1].batch_s:,.0f} ms."
    )


def problems_of(status: FolderStatus) -> list[OperatingProblem]:
    return [
        *_disk_problems(status),
        *_run_problems(status),
        *(
            OperatingProblem("part", f"the state of the {part} cannot be read: {why}")
            for part, why in status.unreadable.items()
        ),
        *_work_problems(status),
        *_source_problems(status),
        *_feed_problems(status),
        *_delivery_problems(status),
    ]


def _disk_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    for place, disk in status.storage.disks.items() if status.storage else ():
        if disk.free < min(FREE_SHARE_MIN * disk.total, FREE_BYTES_MIN):
            what = "the folder" if place == "folder" else "the outputs"
            free = f"{disk.free / 1e6:,.0f} MB of {disk.total / 1e9:,.0f} GB are free"
            yield OperatingProblem("disk", f"the disk of {what} is almost full: {free}")


def _run_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    beat = status.heartbeat
    if beat is None or status.run_state is not RunState.LOST:
        return
    if beat.ended_s is not None:
        ago = span_text(status.at_s - beat.ended_s)
        yield OperatingProblem("run", f"the run has ended by itself {ago} ago: {beat.why_ended}")
        return
    silent = span_text(status.at_s - beat.at_s)
    yield OperatingProblem(
        "run",
        f"the run (process {beat.pid} on {beat.host}) gives no sign of life for {silent}: it was "
        "killed, or cannot write to its folder",
    )


def _work_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    """What the run says, as long as it is there."""
    beat = status.heartbeat
    if beat is None or status.run_state is not RunState.RUNNING:
        return
    for name, why in beat.errors.items():
        yield OperatingProblem("query", f"{name} fails: {why}")
    for name, is_active in beat.queries.items():
        if not is_active and name not in beat.errors:
            yield OperatingProblem("query", f"the query {name} does not run")
    for name, stage in beat.stages.items():
        if stage.lag_s > LAG_S and name != "deliver":
            behind = f"{span_text(stage.lag_s)} behind, by {counted(stage.lag_items, 'item')}"
            yield OperatingProblem("lag", f"the stage {name} is {behind}")
    if (delivery := status.delivery) is not None and delivery.behind_s > LAG_S:
        behind = f"{span_text(delivery.behind_s)} behind, by {counted(delivery.behind, 'item')}"
        nobody = "; there is no delivery worker" if not delivery.workers else ""
        yield OperatingProblem("lag", f"delivery is {behind}{nobody}")


def _source_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    sources = status.sources
    if sources is None:
        return
    if broken := sorted(sources.broken, key=lambda each: each.since):
        names = named(
            f"{each.name} ({reason_of(each)} for {span_text(status.at_s - each.since.timestamp())})"
            for each in broken
        )
        are = "source is" if len(broken) == 1 else "sources are"
        yield OperatingProblem("source", f"{len(broken):,} {are} broken: {names}")
    if sources.due and status.run_state is RunState.RUNNING:
        feeds = counted(sources.due, "web feed")
        yield OperatingProblem(
            "source", f"{feeds} might have been fetched ten minutes ago and were not"
        )


def _feed_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    if suspended := status.suspended:
        names = named(f"{name} ({each.reason})" for name, each in suspended.items())
        are = "feed is" if len(suspended) == 1 else "feeds are"
        yield OperatingProblem("feed", f"{len(suspended):,} {are} suspended: {names}")
    beat = status.heartbeat
    if beat is not None and status.run_state is RunState.RUNNING:
        refused = [f"{name} ({why})" for name, why in beat.refused.items() if name not in suspended]
        if refused:
            yield OperatingProblem(
                "feed", f"{counted(len(refused), 'definition')} cannot run: {named(refused)}"
            )


def _delivery_problems(status: FolderStatus) -> Iterator[OperatingProblem]:
    delivery = status.delivery
    if delivery is None:
        return
    if waiting := sum(delivery.waiting.values()):
        age = f", the oldest for {span_text(delivery.oldest_s)}" if delivery.oldest_s else ""
        if delivery.oldest_s > UNDELIVERED_S:
            yield OperatingProblem(
                "delivery", f"{counted(waiting, 'message')} cannot be delivered{age}"
            )
    if halted := delivery.counts.halted:
        receivers = "receiver is" if halted == 1 else "receivers are"
        yield OperatingProblem(
            "delivery", f"{halted:,} {receivers} gone: 'headgate stats' has the errors"
        )
    if dead := sum(delivery.dead.values()):
        letters = counted(dead, "message")
        yield OperatingProblem(
            "delivery", f"{letters} given up: 'headgate stats' lists the dead letters"
        )


def reason_of(feed: BrokenFeed) -> str:
    """Why a feed is broken, without its URL."""
    return feed.error.removeprefix(f"{feed.url}: ")


# --- texts ----------------------------------------------------------------------------------------


def named(names: Iterable[str]) -> str:
    """
    >>> named("abcde")
    'a, b, c and 2 more'
    """
    all_names = list(names)
    more = len(all_names) - NAMED_MAX
    return ", ".join(all_names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "message"), counted(2_000, "message")
    ('1 message', '2,000 messages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def span_text(seconds: float) -> str:
    """A time in the greatest unit of which there are two, or else in seconds.

    >>> span_text(7_300), span_text(5_400), span_text(1), span_text(0.2)
    ('2 hours', '90 minutes', '1 second', '0 seconds')
    """
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second")
