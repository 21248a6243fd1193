"""Deliveries in order, again, too early; and a client that needs nothing but Python."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Step, World, histories

from headgate.tables.client import Client, Gap
from headgate.tables.dispatch import content
from headgate.tables.messages import Message, Table
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import Change


def subscribed() -> tuple[World, Client]:
    world = World((1, 1), JoinScheme.REF_SJ_CLU_PLUS)
    world.take(("subscribe", 1, ((0.0, 0.0), (9.0, 9.0))))
    return world, world.clients[1]


@given(steps=histories((1, 1), churn=False), faults=st.lists(st.integers(0, 9), max_size=60))
def test_whatever_is_lost_or_repeated(steps: list[Step], faults: list[int]) -> None:
    """A client over a bad line holds the join whenever it does not know that it is stale."""
    world, _ = subscribed()
    client, sent = Client(), list[Message]()
    weak = iter(faults)
    for step in [step for step in steps if isinstance(step, Change)]:
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


def test_a_stale_client_keeps_what_it_has_and_takes_nothing() -> None:
    world, _ = subscribed()
    messages = world.change(
        [
            Change(Table.LEFT, (1,), ("x",), (1.0,)),
            Change(Table.RIGHT, (1,), ("x",), (1.0,)),
            Change(Table.RIGHT, (2,), ("x",), (2.0,)),
        ]
    )
    client = Client()
    assert client.receive(0, messages[0]) is None
    assert client.receive(2, messages[2]) == Gap(1, 2)
    assert client.receive(1, messages[1]) == Gap(1, 1)
    assert len(list(client.rows())) == 1


def test_a_client_needs_only_python() -> None:
    code = (
        "import sys; from headgate.tables.client import Client; Client();"
        "print(sorted({'numpy', 'numba', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
