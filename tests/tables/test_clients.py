"""Clients with lost, repeated and early deliveries; they need nothing but Python."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from tests.bench.multiway.histories import GRAPHS
from tests.tables.histories import Step, World, histories

from headgate.tables.changes import JoinChange
from headgate.tables.clients import Gap, JoinClient, MultiwayClient
from headgate.tables.join_graph import Signature
from headgate.tables.messages import (
    JoinMessage,
    JoinSide,
    Region,
    SemijoinAction,
    SemijoinMessage,
    SemijoinRow,
)
from headgate.tables.recipients import content
from headgate.tables.schemes import JoinScheme


def subscribed() -> tuple[World, JoinClient]:
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    world.take(("subscribe", 1, ((0.0, 0.0), (9.0, 9.0))))
    return world, world.clients[1]


@given(steps=histories((1, 1), churn=False), faults=st.lists(st.integers(0, 9), max_size=60))
def test_clients_recover_from_lost_and_repeated_deliveries(
    steps: list[Step], faults: list[int]
) -> None:
    """A client over a bad line holds the join whenever it does not know that it is stale."""
    world, _ = subscribed()
    client, sent = JoinClient(), list[JoinMessage]()
    weak = iter(faults)
    for step in [step for step in steps if isinstance(step, JoinChange)]:
        before = len(sent)
        world.take(step)
        sent += [message for number, message in world.received if number == 1]
        for number in range(before, len(sent)):
            fault = next(weak, 9)
            if fault == 0:
                continue  # lost
            for again in range(max(0, number - (fault == 1)), number + 1):
                gap = client.receive(again, sent[again])
                if gap is not None:
                    assert gap == Gap(client.expected, again)
                    assert client.is_stale
        if client.is_stale:
            client.resync(content(world.server, 1), expected=len(sent))
        if client.expected == len(sent):
            wanted = {(one.number, other.number) for one, other in world.clients[1].join()}
            assert {(one.number, other.number) for one, other in client.join()} == wanted
            assert not client.is_stale


def test_a_stale_client_keeps_its_rows_and_refuses_deliveries() -> None:
    world, _ = subscribed()
    messages = world.change(
        [
            JoinChange(JoinSide.LEFT, (1,), ("x",), (1.0,)),
            JoinChange(JoinSide.RIGHT, (1,), ("x",), (1.0,)),
            JoinChange(JoinSide.RIGHT, (2,), ("x",), (2.0,)),
        ]
    )
    client = JoinClient()
    assert client.receive(0, messages[0]) is None
    assert client.receive(2, messages[2]) == Gap(1, 2)
    assert client.receive(1, messages[1]) == Gap(1, 1)
    assert len(list(client.rows())) == 1


def test_a_client_imports_no_numpy_or_numba() -> None:
    code = (
        "import sys; from headgate.tables.clients import JoinClient; JoinClient();"
        "print(sorted({'numpy', 'numba', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Clients of multi-way joins.

GRAPH = GRAPHS["chain"]
RST = Signature(("T", "R", "S"), GRAPH.edges)
CHOICE = {table: RST.forms(table)[0] for table in RST.tables}
ANYWHERE = Region(JoinSide.LEFT, (0.0,), (), ())


def client() -> MultiwayClient:
    attributes = {name: shape.join_attributes for name, shape in GRAPH.tables.items()}
    return MultiwayClient(RST, CHOICE, attributes)


def inserted(table: str, number: int, *joins: int, replaces: int | None = None) -> SemijoinMessage:
    row = SemijoinRow(number, table, joins, (1.0,))
    return SemijoinMessage(
        CHOICE[table], SemijoinAction.INSERT, ANYWHERE, row=row, replaces=replaces
    )


def test_the_join_is_in_the_order_of_the_signature() -> None:
    """T and R have no attribute in common; S, which comes last, connects them."""
    actual = client()
    some = [inserted("T", 1, 7), inserted("T", 2, 8), inserted("R", 1, 1), inserted("S", 1, 1, 7)]
    for at, message in enumerate(some):
        assert actual.receive(at, message) is None
    ((t, r, s),) = actual.join()
    assert [(each.table, each.number) for each in (t, r, s)] == [("T", 1), ("R", 1), ("S", 1)]


def test_an_empty_join_value_removes_only_its_rows() -> None:
    actual = client()
    for at, number in enumerate((1, 2, 3)):
        actual.receive(at, inserted("R", number, 1 if number < 3 else 2))
    actual.receive(3, SemijoinMessage(CHOICE["R"], SemijoinAction.EMPTY, ANYWHERE, join=(1,)))
    actual.receive(4, SemijoinMessage(CHOICE["R"], SemijoinAction.EMPTY, ANYWHERE, join=(9,)))
    assert [row.number for row in actual.rows()] == [3]


def test_a_gap_is_reported_and_ends_with_a_resync() -> None:
    actual = client()
    assert actual.receive(0, inserted("R", 1, 1)) is None
    assert actual.receive(0, inserted("R", 9, 9)) is None
    assert actual.receive(2, inserted("R", 3, 1)) == Gap(1, 2)
    assert actual.receive(1, inserted("R", 2, 1)) == Gap(1, 1)
    assert [row.number for row in actual.rows()] == [1]
    actual.resync([SemijoinRow(5, "R", (1,), (1.0,))], expected=3)
    assert actual.receive(3, inserted("R", 6, 1, replaces=5)) is None
    assert [row.number for row in actual.rows()] == [6]
