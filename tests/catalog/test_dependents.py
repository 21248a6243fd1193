"""What is behind a definition, against a search through all statements."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.conftest import ManualClock

from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import Right
from headgate.language.parse import parse_script

TENANTS = ("local", "acme", "globex")


def acting(catalog: Catalog, tenant: str) -> TenantCatalog:
    return catalog.acting_as(Principal(tenant, f"{tenant}'s", frozenset(Scope)))


def execute(catalog: TenantCatalog, script: str) -> None:
    catalog.apply(parse_script(script))


graphs = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.lists(st.integers(0, 12), min_size=1, max_size=3),
        st.booleans(),
    ),
    max_size=12,
)


@given(graphs, st.integers(0, 12))
def test_dependents_are_all_that_reach_it(
    feeds: list[tuple[str, list[int], bool]], start: int
) -> None:
    clock = ManualClock()
    with Catalog.open("sqlite://", clock=clock) as catalog:
        for tenant in TENANTS[1:]:
            catalog.add_tenant(tenant)
        # Definition 0 is a source of local; definition n + 1 is feed n. Everybody may use all.
        owners, inputs = ["local"], [set[int]()]
        execute(acting(catalog, "local"), "register stream D0 from post (title text);")
        acting(catalog, "local").grant("D0", "*", Right.USE)
        subscribed: list[tuple[str, int]] = []
        for number, (owner, reads, is_subscribed) in enumerate(feeds, 1):
            read = {each % number for each in reads}
            names = [f"D{n}" if owners[n] == owner else f"{owners[n]}.D{n}" for n in sorted(read)]
            execute(acting(catalog, owner), f"create feed D{number} from ({' | '.join(names)});")
            acting(catalog, owner).grant(f"D{number}", "*", Right.USE)
            owners.append(owner)
            inputs.append(read)
            if is_subscribed:
                mail = f"subscribe to D{number} output mail 'a{number}@b.c' for 2 days;"
                execute(acting(catalog, owner), mail)
                subscribed.append((owner, number))
        start %= len(owners)
        reached: set[int] = set()
        for number in range(start + 1, len(owners)):
            if inputs[number] & {start, *reached}:
                reached.add(number)
        owner = owners[start]
        found = acting(catalog, owner).dependents(f"D{start}")
        assert set(found.feeds) == {f"D{n}" for n in reached if owners[n] == owner}
        assert found.other_feeds == sum(owners[n] != owner for n in reached)
        behind = [who for who, n in subscribed if n in {start, *reached}]
        assert found.subscriptions == behind.count(owner)
        assert found.other_subscriptions == len(behind) - behind.count(owner)
        involved = {owners[n] for n in reached} | set(behind)
        assert (set(found.tenants), found.other_tenants) == (
            involved & {owner},
            len(involved - {owner}),
        )
        whole = catalog.dependents(f"{owner}.D{start}" if owner != "local" else f"D{start}")
        assert len(whole.feeds) == len(reached)
        assert set(whole.tenants) == involved
        stranger = next(each for each in TENANTS if each != owner)
        seen = acting(catalog, stranger).dependents(f"{owner}.D{start}")
        assert set(seen.feeds) == {f"D{n}" for n in reached if owners[n] == stranger}
        assert (seen.other_feeds, seen.other_subscriptions, seen.other_tenants) == (0, 0, 0)


def test_subscriptions_that_have_ended_do_not_count() -> None:
    clock = ManualClock()
    with Catalog.open("sqlite://", clock=clock) as catalog:
        script = "register stream S from post (title text); create feed F from S;"
        execute(catalog, script + "subscribe to F output mail 'a@b.c' for 2 days;")
        assert catalog.dependents("S").subscriptions == 1
        clock.now += timedelta(days=3)
        assert catalog.dependents("S").subscriptions == 0
        assert catalog.dependents("S").feeds == ("F",)


def test_feeds_over_are_those_that_may_be_used() -> None:
    with Catalog.open("sqlite://") as catalog:
        for tenant in TENANTS[1:]:
            catalog.add_tenant(tenant)
        local, acme = acting(catalog, "local"), acting(catalog, "acme")
        execute(local, "register stream S from post (title text);")
        execute(local, "create feed A from S; create feed B from A; create feed C from S;")
        for name, right in (("S", Right.USE), ("A", Right.READ), ("B", Right.USE)):
            local.grant(name, "acme", right)
        execute(acme, "create feed Own from local.S;")
        assert [each.name for each in acme.feeds_over({"local.S"})] == ["Own", "local.B"]
        assert [each.name for each in local.feeds_over({"S"})] == ["A", "B", "C"]
        assert [each.name for each in acting(catalog, "globex").feeds_over({"local.S"})] == []
