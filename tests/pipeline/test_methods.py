"""A run uses the methods that were chosen; tests of the stages show what that means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.catalog import Catalog
from headgate.deliver.settings import DeliverySettings
from headgate.factor.methods import METHOD_NAMES
from headgate.language.parse import parse_script
from headgate.model.errors import HeadgateError
from headgate.operators.orders.methods import EVALUATION_ORDERS
from headgate.pipeline.methods import Methods, describe_methods
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.tables.schemes import RUN_SCHEMES, JoinScheme

SCRIPT = """
register stream Tickets from json 't' (price int);
create feed Cheap from Tickets where price < 50;
"""


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"factorize": "prefixes"}, "did you mean 'prefix'?"),
        ({"operator_order": "adaptiv"}, "did you mean 'adaptive'?"),
        ({"join_scheme": "ref-sj-tub"}, "did you mean 'ref-sj-"),
        ({"join_scheme": "Rel-Sel"}, "a run cannot use the join scheme rel-sel"),
    ],
)
def test_an_unknown_name_is_refused(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(HeadgateError) as raised:
        Methods(**wrong)
    assert told in str(raised.value)


def test_every_method_has_a_line() -> None:
    assert all(" (default): " in line for line in describe_methods())
    every = [
        *({"factorize": name} for name in METHOD_NAMES),
        *({"operator_order": name} for name in EVALUATION_ORDERS),
        *({"join_scheme": name} for name in RUN_SCHEMES),
    ]
    lines = {line for each in every for line in describe_methods(Methods(**each))}
    assert len(lines) == len(every)
    assert sum(" (chosen): " in line for line in lines) == len(every) - 3


def composed(tmp_path: Path, **chosen: Any) -> tuple[Run, Catalog]:
    """A run that is not started: Spark has nothing to do for it."""
    catalog = Catalog.open(str(tmp_path / "catalog.db"))
    catalog.apply(parse_script(SCRIPT))
    settings = RunSettings(tmp_path / "data", DeliverySettings(tmp_path, tmp_path), **chosen)
    session = MagicMock()
    session.sparkContext.defaultParallelism = 2
    return Run(catalog, cast(SparkSession, session), settings), catalog


@pytest.mark.parametrize(
    ("methods", "factorised"),
    [
        (Methods(), "by prefix-by-use: fewer than 100 filters"),
        (Methods("vcb", "naive", "tup"), "by vcb: method vcb was requested"),
        (Methods("sta", "sub-order", "Ref-SJ-Sub"), "by sta: method sta was requested"),
    ],
)
def test_a_run_is_composed_of_the_chosen_methods(
    tmp_path: Path, methods: Methods, factorised: str
) -> None:
    run, catalog = composed(tmp_path, methods=methods)
    try:
        (layer,) = run.context.planner.update().snapshot.layers
        assert layer.factorize == methods.factorize
        assert factorised in layer.methods["Tickets"]
        assert run.context.operators.order == methods.operator_order
        assert run.queries.operators.order == methods.operator_order
        assert run.table_query.scheme is methods.scheme
    finally:
        run.stop()
        catalog.close()


def test_names_of_schemes_are_found() -> None:
    assert Methods(join_scheme="tup").scheme is JoinScheme.REF_SJ_TUP
    assert Methods().scheme is JoinScheme.REF_SJ_CLU_PLUS
