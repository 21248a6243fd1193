"""The output of one group for a batch of changes: messages for clients, and results as items.

group            messages                                   results
two tables       of both semijoins                          pairs of rows
one semijoin     of its base, and emptied join values       –
result group     –                                          one row of each table
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.tables.bucket import BucketServer
from headgate.tables.changes import ChangeColumns
from headgate.tables.join_groups import JoinGroup
from headgate.tables.message_files import messages_table
from headgate.tables.messages import JoinSide, MessageBatch
from headgate.tables.result_join import ResultJoin
from headgate.tables.results import results_of_changes, results_of_pairs
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import OpenBoxes
from headgate.tables.subscription_index import SubscriptionIndex


@dataclass(frozen=True, slots=True, eq=False)
class GroupSubscriptions:
    """The subscriptions of a group as a server uses them."""

    boxes: OpenBoxes
    index: SubscriptionIndex


@dataclass(slots=True)
class GroupOutput:
    """The output of one batch. `delivered` are the subscriptions of feeds whose results are
    delivered, if there are any."""

    group: JoinGroup
    held: BucketServer
    subscribed: GroupSubscriptions
    delivered: GroupSubscriptions | None
    changes: int = 0
    messages: list[pa.Table] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)

    def announce(self, changes: ChangeColumns) -> None:
        self.changes += len(changes)
        server = self.held.server
        if isinstance(server, ResultJoin):
            self._announce_results(server, changes)
            return
        server.use(self.subscribed.index)
        if self.group.base is not None:
            messages = server.apply_for_base(changes, JoinSide(self.group.base))
        elif self.delivered is None:
            messages = server.apply_columns(changes)
        else:
            messages = self._announce_both(server, changes, self.delivered)
        if len(messages):
            self.messages.append(messages_table(messages, server, self.group, self.held.attributes))

    def _announce_both(
        self, server: SelectJoinServer, changes: ChangeColumns, delivered: GroupSubscriptions
    ) -> MessageBatch:
        messages, pairs = server.apply_for_both(changes, delivered.index)
        self._add(results_of_pairs(pairs, delivered.index, delivered.boxes, server, self.group))
        return messages

    def _announce_results(self, server: ResultJoin, changes: ChangeColumns) -> None:
        if self.delivered is None:
            server.apply_silently(changes)
            return
        delivered = self.delivered
        self._add(results_of_changes(changes, delivered.index, delivered.boxes, server, self.group))

    def _add(self, results: pa.Table | None) -> None:
        if results is not None:
            self.results.append(results)
