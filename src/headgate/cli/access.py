"""`headgate tenant`, `token`, `link`, `grant`, `audit`: who owns what, who may act or read, and who
did what."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated

import typer

from headgate.api.arguments import duration_of
from headgate.api.headgate import open as open_headgate
from headgate.catalog.principals import OWNER, Principal, Scope
from headgate.catalog.tenants import LOCAL, Right
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl, PublicUrl
from headgate.cli.output import print_json, print_line, print_table
from headgate.model.errors import HeadgateError

ENTRIES_DEFAULT = 50
LINK_FORMATS = ("atom", "rss", "json", "html")
OfTenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]

tenant = typer.Typer(no_args_is_help=True, help="Tenants: who owns definitions and subscriptions.")
token = typer.Typer(no_args_is_help=True, help="API tokens: what programs authenticate with.")
link = typer.Typer(no_args_is_help=True, help="Links: where a feed is read without an account.")


def owner_of(tenant: str) -> Principal:
    """Who has the catalog may do everything in each tenant."""
    return Principal(tenant, OWNER.actor, OWNER.scopes)


def shown(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M}"


# --- tenants --------------------------------------------------------------------------------------


@tenant.command("add")
def add_tenant(
    name: Annotated[str, typer.Argument(help="Small letters, digits and '_'.")],
    machine: Annotated[
        bool,
        typer.Option(
            "--machine",
            help="It may name files, topics, operators and stylesheets of this machine.",
        ),
    ] = False,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Add a tenant. Its names are its own; another tenant writes NAME.Feed, if it was granted.

    [bold]headgate tenant add acme[/bold]
    """
    with open_headgate(catalog) as h:
        h.catalog.add_tenant(name, may_use_machine=machine)
    print_line(f"added tenant {name}")


@tenant.command("remove")
def remove_tenant(
    name: Annotated[str, typer.Argument(help="The tenant.")], catalog: CatalogUrl = CATALOG_DEFAULT
) -> None:
    """Remove a tenant that has no definitions and subscriptions any more, and its tokens."""
    with open_headgate(catalog) as h:
        h.catalog.remove_tenant(name)
    print_line(f"removed tenant {name}")


@tenant.command("list")
def list_tenants(catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False) -> None:
    """List the tenants, with how much each of them has."""
    with open_headgate(catalog) as h:
        found = [
            (each, h.catalog.acting_as(owner_of(each.name)).usage())
            for each in h.catalog.list_tenants()
        ]
    if json:
        print_json(
            [
                {
                    "name": each.name,
                    "created_at": each.created_at,
                    "machine": each.may_use_machine,
                    "usage": usage,
                }
                for each, usage in found
            ]
        )
        return
    rows = [
        [
            each.name,
            shown(each.created_at),
            "yes" if each.may_use_machine else "",
            *(f"{usage[name]:,.0f}" for name in list(usage)[:2]),
        ]
        for each, usage in found
    ]
    print_table(("tenant", "since (UTC)", "machine", "statements", "subscriptions"), rows)


# --- tokens ---------------------------------------------------------------------------------------


