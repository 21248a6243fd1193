"""One edge of the join graph at the server: two indexes, and the groups R^S and S^R (§4).

    RowStore R ──► slots by join value ─┐                 ┌─► group R^S   its own subscriptions
                                        ├─► process_edge ─┤
    RowStore S ──► slots by join value ─┘                 └─► group S^R

Space: a number for each row and edge, as in the paper (one B-tree for each table and edge), and the
subscriptions of either group, twice: ordered for changes of either table. The subscriptions of a
group are kept by a two-way server that never gets a row, so that everything that finds recipients
works for groups too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.baselines.multiway.graph import JoinGraph
from bench.baselines.multiway.group_messages import EdgeRows, GroupMessages
from bench.baselines.multiway.rows import RowStore
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.join_graph import Edge, SemijoinForm
from headgate.tables.message_buffer import DELETE, INSERT, REPLACE, MessageBuffer
from headgate.tables.messages import JoinSide, Key, MessageBatch
from headgate.tables.recipients import selected_rows
from headgate.tables.schemes import JoinScheme
from headgate.tables.semijoin_messages import apply_edge_changes
from headgate.tables.server import SelectJoinServer
from headgate.tables.table_kernels import RowIndex, compact, compact_places

ROOM_MIN = 64
CODES_MIN = 1_024
Line = tuple[int, int, int, int, int]
"""A change as the kernel wants it: kind, side, join value, new slot, old slot."""


class JoinIndex:
    """The slots of one table by join value; the arrays are those of `table_kernels.Index`."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._start, self._size, self._capacity = (np.zeros(ROOM_MIN, np.int64) for _ in range(3))
        self._pool: Longs = np.zeros(ROOM_MIN, np.int64)
        self._used: Longs = np.zeros(1, np.int64)

    @property
    def index(self) -> RowIndex:
        """What the kernels see; valid until the store or the index grows."""
        pieces = self._start, self._size, self._capacity, self._pool, self._used
        return RowIndex(self._store.value, self._store.number, *pieces)

    def reserve(self, *, joins: int, places: int) -> None:
        """Have room for so many join values, and so many more places of the pool."""
        if joins > len(self._start):
            more = np.zeros(max(joins, 2 * len(self._start)) - len(self._start), np.int64)
            pieces = self._start, self._size, self._capacity
            self._start, self._size, self._capacity = (np.concatenate([p, more]) for p in pieces)
        if self._used[0] + places > len(self._pool):
            held = compact_places(self._size)
            pool = np.zeros(max(ROOM_MIN, 2 * (held + places)), np.int64)
            compact(self.index, pool)
            self._pool = pool

    def fill(self, slots: Longs, codes: Longs, *, joins: int) -> None:
        """Put all rows into an index that has none."""
        self.reserve(joins=joins, places=0)
        store = self._store
        order = np.lexsort((store.number[slots], store.value[slots, 0], codes))
        self._size[:joins] = np.bincount(codes, minlength=joins)
        self._capacity[:] = self._size
        self._start[1:] = np.cumsum(self._size)[:-1]
        self._pool = slots[order]
        self._used[0] = len(slots)


class SemijoinEdge:
    def __init__(
        self, edge: Edge, graph: JoinGraph, stores: tuple[RowStore, RowStore], scheme: JoinScheme
    ) -> None:
        self.edge = edge
        self.forms = SemijoinForm(edge.left, edge), SemijoinForm(edge.right, edge)
        left, right = stores
        shape = left.dimensions, right.dimensions
        self.groups = SelectJoinServer(shape, scheme=scheme), SelectJoinServer(shape, scheme=scheme)
        """The subscriptions of either form, by base."""
        self._stores = stores
        self._positions = tuple(
            tuple(graph.tables[name].join_attributes.index(each) for each in edge.on)
            for name in (edge.left, edge.right)
        )
        self._buffers = MessageBuffer(), MessageBuffer()
        self._fill()

    def _fill(self) -> None:
        """Make both indexes from the rows; join values that no row has are forgotten."""
        left, right = self._stores
        self._codes: dict[Key, int] = {}
        self._indexes = JoinIndex(left), JoinIndex(right)
        for rows, index in zip(self.rows(), self._indexes, strict=True):
            slots = rows.store.slot_of.values()
            codes = [(self._code(rows.key(slot)), slot) for slot in slots]
            there = np.array([each for each in codes if each[0] >= 0], np.int64).reshape(-1, 2)
            index.fill(there[:, 1], there[:, 0], joins=len(self._codes))
        for index in self._indexes:
            index.reserve(joins=len(self._codes), places=0)
        self._codes_most = max(CODES_MIN, 2 * len(self._codes))

    def tidy(self) -> None:
        """Forget join values that no row has any more, if there may be many; before a batch."""
        if len(self._codes) > self._codes_most:
            self._fill()

    def _code(self, key: Key | None) -> int:
        """The small number that stands for a join value; -1 if there is none."""
        return -1 if key is None else self._codes.setdefault(key, len(self._codes))

    @property
    def is_used(self) -> bool:
        """Whether any subscription has one of the two semijoins."""
        return any(len(group.tree) for group in self.groups)

    def rows(self) -> tuple[EdgeRows, EdgeRows]:
        left, right = (
            EdgeRows.of(self._stores[side], side, self._positions[side]) for side in JoinSide
        )
        return left, right

    def rows_per_value(self, side: JoinSide) -> float:
        """How many rows share a join value, of those that any row has."""
        sizes = self._indexes[side].index.size
        return float(sizes.sum() / max(1, np.count_nonzero(sizes)))

    def lines(self, side: JoinSide, old: int | None, new: int | None) -> Sequence[Line]:
        """What a change of a row from one slot to another means for this edge."""
        rows = EdgeRows.of(self._stores[side], side, self._positions[side])
        before = -1 if old is None else self._code(rows.key(old))
        after = -1 if new is None else self._code(rows.key(new))
        if old is not None and new is not None and before == after >= 0:
            return ((REPLACE, side, before, new, old),)
        gone: list[Line] = [] if old is None or before < 0 else [(DELETE, side, before, -1, old)]
        come: list[Line] = [] if new is None or after < 0 else [(INSERT, side, after, new, -1)]
        return gone + come

    def take(self, lines: Iterable[Line]) -> tuple[GroupMessages, GroupMessages]:
        """Apply changes; the messages of either group, by base."""
        changes = np.array(list(lines), np.int64).reshape(-1, 5)
        for each in self._indexes:
            each.reserve(joins=len(self._codes), places=0)
        indexes = [group.subscriptions for group in self.groups]
        is_used = np.array([len(group.tree) > 0 for group in self.groups])
        apply_edge_changes(changes, self._indexes, indexes, is_used, self._buffers)
        left, right = map(self._messages, JoinSide)
        return left, right

    def _messages(self, base: JoinSide) -> GroupMessages:
        rows = self.rows()
        written = MessageBatch(*self._buffers[base].written(), rows)
        return GroupMessages(self.forms[base], base, written, rows)

    def content(self, base: JoinSide, low: Floats, high: Floats) -> list[int]:
        """The slots of the base table's rows in the semijoin of one subscription."""
        tables = tuple(each.index for each in self._indexes)
        out = np.empty((2, max(1, *map(len, self._stores))), np.int64)
        counts = selected_rows(tables, len(self._codes), low, high, False, out)
        slots: list[int] = out[base, : counts[base]].tolist()
        return slots
