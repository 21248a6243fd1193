"""Whatever the graph, the history, the decomposition and the scheme: clients hold their joins."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from bench.baselines.multiway import edge as semijoin_edge
from bench.baselines.multiway.graph import JoinGraph
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import SCHEMES, MultiwayServer
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.multiway.histories import (
    GRAPHS,
    MultiwayWorld,
    Step,
    Wish,
    histories,
    plain,
)
from tests.tables.histories import box

from headgate.model.errors import InvalidValue
from headgate.tables.boxes import Boxes
from headgate.tables.join_graph import Edge, SemijoinForm, Signature
from headgate.tables.messages import SemijoinAction
from headgate.tables.schemes import JoinScheme

Given = tuple[JoinGraph, list[Step]]
worlds = st.sampled_from(sorted(GRAPHS)).flatmap(
    lambda name: st.tuples(st.just(GRAPHS[name]), histories(GRAPHS[name]))
)
CHAIN = GRAPHS["chain"]
RST = Signature(("R", "S", "T"), CHAIN.edges)
BY_R, BY_T = (
    {
        "R": SemijoinForm("R", CHAIN.edges[0]),
        "S": SemijoinForm("S", edge),
        "T": SemijoinForm("T", CHAIN.edges[1]),
    }
    for edge in CHAIN.edges
)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(given=worlds)
def test_each_client_holds_its_join(scheme: JoinScheme, given: Given) -> None:
    """And gets just what is new: what is inserted is the difference of its semijoins, each row
    once, and nothing goes that is still in them."""
    world = MultiwayWorld(given[0], scheme)
    for step in given[1]:
        before = {number: _held(world, number) for number in world.clients}
        world.take(step)
        world.check()
        if not isinstance(step, TableChange):
            continue
        for number in world.clients:
            got = [message for each, message in world.received if each == number]
            came = [(m.row.table, m.row.number) for m in got if m.act is SemijoinAction.INSERT]
            assert len(came) == len(set(came))
            assert set(came) == _held(world, number) - before[number]
            gone = {(m.row.table, m.row.number) for m in got if m.act is SemijoinAction.DELETE}
            assert gone <= before[number] - _held(world, number)


def _held(world: MultiwayWorld, number: int) -> set[tuple[str, int]]:
    return {(row.table, row.number) for row in world.server.content(number)}


@given(given=worlds, data=st.data())
def test_batches_make_no_difference(given: Given, data: st.DataObject) -> None:
    graph, steps = given
    one, other = (MultiwayWorld(graph) for _ in range(2))
    changes = [step for step in steps if isinstance(step, TableChange)]
    for step in steps:
        if isinstance(step, Wish):
            one.take(step)
            other.take(step)
    while changes:
        count = data.draw(st.integers(1, len(changes)))
        for each in changes[:count]:
            one.change([each])
        other.change(changes[:count])
        changes = changes[count:]
        one.check()
        other.check()
    assert one.server.inserted == other.server.inserted


@given(given=worlds, data=st.data())
def test_the_decomposition_makes_no_difference_to_the_join(
    given: Given, data: st.DataObject
) -> None:
    graph, steps = given
    one, other = (MultiwayWorld(graph) for _ in range(2))
    for step in steps:
        one.take(step)
        if isinstance(step, Wish):
            forms = {t: data.draw(st.sampled_from(step.signature.forms(t))) for t in step.choice}
            other.take(Wish(step.number, step.signature, forms, step.bounds))
        else:
            other.take(step)
    for number in one.clients:
        one_join, other_join = (
            sorted(tuple(plain(row) for row in rows) for rows in world.clients[number].join())
            for world in (one, other)
        )
        assert one_join == other_join


@given(given=worlds, split=st.integers(0, 25), data=st.data())
def test_subscriptions_may_be_decomposed_anew(
    given: Given, split: int, data: st.DataObject
) -> None:
    graph, steps = given
    world = MultiwayWorld(graph)
    for step in steps[:split]:
        world.take(step)
    choices = {
        wish.signature: {
            table: data.draw(st.sampled_from(wish.signature.forms(table)))
            for table in wish.signature.tables
        }
        for wish in world.wishes.values()
    }
    kept = {n for n, wish in world.wishes.items() if choices[wish.signature] == wish.choice}
    before = dict(world.clients)
    world.redecompose(choices)
    assert {n for n, client in world.clients.items() if client is before[n]} == kept
    world.check()
    for step in steps[split:]:
        world.take(step)
        world.check()


def test_what_is_empty_is_said_once() -> None:
    """Three rows of R leave R^S with the last selected row of S, by one message without a row."""
    world = MultiwayWorld(CHAIN)
    world.take(Wish(1, RST, BY_T, ((0.0,) * 3, (9.0,) * 3)))
    world.change([TableChange("R", (n,), (1,), (float(n),), b"logo") for n in range(3)])
    world.change([TableChange("T", (1,), (7,), (1.0,))])
    world.change([TableChange("S", (n,), (1, 7), (value,)) for n, value in enumerate((3.0, 4.0))])
    assert len(list(world.clients[1].join())) == 6
    world.change([TableChange("S", (0,))])
    assert [message.act for _, message in world.received] == [SemijoinAction.DELETE]
    world.change([TableChange("S", (1,))])
    assert sorted(message.act for _, message in world.received) == [
        SemijoinAction.DELETE,
        SemijoinAction.EMPTY,
        SemijoinAction.EMPTY,
    ]
    assert [m.join for _, m in world.received if str(m.form) == "R^S"] == [(1,)]
    assert not list(world.clients[1].rows())


def test_a_row_that_is_moved_to_another_join_value_of_one_edge() -> None:
    """S's row stays in S^T, but with a new value of x: the client must learn it."""
    world = MultiwayWorld(CHAIN)
    world.take(Wish(1, RST, BY_T, ((0.0,) * 3, (9.0,) * 3)))
    world.change(
        [
            TableChange("R", (1,), (1,), (1.0,)),
            TableChange("T", (1,), (7,), (1.0,)),
            TableChange("S", (1,), (1, 7), (1.0,)),
        ]
    )
    assert len(list(world.clients[1].join())) == 1
    world.change([TableChange("S", (1,), (2, 7), (1.0,))])
    world.check()
    assert not list(world.clients[1].join())


