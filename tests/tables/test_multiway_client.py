"""A client notices gaps, ignores what it knows, and begins anew."""

from __future__ import annotations

from tests.tables.multiway_histories import GRAPHS

from headgate.tables.client import Gap
from headgate.tables.join_graph import Signature
from headgate.tables.messages import Region, Table
from headgate.tables.multiway_client import MultiwayClient
from headgate.tables.multiway_messages import Act, SemijoinMessage
from headgate.tables.multiway_rows import TableRow

GRAPH = GRAPHS["chain"]
RST = Signature(("T", "R", "S"), GRAPH.edges)
CHOICE = {table: RST.forms(table)[0] for table in RST.tables}
ANYWHERE = Region(Table.LEFT, (0.0,), (), ())


def client() -> MultiwayClient:
    attributes = {name: shape.join_attributes for name, shape in GRAPH.tables.items()}
    return MultiwayClient(RST, CHOICE, attributes)


def inserted(table: str, number: int, *joins: int, replaces: int | None = None) -> SemijoinMessage:
    row = TableRow(number, table, joins, (1.0,))
    return SemijoinMessage(CHOICE[table], Act.INSERT, ANYWHERE, row=row, replaces=replaces)


def test_the_join_is_in_the_order_of_the_signature() -> None:
    """T and R have no attribute in common; S, which comes last, connects them."""
    found = client()
    some = [inserted("T", 1, 7), inserted("T", 2, 8), inserted("R", 1, 1), inserted("S", 1, 1, 7)]
    for at, message in enumerate(some):
        assert found.receive(at, message) is None
    ((t, r, s),) = found.join()
    assert [(each.table, each.number) for each in (t, r, s)] == [("T", 1), ("R", 1), ("S", 1)]


def test_an_empty_join_value_takes_its_rows_and_no_others() -> None:
    found = client()
    for at, number in enumerate((1, 2, 3)):
        found.receive(at, inserted("R", number, 1 if number < 3 else 2))
    found.receive(3, SemijoinMessage(CHOICE["R"], Act.EMPTY, ANYWHERE, join=(1,)))
    found.receive(4, SemijoinMessage(CHOICE["R"], Act.EMPTY, ANYWHERE, join=(9,)))
    assert [row.number for row in found.rows()] == [3]


def test_a_gap_is_said_and_healed() -> None:
    found = client()
    assert found.receive(0, inserted("R", 1, 1)) is None
    assert found.receive(0, inserted("R", 9, 9)) is None
    assert found.receive(2, inserted("R", 3, 1)) == Gap(1, 2)
    assert found.receive(1, inserted("R", 2, 1)) == Gap(1, 1)
    assert [row.number for row in found.rows()] == [1]
    found.resync([TableRow(5, "R", (1,), (1.0,))], expected=3)
    assert found.receive(3, inserted("R", 6, 1, replaces=5)) is None
    assert [row.number for row in found.rows()] == [6]
