"""Results of joins of many tables are those of nested loops, change by change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.errors import InvalidValue
from headgate.tables import result_join as result_join_module
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes
from headgate.tables.changes import JoinChange, Mask, columns_of
from headgate.tables.recipients import may_be_selected, subscriptions_of_results
from headgate.tables.result_join import ResultJoin, order_from
from headgate.tables.rows_state import restore, save
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import SelectJoinServer
from headgate.tables.subscription_index import SubscriptionIndex

SHAPES = {
    "chain": [("x",), ("x", "y"), ("y",)],
    "star": [("x", "y", "z"), ("x",), ("y",), ("z",)],
    "triangle": [("x", "z"), ("x", "y"), ("y", "z")],
    "one attribute": [("x",), ("x",), ("x",)],
    "two attributes": [("x", "y"), ("y", "x"), ("y",)],
}
VALUES = st.sampled_from([0.0, 1.0, 2.0, 3.0])
JOINS = st.sampled_from([1, 2, "goog", True])
Version = tuple[int, float]
"""Of a row: the place of its change in the history, and its value."""


@st.composite
def histories(draw: st.DrawFn, attributes: Sequence[tuple[str, ...]]) -> list[list[JoinChange]]:
    def change() -> JoinChange:
        table = draw(st.integers(0, len(attributes) - 1))
        key = (draw(st.integers(0, 2)),)
        if draw(st.integers(0, 4)) == 0:
            return JoinChange(table, key)
        joins = tuple(draw(JOINS) for _ in attributes[table])
        return JoinChange(table, key, joins, (draw(VALUES),), draw(st.sampled_from([b"", b"a"])))

    return [
        [change() for _ in range(draw(st.integers(0, 8)))] for _ in range(draw(st.integers(1, 4)))
    ]


@dataclass
class NestedLoops:
    """Rows as dictionaries; a result is named by the changes that made its rows."""

    attributes: Sequence[tuple[str, ...]]
    rows: dict[tuple[int, object], tuple[int, JoinChange]] = field(default_factory=dict)
    count: int = 0

    def take(self, changes: Sequence[JoinChange]) -> set[tuple[int, ...]]:
        made: set[tuple[int, ...]] = set()
        before = set(self.results())
        for change in changes:
            key = change.table, change.key
            old = self.rows.pop(key, None)
            if change.values is not None:
                same = old is not None and replaced(old[1]) == replaced(change)
                self.rows[key] = old if same and old is not None else (self.count, change)
            self.count += 1
            after = set(self.results())
            made |= after - before
            before = after
        return made

    def results(self) -> Iterator[tuple[int, ...]]:
        tables = [
            [row for (own, _), row in self.rows.items() if own == table]
            for table in range(len(self.attributes))
        ]
        for rows in product(*tables):
            known: dict[str, object] = {}
            if all(
                repr(known.setdefault(name, value)) == repr(value)
                for (_, change), names in zip(rows, self.attributes, strict=True)
                for name, value in zip(names, change.join or (), strict=True)
            ):
                yield tuple(number for number, _ in rows)


def replaced(change: JoinChange) -> tuple[object, ...]:
    return repr(change.join), change.values, change.payload


def numbered(changes: Sequence[JoinChange], first: int) -> list[JoinChange]:
    """Payloads that say which change a row is of, behind what is compared."""
    return [
        JoinChange(
            each.table, each.key, each.join, each.values, each.payload + b"%04d" % (first + at)
        )
        for at, each in enumerate(changes)
    ]


def taken(server: ResultJoin, changes: Sequence[JoinChange], first: int) -> list[tuple[int, ...]]:
    columns = columns_of(numbered(changes, first), server.dimensions)
    columns.body_bytes[:] -= 4
    results = []
    for some in server.results(columns, lambda slots: np.ones(len(slots), np.bool_)):
        texts = [
            table.payloads_of(some.slots[:, at]) for at, table in enumerate(server.rows.tables)
        ]
        results += [tuple(int(each.encoded(at)[-4:]) for each in texts) for at in range(len(some))]
    return results


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60)
@given(data=st.data())
def test_results_are_those_of_nested_loops(shape: str, data: st.DataObject) -> None:
    """However rows are kept, reloaded or cut into blocks."""
    attributes = SHAPES[shape]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_join_module, "TAIL_MIN", data.draw(st.sampled_from([0, 3, 4_096])))
        patch.setattr(
            result_join_module, "COMBINATIONS_MAX", data.draw(st.sampled_from([1, 1 << 20]))
        )
        dimensions = [1] * len(attributes)
        server, oracle = ResultJoin(attributes, dimensions), NestedLoops(attributes)
        for changes in data.draw(histories(attributes)):
            if data.draw(st.booleans()):
                again = ResultJoin(attributes, dimensions)
                restore(again.rows, save(server.rows))
                server = again
            actual = taken(server, changes, oracle.count)
            expected = oracle.take(changes)
            assert len(set(actual)) == len(actual), "a result comes once"
            assert set(actual) == expected


def test_combinations_that_nobody_selects_are_dropped_early() -> None:
    server = ResultJoin([("x",), ("x",), ("x",)], [1, 1, 1])
    rows = [JoinChange(t, (k,), (1,), (float(k),)) for t in range(3) for k in range(4)]
    asked: list[int] = []

    def wanted(slots: Longs) -> Mask:
        asked.append(len(slots))
        values = np.column_stack([server.values(at, slots[:, at])[:, 0] for at in range(3)])
        actual: Mask = ((values < 2) | (slots < 0)).all(axis=1)
        return actual

    actual = list(server.results(columns_of(rows, server.dimensions), wanted))
    assert sum(map(len, actual)) == 2**3
    assert max(asked) == 2 * 2 * 4, "what is wanted, with all rows of one more table"


def test_subscriptions_with_a_result_are_those_whose_box_contains_it() -> None:
    rng = np.random.default_rng(5)
    low = rng.integers(0, 6, (200, 5)).astype(np.float64)
    high = low + rng.integers(0, 6, (200, 5))
    server = SelectJoinServer((2, 3))
    server.subscribe(Boxes(np.arange(200), low, high))
    points = rng.integers(0, 9, (40, 5)).astype(np.float64)
    index = SubscriptionIndex.of(
        (2, 3), server.tree_arrays, server.subscriptions.anchors, JoinScheme.REF_J
    )
    result, subscription = subscriptions_of_results(points, index, (2, 3))
    inside = (low <= points[:, None]) & (points[:, None] <= high)
    expected = {tuple(each) for each in np.argwhere(inside.all(axis=2)).tolist()}
    actual = list(zip(result.tolist(), subscription.tolist(), strict=True))
    assert len(actual) == len(set(actual))
    assert expected, "something is in a box"
    assert set(actual) == expected
    points[rng.random(points.shape) < 0.3] = np.nan
    inside = (low <= points[:, None]) & (points[:, None] <= high) | np.isnan(points[:, None])
    assert may_be_selected(points, index).tolist() == inside.all(axis=2).any(axis=1).tolist()


def test_tables_that_are_not_connected_are_refused() -> None:
    with pytest.raises(InvalidValue, match="not connected"):
        order_from(0, [("x",), ("y",)])
