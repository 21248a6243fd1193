"""Small networks of relays for tests: ports that are free, views over XMark-like documents."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import Axis, Mark, PatternNode
from headgate.relay.deployment import Address, Deployment, RelayView

TOKEN = "a token for tests only"
VAL, CONT = frozenset([Mark.VAL]), frozenset([Mark.CONT])


def child(label: str, *below: PatternNode, marks: frozenset[Mark] = frozenset()) -> PatternNode:
    return PatternNode(label, Axis.CHILD, marks, children=below)


TOPIC = PatternNode("item", children=(child("topic", marks=VAL),))
HEADLINE = PatternNode("item", children=(child("headline", marks=CONT),))
BOTH = PatternNode("item", children=(child("topic", marks=VAL), child("headline", marks=CONT)))
VIEWS = (
    RelayView("Topics", "Paris", TOPIC),
    RelayView("Headlines", "Rome", HEADLINE),
    RelayView("Both", "Oslo", BOTH, (0, 1), "Rome"),
    RelayView("Topics", "Oslo", TOPIC, (0,)),
    RelayView("Again", "Paris", BOTH, (2,)),
)
SITES = ("source", "Paris", "Rome", "Oslo")


def document(number: int) -> str:
    items = "".join(
        f"<item><topic>t{number % (each + 2)}</topic><headline>h <b>{each}</b></headline></item>"
        for each in range(number % 4)
    )
    return f"<news>{items}</news>"


def free_addresses(sites: Sequence[str]) -> dict[str, Address]:
    held = [socket.socket() for _ in sites]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return {
            site: Address("127.0.0.1", each.getsockname()[1])
            for site, each in zip(sites, held, strict=True)
        }
    finally:
        for each in held:
            each.close()


def news_network() -> Deployment:
    return Deployment("news", "source", free_addresses(SITES), VIEWS)


def refusal(call: Callable[[], object]) -> str | None:
    """Why a call was refused; None if it was not. Any other error is a test's failure."""
    try:
        call()
    except RelayError as error:
        return str(error)
    return None
