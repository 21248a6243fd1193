"""Which joins are made anew when joins come and go: few, and O(log n) times each."""

from __future__ import annotations

from collections import Counter

from headgate.catalog.catalog import Catalog
from headgate.language import parse_script
from headgate.model.schema import Schema
from headgate.pipeline.join_layers import JoinLayers, Plans
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose_all
from headgate.plan.normalize import normalize_all
from headgate.windows.stage import JoinStage

COUNT = 100


def plans() -> tuple[dict[str, Plan], dict[str, Schema]]:
    from headgate.language.schemas import schemas_of

    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script("register stream P from json 'p' (k int);"))
        catalog.apply(parse_script("register stream W from json 'w' (k int);"))
        names = [f"J{n}" for n in range(COUNT)]
        joins = (
            f"create feed {name} from P as $p join last {n + 1} hours on W with $p[k = window.k];"
            for n, name in enumerate(names)
        )
        catalog.apply(parse_script("".join(joins)))
        definitions = catalog.definitions()
        schemas = {name: next(iter(schemas_of(name, definitions))) for name in ("P", "W")}
        return dict(normalize_all(compose_all(names, definitions))), schemas


def test_each_join_is_made_a_few_times_only() -> None:
    every, schemas = plans()
    made: Counter[str] = Counter()

    def make(own: Plans) -> JoinStage:
        made.update(list(own))
        return JoinStage(own, schemas)

    layers = JoinLayers(make)
    known: dict[str, Plan] = {}
    for name, plan in every.items():
        known = {**known, name: plan}
        layers.follow(known)
        layers.follow(known)
        assert layers.sources == {"P", "W"}
    assert set(made) == set(every)
    # One after the other would be 100 times for the first, 50 times for all on average.
    assert max(made.values()) < 40
    assert made.total() < 12 * COUNT
    made.clear()
    layers.follow({**known, "Again": known["J0"]})
    assert made["Again"] == 1
    assert made.total() < COUNT / 8
    few = dict(list(known.items())[:10])
    layers.follow(few)
    assert set(few) <= set(made)
    layers.follow({})
    assert layers.sources == frozenset()
    assert layers.next_decision() is None
