"""News of sites that are gone: all below hear them, and no rumour outlives its cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.relay.test_state import SITES, deployments, pair

from headgate.model.errors import RelayError
from headgate.relay.deployment import Deployment
from headgate.relay.outage_notices import RelayNews


def expected(deployment: Deployment, gone: set[tuple[str, str]]) -> dict[tuple[str, int], set[str]]:
    """By definition: a view waits for the suppliers that it is cut off from, here and before."""
    found: dict[tuple[str, int], set[str]] = {}

    def waits(site: str, number: int) -> set[str]:
        view = deployment.parts[site].views[number]
        if (site, number) not in found:
            if view.supplier and (view.supplier, site) in gone:
                found[site, number] = {view.supplier}
            elif view.supplier:
                found[site, number] = waits(view.supplier, number)
            else:
                found[site, number] = set().union(*(waits(site, each) for each in view.reads))
        return found[site, number]

    for site, part in deployment.parts.items():
        for number in part.views:
            waits(site, number)
    return {key: sites for key, sites in found.items() if sites}


@given(deployments(), st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=8))
def test_all_below_hear_of_it(deployment: Deployment, changes: list[tuple[int, bool]]) -> None:
    sites = {site: RelayNews(part) for site, part in deployment.parts.items()}
    links = [(s, site) for site, part in deployment.parts.items() for s in part.suppliers]
    gone: set[tuple[str, str]] = set()
    for which, lost in changes if links else []:
        supplier, reader = link = links[which % len(links)]
        if lost:
            gone.add(link)
            sites[reader].lost(supplier)
        else:
            gone.discard(link)
            sites[reader].found(supplier)
            sites[supplier].repeat(reader)
        for _ in SITES * len(deployment.views):
            for each, to in links:
                if (each, to) not in gone:
                    sites[to].hear(each, sites[each].take(to))
        told = {
            (site, number): set(waiting)
            for site, news in sites.items()
            for number, waiting in news.waits().items()
        }
        # What was heard before a connection was lost still counts: nobody knows better.
        for key, waiting in expected(deployment, gone).items():
            assert waiting <= told[key]
        if not gone:
            assert told == {}


def test_news_of_strange_views_are_refused() -> None:
    news = RelayNews(pair().parts["B"])
    with pytest.raises(RelayError, match="A has news of view 7, which it does not send"):
        news.hear("A", {7: ["Paris"]})