@token.command("issue")
def issue_token(
    scopes: Annotated[
        list[Scope] | None, typer.Option("--scope", help="What it may do, may be repeated.")
    ] = None,
    tenant: OfTenant = LOCAL,
    comment: Annotated[str, typer.Option(help="What it is for.")] = "",
    valid: Annotated[str, typer.Option("--for", help="How long it is valid.")] = "90 days",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Issue an API token. It is shown once; only its hash is kept.

    [bold]headgate token issue --tenant acme --scope read --scope post --comment till[/bold]
    """
    validity = timedelta(seconds=duration_of(valid).seconds)
    with open_headgate(catalog) as h:
        acts = h.catalog.acting_as(owner_of(tenant))
        issued = acts.issue_token(scopes or [Scope.READ], comment=comment, validity=validity)
    entry = issued.token
    if json:
        described = {"id": entry.id, "scopes": entry.scopes, "expires_at": entry.expires_at}
        print_json({"token": issued.text, **described})
        return
    print_line(issued.text)
    print_line(
        f"for tenant {entry.tenant}, {', '.join(entry.scopes)}, until {shown(entry.expires_at)} "
        "UTC; it is not shown again"
    )


@token.command("list")
def list_tokens(
    tenant: OfTenant = LOCAL, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False
) -> None:
    """List the tokens of a tenant, without their secrets."""
    with open_headgate(catalog) as h:
        found = h.catalog.acting_as(owner_of(tenant)).list_tokens()
    if json:
        print_json(
            [
                {
                    "id": each.id,
                    "scopes": each.scopes,
                    "comment": each.comment,
                    "created_by": each.created_by,
                    "created_at": each.created_at,
                    "expires_at": each.expires_at,
                    "last_used_at": each.last_used_at,
                }
                for each in found
            ]
        )
        return
    rows = [
        [
            each.id,
            " ".join(each.scopes),
            each.comment,
            each.created_by,
            shown(each.expires_at),
            shown(each.last_used_at),
        ]
        for each in found
    ]
    print_table(("token", "scopes", "comment", "made by", "expires", "last used"), rows)


@token.command("revoke")
def revoke_token(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As it is listed.")],
    tenant: OfTenant = LOCAL,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Revoke a token. The service refuses it within two seconds."""
    with open_headgate(catalog) as h:
        h.catalog.acting_as(owner_of(tenant)).revoke_token(id_)
    print_line(f"revoked token {id_}")


# --- links ----------------------------------------------------------------------------------------


@link.command("create")
def create_link(
    feed: Annotated[str, typer.Argument(help="A feed or source.")],
    tenant: OfTenant = LOCAL,
    comment: Annotated[str, typer.Option(help="Whom it is for.")] = "",
    public_url: PublicUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Create a link under which a feed is read as Atom, RSS, JSON Feed or HTML, without an account.

    It is shown once; only its hash is kept. 'headgate serve' answers it.

    [bold]headgate link create Rock --comment 'my feed reader'[/bold]
    """
    from headgate.deliver.settings import checked_public_url  # noqa: PLC0415 - it loads outputs

    try:
        public = checked_public_url(public_url)
    except HeadgateError as error:
        raise typer.BadParameter(str(error), param_hint="--public-url") from None
    with open_headgate(catalog) as h:
        created = h.catalog.acting_as(owner_of(tenant)).create_link(feed, comment=comment)
    base = f"{public}/f/{created.token}"
    urls = {suffix: f"{base}.{suffix}" for suffix in LINK_FORMATS}
    if json:
        print_json({"id": created.link.id, "feed": created.link.feed, "urls": urls})
        return
    for url in urls.values():
        print_line(url)
    print_line(f"link {created.link.id} to {created.link.feed}; it is not shown again")


@link.command("list")
def list_links(
    tenant: OfTenant = LOCAL,
    after: Annotated[str, typer.Option(metavar="ID", help="Begin behind this one.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = ENTRIES_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """List the links of a tenant, without their secrets."""
    with open_headgate(catalog) as h:
        acts = h.catalog.acting_as(owner_of(tenant))
        found, total = acts.list_links(after=after, limit=limit), acts.count_links()
    if json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        [each.id, each.feed, each.comment, each.created_by, *map(shown, times)]
        for each in found
        for times in [(each.created_at, each.last_used_at)]
    ]
    print_table(("link", "feed", "comment", "made by", "since (UTC)", "last used"), rows)
    if len(found) == limit < total:
        print_line(f"{total:,} in all; go on with --after {found[-1].id}")


@link.command("revoke")
def revoke_link(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As it is listed.")],
    tenant: OfTenant = LOCAL,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Revoke a link. The service refuses it within two seconds."""
    with open_headgate(catalog) as h:
        h.catalog.acting_as(owner_of(tenant)).revoke_link(id_)
    print_line(f"revoked link {id_}")


# --- grants, audit --------------------------------------------------------------------------------


def grant(
    name: Annotated[str, typer.Argument(help="A source, feed or operator.")],
    to: Annotated[str, typer.Option(help="A tenant, or '*' for all.")],
    right: Annotated[
        str, typer.Option(help="read: see items and subscribe; use: also build feeds on it; none.")
    ] = Right.READ.value,
    tenant: OfTenant = LOCAL,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Let another tenant read or use a definition of this one, or take that back.

    [bold]headgate grant News --to acme --right use[/bold]
    """
    known = {each.value: each for each in Right} | {"none": None}
    if right not in known:
        raise typer.BadParameter(f"expected {', '.join(known)}", param_hint="--right")
    with open_headgate(catalog) as h:
        h.catalog.acting_as(owner_of(tenant)).grant(name, to, known[right])
    whom = "every tenant" if to == "*" else f"tenant {to}"
    print_line(f"{whom} may {right} {name}" if known[right] else f"{whom} has no grant of {name}")


def audit(
    tenant: Annotated[
        str, typer.Option("--tenant", help="Of one tenant; without it, of all.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = ENTRIES_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show who did what, the newest first.

    [bold]headgate audit --tenant acme[/bold]
    """
    with open_headgate(catalog) as h:
        acts = h.catalog.acting_as(owner_of(tenant)) if tenant else h.catalog
        entries = acts.list_audit(limit=limit)
    if json:
        print_json(
            [
                {
                    "at": each.at,
                    "tenant": each.tenant,
                    "actor": each.actor,
                    "action": each.action,
                    "subject": each.subject,
                    "detail": each.detail,
                }
                for each in entries
            ]
        )
        return
    rows = [
        [f"{each.at:%Y-%m-%d %H:%M:%S}", each.tenant, each.actor, each.action, each.subject]
        for each in entries
    ]
    print_table(("at (UTC)", "tenant", "who", "did", "what"), rows)
