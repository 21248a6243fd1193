"""What changes mean for the subscriptions of one group: messages for clients, results as items.

group        messages                               results
two tables   of both semijoins                      pairs of rows
semijoin     of its base, and what has become empty
whole                                               a row of each table
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.tables.audience import Audience
from headgate.tables.bucket import BucketServer
from headgate.tables.bucket_results import results_of_pairs, results_of_whole
from headgate.tables.changes import ChangeColumns
from headgate.tables.join_groups import JoinGroup
from headgate.tables.message_files import messages_table
from headgate.tables.messages import Messages, Table
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import OpenBoxes
from headgate.tables.whole_join import WholeJoin


@dataclass(frozen=True, slots=True, eq=False)
class Subscribed:
    """The subscriptions of a group as a server uses them."""

    boxes: OpenBoxes
    audience: Audience


@dataclass(slots=True)
class GroupTeller:
    """For one batch. `wanted` are those of feeds whose results somebody wants, if there are any."""

    group: JoinGroup
    held: BucketServer
    subscribed: Subscribed
    wanted: Subscribed | None
    changes: int = 0
    messages: list[pa.Table] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)

    def tell(self, changes: ChangeColumns) -> None:
        self.changes += len(changes)
        server = self.held.server
        if isinstance(server, WholeJoin):
            self._tell_whole(server, changes)
            return
        server.use(self.subscribed.audience)
        if self.group.base is not None:
            told = server.apply_for_base(changes, Table(self.group.base))
        elif self.wanted is None:
            told = server.apply_columns(changes)
        else:
            told = self._tell_both(server, changes, self.wanted)
        if len(told):
            self.messages.append(messages_table(told, server, self.group, self.held.attributes))

    def _tell_both(
        self, server: SelectJoinServer, changes: ChangeColumns, wanted: Subscribed
    ) -> Messages:
        told, found = server.apply_for_both(changes, wanted.audience)
        self._add(results_of_pairs(found, wanted.audience, wanted.boxes, server, self.group))
        return told

    def _tell_whole(self, server: WholeJoin, changes: ChangeColumns) -> None:
        if self.wanted is None:
            server.take_silently(changes)
            return
        wanted = self.wanted
        self._add(results_of_whole(changes, wanted.audience, wanted.boxes, server, self.group))

    def _add(self, results: pa.Table | None) -> None:
        if results is not None:
            self.results.append(results)
