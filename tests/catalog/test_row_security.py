"""PostgreSQL's wall between tenants: it holds where the catalog's own conditions are left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, func, select, text
from tests.catalog.postgres_server import PostgresServer

from headgate.catalog import queries, tables
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import EVERYTHING, Right
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogUnavailable

pytestmark = pytest.mark.postgres
TENANTS = ("acme", "globex")
SCRIPT = """
register stream S from post (title text); create feed F from S; create feed G from F;
advertise S where title contains 'x';
subscribe to F output mail 'someone@example.org' for 2 days;
"""


def acting(catalog: Catalog, tenant: str) -> TenantCatalog:
    return catalog.acting_as(Principal(tenant, f"{tenant}'s", frozenset(Scope)))


@pytest.fixture
def walled(postgres_server: PostgresServer) -> Iterator[Catalog]:
    with Catalog.open(postgres_server.new_url()) as catalog:
        for tenant in TENANTS:
            catalog.add_tenant(tenant)
            own = acting(catalog, tenant)
            own.apply(parse_script(SCRIPT))
            own.issue_token([Scope.READ])
            own.create_link("F")
            own.suspend("G", "no reason")
        catalog.accounts.add("ada")
        catalog.accounts.join("ada", "acme", [Scope.READ])
        yield catalog


def count(connection: Connection, table: str) -> int:
    return int(connection.scalar(select(func.count()).select_from(text(table))) or 0)


def test_a_tenant_reads_its_own_rows(walled: Catalog) -> None:
    whole = walled._database
    with whole.reading() as all_rows, whole.for_tenant("acme").reading() as own_rows:
        for table in ("tokens", "links", "subscriptions"):
            assert (count(all_rows, table), count(own_rows, table)) == (2, 1)
        assert {row.tenant for row in own_rows.execute(select(tables.audit))} == {"acme"}
        for table in ("accounts", "memberships", "sessions"):
            assert count(own_rows, table) == 0
        assert count(all_rows, "accounts") == 1
        # Without the view's own condition.
        page = queries.subscriptions_page(
            own_rows,
            feed=None,
            after_id=0,
            limit=10,
            now=walled._clock(),
            view=EVERYTHING,
        )
        assert [each.feed for each in page] == ["acme.F"]


FORBIDDEN = [
    "UPDATE definitions SET cpu_us = 7",
    "UPDATE subscriptions SET target = 'me@example.org'",
    "DELETE FROM subscriptions",
    "DELETE FROM suspensions",
    "DELETE FROM uses",
    "DELETE FROM tokens",
    "UPDATE links SET definition = 'acme.F'",
    "DELETE FROM advertisements",
    "UPDATE audit SET actor = 'nobody'",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_tenant_changes_no_row_of_another(walled: Catalog, statement: str) -> None:
    whole = walled._database
    table = next(word for word in statement.split() if word in tables.metadata.tables)

    def rows_of_others() -> list[tuple[object, ...]]:
        with whole.reading() as connection:
            found = connection.execute(select(tables.metadata.tables[table]))
            return [tuple(row) for row in found if "globex" in str(row)]

    before = rows_of_others()
    assert before
    with whole.for_tenant("acme").writing() as connection:
        assert connection.execute(text(statement)).rowcount >= 1, "its own rows"
    assert rows_of_others() == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO grants VALUES ('globex.F', 'acme', 'use', now())",
        "INSERT INTO uses VALUES ('globex.S', 'acme.S')",
        "INSERT INTO quotas VALUES ('globex', 'requests', 0)",
        "INSERT INTO memberships VALUES ('ada', 'globex', 'admin')",
        "UPDATE subscriptions SET tenant = 'globex'",
        "UPDATE definitions SET tenant = 'globex' WHERE name = 'acme.G'",
    ],
)
def test_a_tenant_adds_no_row_to_another(walled: Catalog, statement: str) -> None:
    whole = walled._database
    with (
        pytest.raises(CatalogUnavailable, match="refuses this user"),
        whole.for_tenant("acme").writing() as connection,
    ):
        connection.execute(text(statement))


def test_what_tenants_may_do_still_works(walled: Catalog) -> None:
    acme, globex = (acting(walled, each) for each in TENANTS)
    acme.grant("F", "globex", Right.USE)
    globex.apply(parse_script("create feed H from acme.F; drop feed H;"))
    globex.apply(parse_script("subscribe to acme.F output mail 'b@example.org' for 2 days;"))
    with pytest.raises(Exception, match="2 subscriptions"):
        acme.apply(parse_script("drop feed G; drop feed F;"))
    acme.resume("G")
    (token,) = acme.list_tokens()
    acme.revoke_token(token.id)
    assert acme.dependents("F").other_subscriptions == 1
    assert len(walled.list_definitions(limit=100)) == 6