def test_an_edge_is_there_while_it_is_used() -> None:
    world = MultiwayWorld(CHAIN)
    world.change([TableChange("R", (1,), (1,), (1.0,)), TableChange("S", (1,), (1, 7), (1.0,))])
    assert not world.server.edges
    rs = Signature(("R", "S"), CHAIN.edges[:1])
    choice = {table: rs.forms(table)[0] for table in rs.tables}
    world.take(Wish(1, rs, choice, ((0.0,) * 2, (9.0,) * 2)))
    assert list(world.server.edges) == [CHAIN.edges[0]]
    world.check()
    assert len(list(world.clients[1].join())) == 1
    world.take(1)
    assert not world.server.edges


def test_an_edge_that_comes_late_has_room_for_many_join_values() -> None:
    """A row for each of many join values is there when the edge is made; then more rows come."""
    world = MultiwayWorld(CHAIN)
    world.change([TableChange("R", (n,), (n,), (1.0,)) for n in range(500)])
    world.change([TableChange("S", (n,), (n, 7), (1.0,)) for n in range(500)])
    world.change([TableChange("T", (1,), (7,), (1.0,))])
    world.take(Wish(1, RST, BY_R, ((0.0,) * 3, (9.0,) * 3)))
    for n in range(500):
        world.change([TableChange("R", (n + 500,), (n,), (2.0,))])
    assert len(list(world.clients[1].join())) == 1_000


