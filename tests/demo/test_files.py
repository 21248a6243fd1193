"""Tickets and documents are right by their schemas."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.demo.demo import SCRIPT

from headgate.demo.files import NEWS, TICKETS
from headgate.demo.rhythm import Rhythm
from headgate.language import parse_script
from headgate.language.statements import RegisterStream
from headgate.model.items import attributes_of_json
from headgate.model.schema import DOCUMENT_SCHEMA, Schema
from headgate.model.text import parse_xml

numbers = st.integers(0, 10**9)


def ticket_schema() -> Schema:
    statements = parse_script(SCRIPT.read_text(encoding="utf-8"))
    (found,) = (each for each in statements if isinstance(each, RegisterStream))
    assert found.name == "Tickets"
    return Schema(found.attributes)


TICKET_SCHEMA = ticket_schema()


@given(numbers, st.integers(0, 100))
def test_a_ticket_is_read_as_it_was_made(number: int, seed: int) -> None:
    made = TICKETS.item(number, Rhythm(seed))
    text = TICKETS.text(made)
    assert text.count("\n") == 1
    assert attributes_of_json(json.loads(text), TICKET_SCHEMA) == made.attributes
    leaves = made.attributes["time"]
    assert made.time < leaves


@given(numbers, st.integers(0, 100))
def test_a_document_is_well_formed_and_has_items(number: int, seed: int) -> None:
    made = NEWS.item(number, Rhythm(seed))
    assert set(made.attributes) == set(DOCUMENT_SCHEMA.names)
    root = parse_xml(NEWS.text(made))
    assert root is not None
    assert 1 <= len(root.findall("item")) <= 3
    assert all(each.findtext("headline") for each in root.findall("item"))
