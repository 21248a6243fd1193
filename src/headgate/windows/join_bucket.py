"""One bucket of the window joins: reads a range of the log, decides, and writes its outputs.

    advance(start, end)   items that arrived between these points ──► windows, waiting items
                          everything due until the instant of `end` ──► files of the log

The log is the only state on disk; the state in memory is a cache of it. If the bucket does not have
the state of point `start` (a new process, a move to another host, a range that is repeated), it
rebuilds it from the log:

    windows   items of their sources with time > instant − retention − lateness − size
    waiting   primary items that arrived until `start` and are due after its instant
    general   as rebuild.py does

Invariant: what a range outputs depends on the log and the plans alone. Nothing is decided twice or
differently, as D(p) decides in which range an item is decided (stage.py).

Families need nothing but rows for this: nothing is looked up again. Files are read one by one, so a
rebuild holds one file and the windows. When plans change, windows that stay keep their rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import numpy as np

from headgate.match.batch import microseconds
from headgate.match.row_users import shared_costs
from headgate.model.errors import LogError
from headgate.store.log import LogReader
from headgate.store.log_state import START, LogPoint, WrittenFile
from headgate.store.log_storage import LogStorage
from headgate.windows.arrivals import NEVER_US, SECOND_US, Arrival, FeedOutput, instant_of
from headgate.windows.family_joins import BucketNumber, FamilyJoins
from headgate.windows.join_costs import feeds_above_nodes, feeds_of_families
from headgate.windows.join_families import GENERAL_BUCKET
from headgate.windows.join_plan_file import JoinPlans, open_join_plans
from headgate.windows.joined_writer import ItemJson, JoinedWriter
from headgate.windows.log_rows import PositionRange, SourceRows, rows_in_range
from headgate.windows.rebuild import rebuild
from headgate.windows.stage import JoinStage

READS_MAX = 5
"""A file may be merged between reading the log and reading the file: then both are read again."""
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class BucketSettings:
    bucket: int
    buckets: int
    lateness_s: float
    retention_s: float


@dataclass(frozen=True, slots=True)
class AdvanceRequest:
    """Decide the part of the log from `start` to `end` with these plans."""

    plans: str
    """The path of the file; of a log at a URL, the name of the object."""
    start: LogPoint
    end: LogPoint


@dataclass(frozen=True, slots=True)
class AdvanceAnswer:
    files: tuple[WrittenFile, ...]
    outputs: int
    next_due_us: int | None
    """When the next waiting item is due."""
    waiting: int
    window_rows: int
    late: Mapping[str, int] = field(default_factory=dict)
    """Late items of the range by source; only one bucket counts them."""
    was_rebuilt: bool = False
    cpu_s: float = 0.0
    """The CPU time of the range, a rebuild included."""
    costs: Mapping[str, int] = field(default_factory=dict)
    """The CPU time of feeds in µs, by number (join_costs.py)."""


class JoinBucket:
    """For one thread."""

    def __init__(self, storage: LogStorage, settings: BucketSettings, item_json: ItemJson) -> None:
        self._storage, self._settings, self._json = storage, settings, item_json
        self._reader = LogReader(storage)
        self._state: _BucketState | None = None
        self._last: tuple[AdvanceRequest, AdvanceAnswer] | None = None

    def advance(self, request: AdvanceRequest) -> AdvanceAnswer:
        """The outputs of a range. A request that is repeated gets the same files."""
        if self._last is not None and self._last[0] == request:
            return self._last[1]
        began_s = time.process_time()
        state, self._state = self._state, None  # an error leaves no state
        was_rebuilt = state is None or state.point != request.start
        plans = open_join_plans(self._storage.path(request.plans))
        if state is None or was_rebuilt or state.families.plans is not plans:
            before = None if was_rebuilt else state
            state = self._read(lambda: self._rebuilt(plans, request.start, before))
        writer = JoinedWriter(self._storage, self._json)
        late = self._step(state, request, writer)
        answer = AdvanceAnswer(
            tuple(writer.close()),
            writer.outputs,
            state.next_due_us(),
            state.families.waiting + (state.general.waiting if state.general else 0),
            sum(len(window.rows) for window in state.families.windows),
            late if self._settings.bucket == GENERAL_BUCKET else {},
            was_rebuilt,
            time.process_time() - began_s,
            state.take_costs(writer.spent),
        )
        self._state, self._last = state, (request, answer)
        return answer

    def _step(
        self, state: _BucketState, request: AdvanceRequest, writer: JoinedWriter
    ) -> dict[str, int]:
        start, end = request.start, request.end
        schemas = state.families.plans.schemas()
        positions = PositionRange(start.position, end.position)
        self._reader.refresh()
        if self._reader.state.seq < end.seq:
            raise LogError(
                f"the log has no entry {end.seq}; the last one is {self._reader.state.seq}"
            )
        arrived = self._read(
            lambda: list(rows_in_range(self._storage, self._reader.state, positions, schemas))
        )
        late: dict[str, int] = {}
        for rows in arrived:
            is_late = rows.arrived_us > rows.time_us + state.families.lateness_us
            late[rows.source] = late.get(rows.source, 0) + int(np.count_nonzero(is_late))
            state.families.insert(rows)
        for joined in state.families.decide(end.arrived_us):
            writer.write(joined)
        if state.general is not None:
            state.general.push(list(self._arrivals(arrived, state.general.sources)))
            outputs = state.general.advance(instant_of(end.arrived_us))
            writer.write_general(outputs, schemas, state.general_feeds)
        state.point = end
        return {source: count for source, count in late.items() if count}

    # --- state from the log -------------------------------------------------------------------

    def _rebuilt(
        self, plans: JoinPlans, point: LogPoint, before: _BucketState | None
    ) -> _BucketState:
        """The state of a point. Windows of `before`, the state with other plans, are kept."""
        lateness_us = round(self._settings.lateness_s * SECOND_US)
        families = FamilyJoins(
            plans,
            bucket=BucketNumber(self._settings.bucket, self._settings.buckets),
            lateness_us=lateness_us,
            kept_us=lateness_us + round(self._settings.retention_s * SECOND_US),
            before=None if before is None else before.families,
        )
        for rows in self._history(families, point):
            families.insert_into_windows(rows, families.new_windows)
            families.add_waiting(rows, after_us=point.arrived_us)
        return _BucketState(point, families, self._general(plans, point, before))

    def _history(self, families: FamilyJoins, point: LogPoint) -> Iterator[SourceRows]:
        since_us = horizons_us(families, point.arrived_us)
        schemas = {
            name: schema for name, schema in families.plans.schemas().items() if name in since_us
        }
        state = self._reader.state
        positions = PositionRange(state.first_position, point.position)
        if positions.end > positions.first and schemas:
            yield from rows_in_range(self._storage, state, positions, schemas, since_us=since_us)

    def _general(
        self, plans: JoinPlans, point: LogPoint, before: _BucketState | None
    ) -> JoinStage | None:
        if not plans.nodes or self._settings.bucket != GENERAL_BUCKET:
            return None
        general = {str(number): plan for number, plan in plans.general_plans().items()}
        if before is not None and before.general is not None and before.general.plans == general:
            return before.general
        stage = JoinStage(
            general,
            plans.general_schemas,
            lateness_s=self._settings.lateness_s,
            retention_s=self._settings.retention_s,
        )
        if point != START:
            rebuild(
                stage,
                lambda since: self._stored(stage, plans, since, point),
                instant_of(point.arrived_us),
            )
        return stage

    def _stored(
        self,
        stage: JoinStage,
        plans: JoinPlans,
        since: Mapping[str, datetime | None],
        point: LogPoint,
    ) -> list[Arrival]:
        state = self._reader.state
        since_us = {
            name: NEVER_US if time is None else microseconds(time) for name, time in since.items()
        }
        schemas = {name: plans.general_schemas[name] for name in since_us}
        positions = PositionRange(state.first_position, point.position)
        rows = rows_in_range(self._storage, state, positions, schemas, since_us=since_us)
        return list(self._arrivals(rows, stage.sources))

    def _arrivals(
        self, arrived: Iterable[SourceRows], sources: frozenset[str]
    ) -> Iterator[Arrival]:
        for rows in arrived:
            if rows.source in sources:
                instants, notes = rows.arrived_us.tolist(), rows.annotations()
                for item, arrived_us, note in zip(rows.items(), instants, notes, strict=True):
                    annotations = self._json.decode_annotations(note) if note else frozenset()
                    whole = replace(item, annotations=annotations) if note else item
                    yield Arrival(whole, instant_of(arrived_us))

    # --- the log ------------------------------------------------------------------------------

    def _read(self, read: Callable[[], Found]) -> Found:
        """What `read` finds with the current state of the log."""
        for attempt in range(READS_MAX):
            self._reader.refresh()
            try:
                return read()
            except FileNotFoundError:
                if attempt == READS_MAX - 1:
                    raise
        raise AssertionError("unreachable")


@dataclass(slots=True)
class _BucketState:
    """Everything that arrived up to a point is in it, and everything due by then is decided."""

    point: LogPoint
    families: FamilyJoins
    general: JoinStage | None
    family_feeds: list[list[int]] = field(default_factory=list)
    node_feeds: list[list[int]] = field(default_factory=list)
    """Who pays for families, and for nodes of the general joins."""

    def __post_init__(self) -> None:
        self.family_feeds = feeds_of_families(self.families.plans)
        if self.general is not None:
            self.node_feeds = feeds_above_nodes(self.general.graph)

    def take_costs(self, written: Sequence[tuple[Sequence[int], int]]) -> Mapping[str, int]:
        """What feeds have cost since the last call, and to write the outputs of general joins."""
        families = self.families
        spent = list(written)
        spent += list(zip(self.family_feeds, families.spent_ns.tolist(), strict=True))
        families.spent_ns[:] = 0
        if self.general is not None:
            flow = self.general.flow
            spent += zip(self.node_feeds, flow.spent_ns, strict=True)
            flow.spent_ns = [0] * len(flow.spent_ns)
        return shared_costs((feeds, cpu_ns) for feeds, cpu_ns in spent if cpu_ns)

    def next_due_us(self) -> int | None:
        due = [self.families.next_due_us()]
        if self.general is not None and (next_ := self.general.next_decision()) is not None:
            due.append(microseconds(next_))
        return min((each for each in due if each is not None), default=None)

    def general_feeds(self, output: FeedOutput) -> Sequence[int]:
        """The feeds of an output of the general joins that decide at its instant."""
        plans = self.families.plans
        instant_us = microseconds(output.decided_at)
        numbers = np.array([int(feed) for feed in output.feeds], np.int64)
        deciding = plans.from_us[np.searchsorted(plans.numbers, numbers)] < instant_us
        feeds: list[int] = numbers[deciding].tolist()
        return feeds


def horizons_us(families: FamilyJoins, instant_us: int) -> dict[str, int]:
    """For each source that is read to rebuild the state of an instant, from which time on: for the
    new windows, and for primary items that wait."""
    plans = families.plans
    since: dict[str, int] = {}
    for source in plans.sources:
        spans = [
            families.kept_us + plans.windows[number].size_s * SECOND_US
            for number in set(source.windows.tolist()) & families.new_windows
        ]
        if source.feeds.size:
            spans.append(families.lateness_us)
        if spans:
            since[source.source] = instant_us - max(spans)
    return since
