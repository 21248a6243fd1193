"""Who uses a row, and which rows are needed: compared with the filters themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.match.strategies import SCHEMA, filters, items

from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.match.row_users import needed_rows, users_of_row
from headgate.model.evaluate import matches
from headgate.model.filters import Filter
from headgate.model.items import Item

TYPES = {str(each.name): each.type for each in SCHEMA.attributes}


@given(st.lists(filters, min_size=1, max_size=8), st.lists(items, max_size=8), st.data())
def test_muting_what_nobody_needs_changes_no_other_answer(
    given_filters: list[Filter], given_items: list[Item], data: st.DataObject
) -> None:
    program = compile_program(given_filters, SCHEMA)
    is_live = np.array(data.draw(st.lists(st.booleans(), min_size=8, max_size=8)))
    is_live = is_live[: len(given_filters)]
    needed = needed_rows(program, is_live)
    muted = frozenset(row for row in program.metered_rows if not needed[row])
    found = ProgramMatcher(program).match(batch_of_items(given_items, TYPES), muted)
    for number, item in enumerate(given_items):
        expected = {n for n, each in enumerate(given_filters) if is_live[n] and matches(each, item)}
        assert {n for n in found.of(number).tolist() if is_live[n]} == expected


@given(st.lists(filters, min_size=1, max_size=8))
def test_a_row_is_needed_exactly_by_its_users(given_filters: list[Filter]) -> None:
    program = compile_program(given_filters, SCHEMA)
    for row in range(program.row_count):
        users = set(users_of_row(program, row).tolist())
        for number in range(len(given_filters)):
            is_live = np.arange(len(given_filters)) == number
            assert needed_rows(program, is_live)[row] == (number in users)
