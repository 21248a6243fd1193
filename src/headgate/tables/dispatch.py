"""The last hop in one process: from messages to the subscriptions in their regions, numbered.

It stands where a content-driven network does its work (§2.1): it knows regions and bounds, and no
joins. Enum-J and Enum-SJ need it as a part of the server, since they address each subscription.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headgate.tables import recipient_kernels as kernels
from headgate.tables.audience import Audience
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.messages import Messages, Row, Table
from headgate.tables.schemes import SCHEMES
from headgate.tables.server import SelectJoinServer


@dataclass(frozen=True, slots=True, eq=False)
class Recipients:
    """Lines (subscription, first, end): messages first up to end, without end, are for it.

    The lines of one subscription are in the order of its messages.
    """

    lines: Longs

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every message with each of its subscriptions."""
        for subscription, first, end in self.lines.tolist():
            for message in range(first, end):
                yield subscription, message


def recipients(server: SelectJoinServer, messages: Messages) -> Recipients:
    """Who gets which messages, of those subscribed now."""
    return recipients_of(server.audience, server.dimensions, messages)


def recipients_of(
    audience: Audience, dimensions: tuple[int, int], messages: Messages
) -> Recipients:
    """Who of an audience gets which messages."""
    return Recipients(recipient_lines(audience, dimensions, messages.header, messages.numbers))


def recipient_lines(
    audience: Audience, dimensions: tuple[int, int], header: Longs, numbers: Floats
) -> Longs:
    """The same for messages that are arrays alone (`change_kernels.py`)."""
    trees, question = audience.trees, audience.questions[Table.LEFT]
    widths = np.array(dimensions, np.int64)
    at, used, out = 0, 0, np.empty((1_024, 3), np.int64)
    while True:
        given = header, numbers, widths, trees, question
        at, used = kernels.write_recipients(at, *given, out, used)
        if at == len(header):
            return out[:used]
        more = np.empty((2 * len(out) + len(trees[0].points), 3), np.int64)
        more[:used] = out[:used]
        out = more


def content(server: SelectJoinServer, subscription: int) -> list[Row]:
    """What the client of a subscription is to hold now: for a new one, or one that missed
    something."""
    low, high = server.tree.bounds(np.array([subscription]))
    tables = server.tables
    out = np.empty((2, max(map(len, tables))), np.int64)
    counts = kernels.selected_rows(
        tuple(table.index for table in tables),
        server.join_values,
        low[0],
        high[0],
        SCHEMES[server.scheme].keeps_unjoined,
        out,
    )
    return [
        table.row(slot)
        for table, slots, count in zip(tables, out.tolist(), counts, strict=True)
        for slot in slots[:count]
    ]
