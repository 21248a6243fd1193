"""The plan of a source finds the feeds that the naive executor says, also from a file."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.plan.execute import execute
from tests.plan.papers import SECTION_3, defined
from tests.plan.strategies import OPERATORS, definitions, streams

from headgate.language.schemas import schemas_of
from headgate.language.statements import CreateFeed, Statement
from headgate.match.array_file import open_arrays, write_arrays
from headgate.match.batch import batch_of_items
from headgate.model.errors import SnapshotError
from headgate.model.items import Item
from headgate.model.values import Value, kind_of, kind_of_type
from headgate.pipeline.source_plan import (
    SourcePlan,
    open_source_plan,
    plan_sources,
    write_source_plan,
)
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all


def declared(some: list[Item], definitions: dict[str, Statement]) -> list[Item]:
    """Items of a source have no other attributes than it declares, and of no other type."""

    def own(item: Item) -> dict[str, Value]:
        (schema,) = schemas_of(item.source, definitions)
        kinds = {each.name: kind_of_type(each.type) for each in schema.attributes}
        return {
            name: value
            for name, value in item.attributes.items()
            if name in kinds and kind_of(value) is kinds[name]
        }

    return [replace(item, attributes=own(item)) for item in some]


def planned(definitions: dict[str, Statement], number_of: dict[str, int]) -> dict[str, SourcePlan]:
    plans = normalize_all(compose_all(number_of, definitions))
    return plan_sources(leaves_by_source(plans), definitions, number_of)


@given(definitions(), streams())
def test_feeds_and_inner_feeds_enclose_the_truth(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    feeds = [name for name, each in definitions.items() if isinstance(each, CreateFeed)]
    number_of = {name: 10 * n for n, name in enumerate(feeds)}
    plans = planned(definitions, number_of)
    items = {source: declared(some, definitions) for source, some in items.items()}
    composed = compose_all(feeds, definitions)
    for source, plan in plans.items():
        found = items.get(source, [])
        types = {str(each.name): each.type for each in plan.schema.attributes}
        matched = plan.match(batch_of_items(found, types))
        certain, possible = matched.feeds, matched.inner
        owners = None if plan.tests is None else plan.tests.subscriptions[plan.tests.owner]
        for name in feeds:
            output = {
                id_
                for item in execute(composed[name], items, OPERATORS)
                for at, id_ in zip(item.source.split("+"), item.id.split("+"), strict=True)
                if at == source
            }
            for at, item in enumerate(found):
                has, may_have = (number_of[name] in some.of(at) for some in (certain, possible))
                if owners is not None:
                    may_have |= number_of[name] in owners[matched.clauses.of(at)]
                assert not has or item.id in output
                assert has or may_have or item.id not in output


def test_branches_of_a_union_have_their_own_variables() -> None:
    """Each of them by itself says what its negation is about; together they need not."""
    known = defined(
        "register stream S from json '*.json' (a int);"
        "register operator below(n int) from 'some.where:below';"
        "create feed A from S where a = 0 and not (not below(?p));"
        "create feed B from S where not (not below(?p));"
        "create feed C from (A | B);"
    )
    plan = planned(known, {"C": 7})["S"]
    assert plan.tests is not None
    assert plan.tests.subscriptions.tolist() == [7]


def test_a_plan_in_a_file_is_the_same() -> None:
    known = defined(SECTION_3)
    feeds = ["RockConcertStream", "MusePhotoStream"]
    plans = planned(known, {name: n for n, name in enumerate(feeds)})
    plan = plans["EventAnnounces"]
    with tempfile.TemporaryDirectory() as folder:
        path = write_source_plan(Path(folder), plan)
        opened = open_source_plan(path)
        assert opened.schema == plan.schema
        assert write_source_plan(Path(folder), opened) == path
        item = Item(
            "x",
            "EventAnnounces",
            datetime(2026, 11, 16, tzinfo=UTC),
            {"title": "Rock", "description": "a concert of Muse"},
        )
        types = {str(each.name): each.type for each in plan.schema.attributes}
        matched = opened.match(batch_of_items([item], types))
    assert (matched.feeds.of(0).tolist(), matched.inner.of(0).tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("feed_start", [0, 9]), ("feeds", [-1]), ("inner_start", [0]), ("feed_start", [0, 1, 1])],
)
def test_a_file_with_wrong_numbers_is_refused(name: str, wrong: list[int], tmp_path: Path) -> None:
    known = defined("register stream T from json 'x' (a int); create feed A from T where a > 5;")
    plan = planned(known, {"A": 7})["T"]
    snapshot = open_arrays(write_source_plan(tmp_path, plan))
    arrays = {**snapshot.arrays, name: np.array(wrong, np.int32)}
    with pytest.raises(SnapshotError, match="holds no sound source plan"):
        open_source_plan(write_arrays(tmp_path, arrays, dict(snapshot.metadata)))
