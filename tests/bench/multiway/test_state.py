"""A server that begins again with its rows goes on as before."""

from __future__ import annotations

import math

import pytest
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from bench.baselines.multiway.state import restore, save
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.multiway.histories import GRAPHS, MultiwayWorld
from tests.bench.multiway.test_server import Given, worlds
from tests.tables.histories import box

from headgate.model.errors import StateError
from headgate.tables.boxes import MISSING
from headgate.tables.messages import SemijoinRow

CHAIN = GRAPHS["chain"]


@given(given=worlds, split=st.integers(0, 25))
def test_a_restored_server_goes_on_as_before(given: Given, split: int) -> None:
    """The same messages about the same versions of rows, whatever slots they are in."""
    graph, steps = given
    world = MultiwayWorld(graph)
    for step in steps[:split]:
        world.take(step)
    again = MultiwayServer(graph)
    restore(again, save(world.server))
    for number, wish in world.wishes.items():
        again.subscribe(wish.signature, wish.choice, box(number, wish.bounds))
    for step in steps[split:]:
        if isinstance(step, TableChange):
            ours = sorted(repr(m) for group in again.apply([step]) for m in group)
            assert ours == sorted(repr(m) for m in world.take(step))
    assert sorted(map(len, again.stores.values())) == sorted(map(len, world.server.stores.values()))


def test_a_missing_value_stays_missing() -> None:
    server, again = MultiwayServer(CHAIN), MultiwayServer(CHAIN)
    server.apply([TableChange("S", ("k",), (1, None), (math.nan,), b"")])
    restore(again, save(server))
    assert [row.values for row in _rows(again)] == [row.values for row in _rows(server)]
    assert [row.values for row in _rows(server)] == [(MISSING,)]


def _rows(server: MultiwayServer) -> list[SemijoinRow]:
    return [store.row(slot) for store in server.stores.values() for slot in store.slot_of.values()]


def saved() -> bytes:
    server = MultiwayServer(CHAIN)
    server.apply([TableChange("S", ("k",), (1, None), (1.0,), b"logo")])
    return save(server)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_damaged_state_is_refused(cut: int) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        restore(MultiwayServer(CHAIN), saved()[:cut])


def test_the_state_of_other_tables_is_refused() -> None:
    with pytest.raises(StateError, match="expected version 1 with"):
        restore(MultiwayServer(GRAPHS["star"]), saved())
