"""The server of multi-way select-joins over a join graph: changes in, messages by group out (§4).

    changes ──► RowStore        the rows of each table, once
            ──► SemijoinEdge    for each edge in use: both indexes, the groups R^S and S^R
            ──► GroupMessages

Each subscription is decomposed into one semijoin for each of its tables (`tables/decompose.py`) and
so is in as many groups as it has tables. Law: if every message is given to the subscriptions of its
group that are in its region, each client holds exactly its semijoins, and their join is the
subscription's content.

An edge that no subscription uses costs nothing: it is made from the rows when the first one comes,
and dropped with the last one. A plain object: no clock, no network, no Spark. Edges know nothing of
each other, so each may be processed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.baselines.multiway.edge import Line, SemijoinEdge
from bench.baselines.multiway.graph import JoinGraph
from bench.baselines.multiway.group_messages import GroupMessages
from bench.baselines.multiway.rows import RowStore, TableChange
from headgate.model.errors import InvalidValue
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes
from headgate.tables.decompose import Choice, Decomposition, JoinStatistics, in_order
from headgate.tables.join_graph import Edge, SemijoinForm, Signature
from headgate.tables.messages import JoinSide, SemijoinRow
from headgate.tables.recipients import recipients
from headgate.tables.schemes import JoinScheme

SCHEMES = tuple(each for each in JoinScheme if "SJ" in each)


@dataclass(frozen=True, slots=True)
class _Subscribed:
    signature: Signature
    choice: Choice


class MultiwayServer:
    def __init__(
        self, graph: JoinGraph, *, scheme: JoinScheme = JoinScheme.REF_SJ_CLU_PLUS
    ) -> None:
        if scheme not in SCHEMES:
            raise InvalidValue(f"multi-way joins have no {scheme}: expected {', '.join(SCHEMES)}")
        self.graph = graph
        self.scheme = scheme
        self.stores = {name: RowStore(name, shape) for name, shape in graph.tables.items()}
        self.edges: dict[Edge, SemijoinEdge] = {}
        self.inserted: dict[str, int] = dict.fromkeys(graph.tables, 0)
        """How many new versions of rows each table got."""
        self._subscribed: dict[int, _Subscribed] = {}

    def subscribe(self, signature: Signature, choice: Choice, boxes: Boxes) -> None:
        """Add subscriptions of one signature, decomposed alike; `content` says what they hold.

        Bounds are those of the signature's tables one after the other.
        """
        self.graph.check(signature)
        columns = self.graph.columns(signature)
        width = columns[signature.tables[-1]].stop
        if boxes.low.shape[1] != width:
            raise InvalidValue(f"subscriptions have {boxes.low.shape[1]} ranges: expected {width}")
        for table in signature.tables:
            if choice.get(table) not in signature.forms(table):
                raise InvalidValue(f"'{table}' has no semijoin in {' ⋈ '.join(signature.tables)}")
        numbers = boxes.numbers.tolist()
        taken = self._subscribed.keys() & numbers
        if taken:
            raise InvalidValue(f"subscription {min(taken)} is there already")
        for table in signature.tables:
            edge = choice[table].edge
            if edge not in self.edges:
                self.edges[edge] = self._edge(edge)
            sides = np.r_[columns[edge.left], columns[edge.right]]
            low, high = boxes.low[:, sides], boxes.high[:, sides]
            self.edges[edge].groups[_base(table, edge)].subscribe(Boxes(boxes.numbers, low, high))
        subscribed = _Subscribed(signature, in_order(signature, choice))
        self._subscribed |= dict.fromkeys(numbers, subscribed)

    def unsubscribe(self, numbers: Longs) -> None:
        unknown = [each for each in numbers.tolist() if each not in self._subscribed]
        if unknown:
            raise InvalidValue(f"there is no subscription {unknown[0]}")
        by_form: dict[tuple[Edge, JoinSide], list[int]] = {}
        for number in set(numbers.tolist()):
            for table, form in self._subscribed.pop(number).choice.items():
                by_form.setdefault((form.edge, _base(table, form.edge)), []).append(number)
        for (edge, base), some in by_form.items():
            self.edges[edge].groups[base].unsubscribe(np.array(some))
        self.edges = {edge: each for edge, each in self.edges.items() if each.is_used}

    def redecompose(self, decomposition: Decomposition) -> Longs:
        """Let subscriptions of these signatures have other semijoins from now on, as costs have
        changed. Those that are returned have others now: their clients get their content anew."""
        moved: dict[tuple[Signature, frozenset[SemijoinForm]], list[int]] = {}
        for number, each in self._subscribed.items():
            if decomposition.get(each.signature, each.choice) != each.choice:
                alike = each.signature, frozenset(each.choice.values())
                moved.setdefault(alike, []).append(number)
        for (signature, _), some in moved.items():
            boxes = self._boxes(signature, np.array(some))
            self.unsubscribe(boxes.numbers)
            self.subscribe(signature, decomposition[signature], boxes)
        return np.array(sorted(number for some in moved.values() for number in some), np.int64)

    def _boxes(self, signature: Signature, numbers: Longs) -> Boxes:
        """The bounds of subscriptions of one signature, decomposed alike, from their groups."""
        columns, choice = self.graph.columns(signature), self.choice(int(numbers[0]))
        width = columns[signature.tables[-1]].stop
        low, high = np.empty((len(numbers), width)), np.empty((len(numbers), width))
        for table, form in choice.items():
            edge = self.edges[form.edge]
            left, own = self.graph.width(form.edge.left), _base(table, form.edge)
            part = slice(0, left) if own is JoinSide.LEFT else slice(left, None)
            lows, highs = edge.groups[own].tree.bounds(numbers)
            low[:, columns[table]], high[:, columns[table]] = lows[:, part], highs[:, part]
        return Boxes(numbers, low, high)

    def apply(self, changes: Iterable[TableChange]) -> list[GroupMessages]:
        """Take changes in their order; each group's messages are in the order that clients need.

        If one of them is refused, none is taken.
        """
        changes = list(changes)
        checked = [self._store(each.table).checked(each) for each in changes]
        for store in self.stores.values():
            store.begin_batch()
        for edge in self.edges.values():
            edge.tidy()
        lines: list[tuple[SemijoinEdge, list[Line]]] = [(e, []) for e in self.edges.values()]
        concerned = {
            table: [(e, _base(table, e.edge), some) for e, some in lines if e.edge.has(table)]
            for table in self.stores
        }
        for change, values in zip(changes, checked, strict=True):
            old, new = self._moved(change, values)
            self.inserted[change.table] += new is not None
            for edge, side, some in concerned[change.table]:
                some.extend(edge.lines(side, old, new))
        found = [group for edge, some in lines if some for group in edge.take(some)]
        return [group for group in found if len(group)]

    def _moved(
        self, change: TableChange, values: tuple[float, ...] | None
    ) -> tuple[int | None, int | None]:
        """The slots of the row before and after the change; none if it changes nothing."""
        store = self.stores[change.table]
        old = store.slot_of.get(change.key)
        if values is None:
            if old is not None:
                del store.slot_of[change.key]
                store.leave(old)
            return old, None
        if old is not None:
            if store.is_same(old, change, values):
                return None, None
            store.leave(old)
        return old, store.put(change, values)

    def recipients(self, group: GroupMessages) -> Longs:
        """Lines (subscription, first, end): messages first up to end, without end, are for it."""
        edge = self.edges.get(group.form.edge)
        if edge is None:  # its last subscription has gone since
            return np.empty((0, 3), np.int64)
        return recipients(edge.groups[group.base], group.messages).lines

    def content(self, number: int) -> list[SemijoinRow]:
        """What the client of a subscription is to hold now, in each of its semijoins."""
        found = []
        for table, form in self.choice(number).items():
            edge, base = self.edges[form.edge], _base(table, form.edge)
            low, high = edge.groups[base].tree.bounds(np.array([number]))
            store = self.stores[table]
            found += [store.row(slot) for slot in edge.content(base, low[0], high[0])]
        return found

    def choice(self, number: int) -> Choice:
        """The semijoins of a subscription, by table."""
        if number not in self._subscribed:
            raise InvalidValue(f"there is no subscription {number}")
        return self._subscribed[number].choice

    def signatures(self) -> Mapping[Signature, int]:
        """How many subscriptions have each signature."""
        found: dict[Signature, int] = {}
        for each in self._subscribed.values():
            found[each.signature] = found.get(each.signature, 0) + 1
        return found

    def statistics(self) -> JoinStatistics:
        """What the parametric cost model wants to know, as it was until now."""
        total = max(1, sum(self.inserted.values()))
        rates = {table: count / total for table, count in self.inserted.items()}
        rows_per_value = {}
        for edge in self.graph.edges:
            processed = self.edges.get(edge) or self._edge(edge)
            for side in JoinSide:
                table = (edge.left, edge.right)[side]
                rows_per_value[table, edge] = processed.rows_per_value(side)
        return JoinStatistics(rates, rows_per_value)

    def _edge(self, edge: Edge) -> SemijoinEdge:
        stores = self.stores[edge.left], self.stores[edge.right]
        return SemijoinEdge(edge, self.graph, stores, self.scheme)

    def _store(self, table: str) -> RowStore:
        if table not in self.stores:
            known = ", ".join(sorted(self.stores))
            raise InvalidValue(f"there is no table '{table}' in the join graph: expected {known}")
        return self.stores[table]


def _base(table: str, edge: Edge) -> JoinSide:
    return JoinSide.LEFT if table == edge.left else JoinSide.RIGHT
