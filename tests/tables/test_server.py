"""For any history and scheme, each client holds its join and gets no row that it already holds."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Step, World, box, histories

from headgate.model.errors import InvalidValue, StateError
from headgate.tables.changes import JoinChange, columns_of
from headgate.tables.messages import JoinSide, MessageKind
from headgate.tables.recipients import content
from headgate.tables.rows_state import restore, save
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import SelectJoinServer

SHAPES = st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (2, 2)])
SEMIJOINS = [each for each in JoinScheme if "SJ" in each]
histories_by_shape = SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), histories(shape)))
Given = tuple[tuple[int, int], list[Step]]


@pytest.mark.parametrize("scheme", JoinScheme)
@given(given=histories_by_shape)
def test_each_client_holds_the_join(scheme: JoinScheme, given: Given) -> None:
    world = World(given[0], scheme)
    for step in given[1]:
        world.take(step)
        world.check()


@pytest.mark.parametrize("scheme", SEMIJOINS)
@given(given=histories_by_shape)
def test_no_client_gets_a_row_that_it_already_holds(scheme: JoinScheme, given: Given) -> None:
    """Theorem 2 and exposure: what is received is the difference of the semijoins, row by row, and
    each row is sent once for all who need it."""
    world = World(given[0], scheme)
    for step in given[1]:
        before = {number: _numbers(world, number) for number in world.clients}
        messages = world.take(step)
        if not isinstance(step, JoinChange):
            continue
        for number in world.clients:
            got = [message for each, message in world.received if each == number]
            inserted = [m.rows[0].number for m in got if m.kind is MessageKind.INSERT]
            assert len(inserted) == len(set(inserted))
            assert set(inserted) == _numbers(world, number) - before[number]
            deleted = {m.rows[0].number for m in got if m.kind is MessageKind.DELETE}
            assert deleted <= before[number] - _numbers(world, number)
        sent = [(m.kind, m.rows[0].number) for m in messages]
        assert len(sent) == len(set(sent))
        if given[0] == (1, 1) and scheme is not JoinScheme.REF_SJ_TUP:
            # What Tup says about a tuple that no one selects, and what the envelopes of several
            # attributes say, may be for no one.
            assert {id(message) for _, message in world.received} == {id(m) for m in messages}


def _numbers(world: World, number: int) -> set[int]:
    return {row.number for row in content(world.server, number)}


@given(given=histories_by_shape)
def test_descriptions_are_as_short_as_the_paper_says(given: Given) -> None:
    """Clu+ has no more pairs than Clu, and Clu no more than Tup, nor (one attribute) than Sub."""
    shape, steps = given
    worlds = {scheme: World(shape, scheme) for scheme in SEMIJOINS}
    for step in steps:
        size = {
            scheme: sum(len(m.region.pairs) for m in world.take(step))
            for scheme, world in worlds.items()
        }
        clu_plus, clu = size[JoinScheme.REF_SJ_CLU_PLUS], size[JoinScheme.REF_SJ_CLU]
        assert clu_plus <= clu <= size[JoinScheme.REF_SJ_TUP]
        if shape == (1, 1):
            assert clu <= size[JoinScheme.REF_SJ_SUB]


@given(given=histories_by_shape, data=st.data())
def test_batches_make_no_difference(given: Given, data: st.DataObject) -> None:
    shape, steps = given
    one, other = (World(shape, JoinScheme.REF_SJ_CLU_PLUS) for _ in range(2))
    changes = [step for step in steps if isinstance(step, JoinChange)]
    for step in steps:
        if not isinstance(step, JoinChange):
            one.take(step)
            other.take(step)
    while changes:
        count = data.draw(st.integers(1, len(changes)))
        alone = [repr(message) for each in changes[:count] for message in one.change([each])]
        assert alone == [repr(message) for message in other.change(changes[:count])]
        changes = changes[count:]
    other.check()


@given(given=histories_by_shape, split=st.integers(0, 20))
def test_a_restored_server_sends_the_same_messages(given: Given, split: int) -> None:
    shape, steps = given
    world = World(shape, JoinScheme.REF_SJ_CLU_PLUS)
    for step in steps[:split]:
        world.take(step)
    again = SelectJoinServer(shape)
    for number, bounds in world.bounds.items():
        again.subscribe(box(number, bounds))
    restore(again.rows, save(world.server.rows))
    for step in steps[split:]:
        if isinstance(step, JoinChange):
            assert [repr(m) for m in again.apply([step])] == [repr(m) for m in world.take(step)]


@given(given=histories_by_shape)
def test_a_second_index_gets_messages_from_the_same_rows(given: Given) -> None:
    """Both get what they would get alone, and rows taken silently are the same rows."""
    shape, steps = given
    both, quiet = SelectJoinServer(shape), SelectJoinServer(shape)
    other = SelectJoinServer(shape, scheme=JoinScheme.REF_J_PLUS)
    alone = SelectJoinServer(shape)
    for server in (both, alone, other):
        for step in steps:
            if (
                isinstance(step, tuple)
                and len(step) == 3
                and not server.tree.holds(np.array([step[1]]))
            ):
                server.subscribe(box(step[1], step[2]))
    for step in steps:
        if isinstance(step, JoinChange):
            columns = columns_of([step], shape)
            own, theirs = both.apply_for_both(columns, other.subscriptions)
            assert [repr(m) for m in own] == [repr(m) for m in alone.apply([step])]
            assert [repr(m) for m in theirs] == [repr(m) for m in other.apply([step])]
            quiet.apply_silently(columns)
            assert save(quiet.rows) == save(both.rows)


def test_keys_of_deleted_rows_are_freed() -> None:
    """An endless sequence of new keys needs room for the rows that there are."""
    server = SelectJoinServer(numbers=(1, 3))
    server.subscribe(box(0, ((0.0, 0.0), (9.0, 9.0))))
    for start in range(0, 60_000, 3_000):
        new = [
            JoinChange(JoinSide.LEFT, (n,), (n % 50,), (1.0,), b"x")
            for n in range(start, start + 3_000)
        ]
        server.apply(new)
        server.apply([JoinChange(JoinSide.LEFT, (n,)) for n in range(start, start + 2_990)])
    left = server.tables[0]
    assert len(left) == 200
    assert len(left.keys) < 10_000
    assert left.index.number[left.current_slots()].tolist()[-1] == 1 + 3 * 59_999
    messages = server.apply([JoinChange(JoinSide.RIGHT, ("r",), (59_999 % 50,), (1.0,))])
    assert {row.number for message in messages for row in message.rows} >= {1 + 3 * 59_999}


def test_a_restored_server_takes_more_rows_of_every_join_value() -> None:
    """Pieces have no room to spare then, and get some when they are moved."""
    few = [JoinChange(JoinSide.LEFT, (n,), (n,), (1.0,)) for n in range(1_000)]
    more = [JoinChange(JoinSide.LEFT, (n + 1_000,), (n,), (2.0,)) for n in range(1_000)]
    server, restored = SelectJoinServer(), SelectJoinServer()
    server.apply(few)
    restore(restored.rows, save(server.rows))
    for each in more:
        restored.apply([each])
        index = restored.tables[JoinSide.LEFT].index
        assert index.used[0] <= len(index.pool)
    server.apply(more)
    assert save(restored.rows) == save(server.rows)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_damaged_state_is_refused(cut: int) -> None:
    server = SelectJoinServer()
    server.apply([JoinChange(JoinSide.LEFT, ("k",), ("x",), (1.0,))])
    with pytest.raises(StateError, match="cannot be read"):
        restore(SelectJoinServer().rows, save(server.rows)[:cut])


def test_a_state_with_other_dimensions_is_refused() -> None:
    with pytest.raises(StateError, match=r"has \[1, 1\] selection attributes: expected \[2, 1\]"):
        restore(SelectJoinServer((2, 1)).rows, save(SelectJoinServer().rows))


def test_a_refused_batch_changes_nothing() -> None:
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    world.take(("subscribe", 1, ((0.0, 0.0), (9.0, 9.0))))
    before = save(world.server.rows)
    good, bad = (
        JoinChange(JoinSide.LEFT, ("k",), ("x",), values) for values in ((1.0,), (1.0, 2.0))
    )
    with pytest.raises(InvalidValue, match="has 2 selection values: expected 1"):
        world.server.apply([good, bad])
    assert save(world.server.rows) == before
    world.change([good])
    world.check()


def test_invalid_subscriptions_are_refused() -> None:
    server = SelectJoinServer()
    server.subscribe(box(3, ((0.0, 0.0), (1.0, 1.0))))
    with pytest.raises(InvalidValue, match="have 1 ranges: expected 2"):
        server.subscribe(box(4, ((0.0,), (1.0,))))
    with pytest.raises(InvalidValue, match="subscription 3 exists already"):
        server.subscribe(box(3, ((0.0, 0.0), (1.0, 1.0))))
    with pytest.raises(InvalidValue, match="there is no subscription 4"):
        server.unsubscribe(np.array([3, 4]))
    server.unsubscribe(np.array([3]))


def test_many_rows_of_one_join_value_and_many_join_values() -> None:
    """Rooms of the kernel and of the index grow, and gaps in the pool are closed."""
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    chance = np.random.default_rng(1)
    for number in range(20):
        low = float(chance.integers(0, 900))
        world.take(("subscribe", number, ((low, low / 2), (low + 90, low / 2 + 300))))
    for round_ in range(4):
        world.change(
            JoinChange(
                JoinSide(int(side)),
                (int(key),),
                (int(key) % (2 if round_ % 2 else 100),),
                (float(value),),
            )
            for side, key, value in chance.integers(0, [2, 400, 1_000], (600, 3)).tolist()
        )
    world.check()


def test_expired_rows_are_deleted() -> None:
    """What comes again stays longer, with the same values or others; a restart forgets nothing."""
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    world.take(("subscribe", 1, ((0.0, 0.0), (9.0, 9.0))))

    def row(key: int, value: float, until_s: float) -> JoinChange:
        return JoinChange(JoinSide.LEFT, (key,), ("x",), (value,), b"", until_s)

    world.change([JoinChange(JoinSide.RIGHT, ("r",), ("x",), (1.0,))])
    world.change([row(1, 1.0, 10), row(2, 2.0, 10), row(3, 3.0, 20), row(4, 4.0, 10)])
    world.change([row(2, 2.0, 30), row(4, 5.0, 30)])
    again = SelectJoinServer()
    again.subscribe(box(1, world.bounds[1]))
    restore(again.rows, save(world.server.rows))
    for server in (world.server, again):
        assert [[r.values for r in m.rows] for m in server.expire(9.9)] == []
        assert [m.rows[0].values for m in server.expire(20)] == [(1.0,), (3.0,)]
        assert list(server.expire(20)) == []
        assert [m.rows[0].values for m in server.expire(30)] == [(2.0,), (5.0,)]


def test_duckdb_finds_the_same_join() -> None:
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    chance = np.random.default_rng(3)
    for number in range(50):
        low = chance.integers(0, 80, 2).astype(float)
        high = low + chance.integers(0, 30, 2)
        world.take(("subscribe", number, (tuple(low.tolist()), tuple(high.tolist()))))
    for _ in range(5):
        world.change(
            JoinChange(JoinSide(side), (key,), (key % 7,), (float(value),) if value < 100 else None)
            for side, key, value in chance.integers(0, [2, 60, 120], (100, 3)).tolist()
        )
        held = [
            (number, one.join[0], one.values[0], other.values[0])
            for number, client in world.clients.items()
            for one, other in client.join()
        ]
        assert sorted(held) == _duckdb_join(world)


def _duckdb_join(world: World) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("create table x (n int, a_low int, c_low int, a_high int, c_high int)")
        boxes = [(n, *low, *high) for n, (low, high) in world.bounds.items()]
        connection.executemany("insert into x values (?, ?, ?, ?, ?)", boxes)
        for name, table, column in (("r", JoinSide.LEFT, "a"), ("s", JoinSide.RIGHT, "c")):
            connection.execute(f"create table {name} (b int, {column} double)")
            rows = [(*row.join, *row.values) for row in world.rows.values() if row.table is table]
            connection.executemany(f"insert into {name} values (?, ?)", rows)
        return connection.execute(
            "select n, b, a, c from r join s using (b) join x on a between a_low and a_high "
            "and c between c_low and c_high order by all"
        ).fetchall()


def test_the_example_of_the_paper() -> None:
    """§3.1: s4 alone goes to X1, which holds r2 … r20 already."""
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    world.take(("subscribe", 1, ((45.0, 6.0), (70.0, 10.0))))
    world.change(
        [JoinChange(JoinSide.LEFT, ("s1",), ("GOOG",), (51.7,))]
        + [JoinChange(JoinSide.RIGHT, (n,), ("GOOG",), (5.5 + n / 5,)) for n in range(20)]
    )
    (message,) = world.change([JoinChange(JoinSide.LEFT, ("s4",), ("GOOG",), (52.1,))])
    assert [row.values for row in message.rows] == [(52.1,)]
    assert len(message.region.pairs) == 1