def test_an_edge_knows_join_values_that_only_one_table_has() -> None:
    """R, whose index is made first, has one of them, and S has 500."""
    world = MultiwayWorld(CHAIN)
    world.change([TableChange("R", (1,), (1,), (1.0,)), TableChange("T", (1,), (7,), (1.0,))])
    world.change([TableChange("S", (n,), (n, 7), (1.0,)) for n in range(500)])
    world.take(Wish(1, RST, BY_R, ((0.0,) * 3, (9.0,) * 3)))
    assert len(list(world.clients[1].join())) == 1


def test_join_values_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semijoin_edge, "CODES_MIN", 10)
    world = MultiwayWorld(CHAIN)
    world.take(Wish(1, RST, BY_R, ((0.0,) * 3, (9.0,) * 3)))
    world.change([TableChange("T", (1,), (7,), (1.0,))])
    for n in range(100):
        world.change(
            [
                TableChange("R", (1,), (n,), (1.0,), b"%d" % n),
                TableChange("S", (1,), (n, 7), (1.0,)),
            ]
        )
        world.check()
    (edge,) = (each for each in world.server.edges.values() if each.edge == CHAIN.edges[0])
    assert len(edge._codes) <= 20


def test_messages_after_the_last_subscription_are_for_no_one() -> None:
    world = MultiwayWorld(CHAIN)
    world.take(Wish(1, RST, BY_R, ((0.0,) * 3, (9.0,) * 3)))
    changes = [TableChange("R", (1,), (1,), (1.0,)), TableChange("S", (1,), (1, 7), (1.0,))]
    groups = world.server.apply(changes)
    assert groups
    world.server.unsubscribe(np.array([1]))
    assert [len(world.server.recipients(group)) for group in groups] == [0] * len(groups)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    server = MultiwayServer(CHAIN)
    good = TableChange("R", (1,), (1,), (1.0,))
    for bad, why in (
        (TableChange("R", (2,), (1,), (1.0, 2.0)), "has 2 selection values: expected 1"),
        (TableChange("R", (2,), (1, 2), (1.0,)), "row of 'R' has 2 join attributes: expected 1"),
        (TableChange("V", (2,)), "no table 'V' in the join graph: expected R, S, T"),
    ):
        with pytest.raises(InvalidValue, match=why):
            server.apply([good, bad])
        assert not len(server.stores["R"])
    with pytest.raises(InvalidValue, match="have 2 ranges: expected 3"):
        server.subscribe(RST, BY_T, box(1, ((0.0,) * 2, (9.0,) * 2)))
    with pytest.raises(InvalidValue, match="'R' has no semijoin in R ⋈ S ⋈ T"):
        server.subscribe(RST, {**BY_T, "R": BY_T["S"]}, box(1, ((0.0,) * 3, (9.0,) * 3)))
    other = Edge.between("R", "S", "y")
    with pytest.raises(InvalidValue, match="does not join 'R' and 'S' on y"):
        server.subscribe(Signature(("R", "S"), (other,)), {}, box(1, ((0.0,) * 2, (9.0,) * 2)))
    server.subscribe(RST, BY_T, box(1, ((0.0,) * 3, (9.0,) * 3)))
    with pytest.raises(InvalidValue, match="subscription 1 is there already"):
        server.subscribe(RST, BY_T, box(1, ((0.0,) * 3, (9.0,) * 3)))
    with pytest.raises(InvalidValue, match="there is no subscription 2"):
        server.unsubscribe(np.array([1, 2]))
    with pytest.raises(InvalidValue, match="multi-way joins have no Ref-J"):
        MultiwayServer(CHAIN, scheme=JoinScheme.REF_J)


