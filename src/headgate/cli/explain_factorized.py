"""`headgate explain --factorized SOURCE`: what the filters on a source share, and what it costs."""

from __future__ import annotations

import typer

from headgate.catalog.statistics import SourceStatistics
from headgate.cli.output import print_json, print_text
from headgate.factor.explain import factor_text
from headgate.factor.factorize import factorize
from headgate.language.schemas import Definitions, schemas_of
from headgate.language.unparse import unparse_filter
from headgate.model.atoms import Atom
from headgate.model.errors import alternatives
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names

BUDGET_S = 120.0
"""Whoever asks can wait; at the first time kernels are compiled, too."""


def print_factorized(
    source: str,
    definitions: Definitions,
    measured: SourceStatistics | None,
    *,
    as_json: bool,
) -> None:
    asked = leaves_by_source(normalize_all(compose_all(feed_names(definitions), definitions)))
    if source not in asked:
        known = f"; they read {alternatives(sorted(asked))}" if asked else ""
        raise typer.BadParameter(f"no feed reads '{source}'{known}")

    def selectivity(atom: Atom) -> float | None:
        return None if measured is None else measured.selectivity(unparse_filter(atom))

    schema = next(iter(schemas_of(source, definitions)))
    found = factorize(list(asked[source]), schema, measured=selectivity, budget_s=BUDGET_S)
    owners = [", ".join(users.names) for users in asked[source].values()]
    text = factor_text(found, [unparse_filter(each) for each in found.clauses], owners)
    told = "nothing was measured" if measured is None else f"{measured.items:,} items were measured"
    if as_json:
        print_json(
            {
                "source": source,
                "measured_items": 0 if measured is None else measured.items,
                "algorithm": found.choice.method,
                "cost": found.choice.tree.cost(),
                "naive_cost": found.filters.total_count,
                "expected_visits": found.choice.expected_visits,
                "plan": text.split("\n"),
            }
        )
    else:
        print_text(f"filter plan of {source} ({told})\n{text}\n")
