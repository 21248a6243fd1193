"""What names stood for at an instant: against a record of every change."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.conftest import ManualClock

from headgate.catalog import past_definitions
from headgate.catalog.catalog import Catalog
from headgate.catalog.past_definitions import KEPT
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.language.parse import parse_script
from headgate.language.unparse import unparse
from headgate.plan.explain import explain

WORDS = ("rock", "jazz", "folk")


def execute(catalog: TenantCatalog, script: str) -> None:
    catalog.apply(parse_script(script))


def acting(catalog: Catalog, tenant: str) -> TenantCatalog:
    return catalog.acting_as(Principal(tenant, f"{tenant}'s", frozenset(Scope)))


def at(catalog: TenantCatalog, instant: datetime) -> dict[str, str]:
    with catalog.looking_up_at(instant) as definitions:
        return {name: unparse(definitions[name]) for name in definitions}


def now_of(catalog: TenantCatalog) -> dict[str, str]:
    return {each.name: each.definition for each in catalog.list_definitions(limit=1_000)}


def test_a_feed_as_it_was(catalog: Catalog, clock: ManualClock) -> None:
    execute(catalog, "register feed https://a.b/c as News;")
    execute(catalog, "create feed Music from News where title contains 'rock';")
    first = clock.now
    clock.advance(days=2)
    execute(catalog, "drop feed Music;")
    clock.advance(days=1)
    execute(catalog, "create feed Music from News where title contains 'jazz';")
    versions = catalog.versions_of("Music")
    assert [("jazz" in each.definition, each.dropped_at) for each in versions] == [
        (True, None),
        (False, first + timedelta(days=2)),
    ]
    with catalog.looking_up_at(first) as definitions:
        assert "rock" in unparse(definitions["Music"])
        assert "rock" in explain("Music", definitions).text()
    assert sorted(at(catalog, first + timedelta(days=2))) == ["News"]
    assert at(catalog, clock.now) == now_of(catalog)
    assert at(catalog, first - timedelta(days=1)) == {}


changes = st.lists(
    st.tuples(
        st.sampled_from(["local", "acme"]),
        st.sampled_from(["F0", "F1", "F2"]),
        st.sampled_from(WORDS),
        st.integers(0, 3),
    ),
    max_size=20,
)


@given(changes)
def test_every_instant_is_as_it_was(history: list[tuple[str, str, str, int]]) -> None:
    clock = ManualClock()
    with Catalog.open("sqlite://", clock=clock) as catalog:
        catalog.add_tenant("acme")
        tenants = {name: acting(catalog, name) for name in ("local", "acme")}
        for tenant in tenants.values():
            execute(tenant, "register stream S from post (title text);")
        recorded: list[tuple[datetime, dict[str, dict[str, str]]]] = []
        for name, feed, word, minutes in history:
            tenant = tenants[name]
            if feed in now_of(tenant):
                execute(tenant, f"drop feed {feed};")
            else:
                execute(tenant, f"create feed {feed} from S where title contains '{word}';")
            recorded.append((clock.now, {key: now_of(each) for key, each in tenants.items()}))
            clock.advance(minutes=minutes)
        # Of changes at the same instant, the last one counts.
        for instant, expected in dict(recorded).items():
            assert {key: at(each, instant) for key, each in tenants.items()} == expected


def test_a_tenant_sees_the_past_of_its_own_names_only(catalog: Catalog, clock: ManualClock) -> None:
    catalog.add_tenant("acme")
    acme, local = acting(catalog, "acme"), acting(catalog, "local")
    execute(acme, "register stream S from post (title text); create feed F from S;")
    past = clock.now
    clock.advance(minutes=1)
    execute(acme, "drop feed F;")
    assert [each.name for each in acme.versions_of("F")] == ["F"]
    assert local.versions_of("acme.F") == local.versions_of("F") == []
    assert sorted(at(acme, past)) == ["F", "S"]
    assert at(local, past) == {}
    with local.looking_up_at(past) as definitions:
        assert not definitions.sees("acme.F")
    catalog.acting_as(acme.principal).apply(parse_script("drop stream S;"))
    catalog.remove_tenant("acme")
    catalog.add_tenant("acme")
    assert acting(catalog, "acme").versions_of("F") == []


def test_the_past_is_kept_for_some_time_and_in_some_number(
    catalog: Catalog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_definitions, "KEPT_PER_TENANT", 3)
    execute(catalog, "register stream S from post (title text);")
    for _ in range(5):
        execute(catalog, "create feed F from S;")
        clock.advance(hours=1)
        execute(catalog, "drop feed F;")
    assert len(catalog.versions_of("F")) == 3
    clock.advance(seconds=KEPT.total_seconds() + 1)
    execute(catalog, "create feed G from S; drop feed G;")
    assert catalog.versions_of("F") == []
    assert len(catalog.versions_of("G")) == 1