def test_duckdb_finds_the_same_join() -> None:
    """A chain of three tables, 40 subscriptions with either decomposition, 500 changes."""
    world = MultiwayWorld(CHAIN)
    chance = np.random.default_rng(5)
    for number in range(40):
        low = chance.integers(0, 70, 3).astype(float)
        high = low + chance.integers(0, 40, 3)
        bounds = tuple(low.tolist()), tuple(high.tolist())
        world.take(Wish(number, RST, BY_R if number % 2 else BY_T, bounds))
    for _ in range(5):
        world.change(
            TableChange(
                "RST"[table],
                (key,),
                ((x,), (x, y), (y,))[table],
                (float(value),) if value < 100 else None,
            )
            for table, key, x, y, value in chance.integers(0, [3, 60, 5, 6, 120], (100, 5)).tolist()
        )
        held = [
            (number, *(value for row in rows for value in (*row.joins, *row.values)))
            for number, client in world.clients.items()
            for rows in client.join()
        ]
        assert held
        assert sorted(held) == _duckdb_join(world)


def _duckdb_join(world: MultiwayWorld) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        names = [f"{name}{at}" for name in ("low", "high") for at in range(3)]
        connection.execute(f"create table w (n int, {', '.join(f'{n} double' for n in names)})")
        boxes = [(n, *wish.bounds[0], *wish.bounds[1]) for n, wish in world.wishes.items()]
        connection.executemany(f"insert into w values (?{', ?' * 6})", boxes)
        for table, joins in (("R", "x"), ("S", "xy"), ("T", "y")):
            columns = ", ".join(f"{each} int" for each in joins)
            connection.execute(f"create table {table} ({columns}, v double)")
            rows = [(*r.joins, *r.values) for r in world.rows.values() if r.table == table]
            marks = ", ".join("?" * (len(joins) + 1))
            connection.executemany(f"insert into {table} values ({marks})", rows)
        return connection.execute(
            "select n, R.x, R.v, S.x, S.y, S.v, T.y, T.v from R join S using (x) join T using (y) "
            "join w on R.v between low0 and high0 and S.v between low1 and high1 "
            "and T.v between low2 and high2 order by all"
        ).fetchall()


def test_rooms_grow() -> None:
    """Many rows of one join value, many join values, and messages by the hundred."""
    world = MultiwayWorld(CHAIN)
    chance = np.random.default_rng(1)
    low = chance.integers(0, 900, (10, 3)).astype(float)
    for number in range(10):
        bounds = tuple(low[number].tolist()), tuple((low[number] + 200).tolist())
        world.take(Wish(number, RST, BY_R if number % 2 else BY_T, bounds))
    for round_ in range(3):
        world.change(
            TableChange(
                "RST"[table],
                (key,),
                (key % (3 if round_ % 2 else 90),) * (2 if table == 1 else 1),
                (float(value),),
            )
            for table, key, value in chance.integers(0, [3, 250, 1_000], (500, 3)).tolist()
        )
        for number in world.clients:
            rows = {(row.table, row.number) for row in world.clients[number].rows()}
            assert rows == _held(world, number)


def test_statistics_are_those_of_rows_and_insertions() -> None:
    """Six rows of R in two join values, of S three in one; the deletion does not count."""
    server = MultiwayServer(CHAIN)
    server.apply([TableChange("R", (n,), (n % 2,), (1.0,)) for n in range(6)])
    server.apply([TableChange("S", (n,), (7, None), (1.0,)) for n in range(3)])
    server.apply([TableChange("S", (9,), (None, 1), (1.0,)), TableChange("S", (9,))])
    found = server.statistics()
    assert found.rates == {"R": 0.6, "S": 0.4, "T": 0.0}
    first, second = CHAIN.edges
    assert found.rows_per_value == {
        ("R", first): 3.0,
        ("S", first): 3.0,
        ("S", second): 0.0,
        ("T", second): 0.0,
    }


def test_many_subscriptions_at_once() -> None:
    server = MultiwayServer(CHAIN)
    chance = np.random.default_rng(2)
    low = chance.integers(0, 80, (500, 3)).astype(float)
    server.subscribe(RST, BY_T, Boxes(np.arange(500), low, low + 20))
    assert server.signatures() == {RST: 500}
    server.unsubscribe(np.arange(0, 500, 2))
    assert server.signatures() == {RST: 250}
    assert server.choice(1) == BY_T
