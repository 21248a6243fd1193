"""Delivery calls feeds and sources as the tenant of a subscription does, and names none that it
does not see."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import Right
from headgate.language.parse import parse_script


def acting(catalog: Catalog, tenant: str) -> TenantCatalog:
    return catalog.acting_as(Principal(tenant, f"{tenant}'s", frozenset(Scope)))


def test_names_of_feeds_and_sources() -> None:
    with Catalog.open("sqlite://") as catalog:
        for tenant in ("acme", "globex"):
            catalog.add_tenant(tenant)
        acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
        acme.apply(parse_script("register stream S from post (t text); create feed F from S;"))
        acme.grant("F", "globex", Right.READ)
        mail = "subscribe to {} output mail 'a@example.org' for 2 days;"
        acme.apply(parse_script(mail.format("F")))
        globex.apply(parse_script(mail.format("acme.F")))
        delivery = DeliveryCatalog(catalog)
        delivery.version()
        outputs = delivery.outputs([1, 2])
        assert [(each.tenant, each.feed) for each in outputs.values()] == [
            ("acme", "F"),
            ("globex", "acme.F"),
        ]
        own, other = (delivery.names_for(each.tenant, each.feed) for each in outputs.values())
        assert (own("acme.S"), other("acme.S")) == ("S", "acme.F")
        acme.grant("S", "globex", Right.READ)
        delivery.version()
        assert other("acme.S") == "acme.S"
        local = delivery.names_for("local", "X")
        assert (local("News"), local("acme.S")) == ("News", "X")
