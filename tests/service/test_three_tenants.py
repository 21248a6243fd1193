"""Three tenants with random grants: each resource shows a tenant what an obvious oracle says that
it may see, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.stored_home import TENANTS, StoredHome
from tests.service.test_api import apply, serving

NAMES = ("News", "Rock", "Big", "Pairs", "Loud")
grants = st.dictionaries(
    st.tuples(st.sampled_from(TENANTS), st.sampled_from(NAMES), st.sampled_from([*TENANTS, "*"])),
    st.sampled_from(["read", "use"]),
    max_size=5,
)


@dataclass(frozen=True)
class Row:
    """An item of the log: who has it, by the naive evaluator."""

    position: int
    id: str
    owner: str
    feeds: frozenset[str]
    is_result: bool = False


class World(StoredHome):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rows: list[Row] = []
        self.clients: dict[str, httpx.Client] = {}
        names = {self.stored.number(name): name for name in self.stored.plans}
        for hour, tenant in enumerate(TENANTS):
            for title, n in (("rock", 1), ("jazz", 9), ("loud rock", 9)):
                id_ = f"{title} secret of {tenant}"
                position = self.put(tenant, id_, n, hours=hour)
                feeds = [names[each] for each in self.stored.feeds_of(self.stored.items[-1])[0]]
                self.rows.append(Row(position, id_, tenant, frozenset(feeds)))
            pair = self.put_pair(tenant, f"rock secret of {tenant}", "x", hours=hour)
            self.rows.append(
                Row(pair, "rock secret of " + tenant, tenant, frozenset([f"{tenant}.Pairs"]), True)
            )

    def setup(self) -> None:
        """Each tenant has a web feed, a subscription and a backtest."""
        self.clients = {each: self.client(each) for each in TENANTS}
        for tenant, client in self.clients.items():
            apply(client, f"register feed 'https://secret.{tenant}.example/' as Web;")
            mail = {"feed": "Rock", "output": "mail", "target": f"secret@{tenant}.org"}
            assert client.post("/v1/subscriptions", json=mail).status_code == 201
            tried = {"statement": f"create feed X from News where title contains '{tenant}';"}
            assert client.post("/v1/backtests", json=tried).status_code == 202

    def seen_by(self, tenant: str, granted: dict[tuple[str, str, str], str]) -> set[str]:
        """The definitions that a tenant sees, as they are kept."""
        own = {f"{tenant}.{name}" for name in NAMES}
        return own | {f"{o}.{name}" for o, name, to in granted if to in (tenant, "*")}

    def has_row(self, row: Row, seen: set[str]) -> bool:
        return bool(row.feeds & seen) or (not row.is_result and f"{row.owner}.News" in seen)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = World(Path(tmp_path_factory.mktemp("tenants")))
    with serving(home.headgate) as home.url:
        home.setup()
        yield home
        for client in home.clients.values():
            for each in client.get("/v1/backtests").json()["entries"]:
                client.delete(f"/v1/backtests/{each['id']}")
            client.close()
    home.catalog.close()


@given(granted=grants)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_tenant_sees_what_is_its_own_or_granted(
    world: World, granted: dict[tuple[str, str, str], str]
) -> None:
    def put(right: dict[tuple[str, str, str], str | None]) -> None:
        for (owner, name, to), each in right.items():
            body = {"definition": name, "tenant": to, "right": each}
            assert world.clients[owner].put("/v1/grants", json=body).status_code == 204

    put(dict(granted))
    try:
        for tenant, client in world.clients.items():
            seen = world.seen_by(tenant, granted)
            check_items(world, tenant, client, seen)
            check_stats(world, tenant, client, seen)
            check_own(world, tenant, client)
    finally:
        put(dict.fromkeys(granted))


def shown(tenant: str, kept: str) -> str:
    return kept.removeprefix(f"{tenant}.")


def check_items(world: World, tenant: str, client: httpx.Client, seen: set[str]) -> None:
    for row in world.rows:
        expected = world.has_row(row, seen)
        feeds = client.get(f"/v1/items/{row.position}/feeds")
        why = client.get("/v1/feeds/Rock/why", params={"position": row.position})
        by_id = client.post("/v1/why", json={"feed": "Rock", "id": row.id})
        assert feeds.status_code == why.status_code == (200 if expected else 404)
        if expected:
            names = [shown(tenant, each) for each in row.feeds & seen]
            assert sorted(feeds.json()["feeds"]) == sorted(names)
            assert why.json()["has"] == (f"{tenant}.Rock" in row.feeds)
            assert why.json()["item"].get("source") == (
                shown(tenant, f"{row.owner}.News") if f"{row.owner}.News" in seen else None
            )
        same_id = [each for each in world.rows if each.id == row.id]
        is_found = any(world.has_row(each, seen) for each in same_id)
        assert by_id.status_code == (200 if is_found else 404)
        if not is_found:
            nothing = client.get("/v1/items/99999/feeds").json()["detail"]
            there = feeds.json()["detail"].replace(str(row.position), "99999")
            assert there == nothing


def check_stats(world: World, tenant: str, client: httpx.Client, seen: set[str]) -> None:
    counts = {each["name"]: each["items"] for each in client.get("/v1/stats").json()["entries"]}
    assert counts.pop("Web") == 0
    assert counts == {
        shown(tenant, name): sum(
            name in row.feeds or (name == f"{row.owner}.News" and not row.is_result)
            for row in world.rows
        )
        for name in seen
    }
    for other in TENANTS:
        for name in NAMES:
            answer = client.get(f"/v1/feeds/{other}.{name}/stats")
            assert answer.status_code == (200 if f"{other}.{name}" in seen else 404)


def check_own(world: World, tenant: str, client: httpx.Client) -> None:
    """Lists of feeds, subscriptions and backtests are never shared."""
    opml = client.get("/v1/opml").text
    listed = client.get("/v1/backtests")
    (own,) = client.get("/v1/subscriptions").json()["entries"]
    for other, other_client in world.clients.items():
        assert (f"secret.{other}.example" in opml) == (other == tenant)
        assert (f"'{other}'" in listed.text) == (other == tenant)
        if other != tenant:
            number = own["id"]
            for answer in (
                other_client.get(f"/v1/subscriptions/{number}/deliveries"),
                other_client.post(f"/v1/subscriptions/{number}/replay", json={}),
                other_client.get(f"/v1/backtests/{listed.json()['entries'][0]['id']}"),
                other_client.delete(f"/v1/backtests/{listed.json()['entries'][0]['id']}"),
            ):
                assert answer.status_code == 404
