"""`headgate account`: people who sign in to the service by a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.catalog.accounts import OWNER_ACCOUNT
from headgate.catalog.principals import OWNER, Scope, in_order
from headgate.catalog.tenants import LOCAL
from headgate.cli.access import shown
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line, print_table

account = typer.Typer(no_args_is_help=True, help="Accounts: people who sign in by a browser.")
Name = Annotated[str, typer.Argument(help="The account.")]
WithPassword = Annotated[
    bool, typer.Option("--password", help="Ask for a password; without it, it signs in by a link.")
]


@account.command()
def add(name: Name, password: WithPassword = False, catalog: CatalogUrl = CATALOG_DEFAULT) -> None:
    """Add an account. It can do nothing until it joins a tenant.

    [bold]headgate account add ada --password[/bold]
    """
    secret = _password() if password else None
    with open_headgate(catalog) as h:
        h.catalog.accounts.add(name, secret)
    print_line(f"added account {name}")


@account.command()
def remove(name: Name, catalog: CatalogUrl = CATALOG_DEFAULT) -> None:
    """Remove an account; it is signed out everywhere."""
    with open_headgate(catalog) as h:
        h.catalog.accounts.remove(name)
    print_line(f"removed account {name}")


@account.command()
def password(name: Name, catalog: CatalogUrl = CATALOG_DEFAULT) -> None:
    """Set the password of an account; it is signed out everywhere."""
    secret = _password()
    with open_headgate(catalog) as h:
        h.catalog.accounts.set_password(name, secret)
    print_line(f"the password of {name} is set")


@account.command()
def join(
    name: Name,
    tenant: Annotated[str, typer.Argument(help="The tenant.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What it may do there, may be repeated; none: it leaves the tenant."),
    ] = None,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Make an account a member of a tenant.

    [bold]headgate account join ada acme --scope read --scope write --scope subscribe[/bold]
    """
    with open_headgate(catalog) as h:
        h.catalog.accounts.join(name, tenant, scope or ())
    print_line(f"{name} {'may act for' if scope else 'has left'} {tenant}")


@account.command()
def link(
    name: Name,
    url: Annotated[
        str, typer.Option(envvar="HEADGATE_PUBLIC_URL", help="The URL of the service.")
    ] = "http://localhost:8080",
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Print a link by which somebody signs in once, within an hour.

    [bold]headgate account link ada --url https://news.example[/bold]
    """
    with open_headgate(catalog) as h:
        accounts = h.catalog.accounts
        if name == OWNER_ACCOUNT:
            accounts.owner()  # is made when it is first needed
        print_line(f"{url.rstrip('/')}/enter/{accounts.make_link(name)}")


@account.command("reader-password")
def reader_password(
    name: Name,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")] = LOCAL,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End it; feed readers are signed out.")
    ] = False,
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Make a password for feed readers on phones and desktops. It is shown once, and a password of
    before ends.

    [bold]headgate account reader-password ada --tenant acme[/bold]
    """
    with open_headgate(catalog) as h:
        passwords = h.catalog.reader_passwords
        if revoke:
            passwords.revoke(name, tenant, actor=OWNER.actor)
            print_line(f"the reader password of {name} for {tenant} is revoked")
            return
        made = passwords.create(name, tenant, actor=OWNER.actor)
    print_line(made.password)
    print_line(f"for {name}/{tenant}; it is not shown again")


@account.command("list")
def list_accounts(catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False) -> None:
    """List the accounts and their tenants."""
    with open_headgate(catalog) as h:
        found = h.catalog.accounts.list()
    if json:
        print_json(
            [
                {
                    "name": each.name,
                    "password": each.has_password,
                    "created_at": each.created_at,
                    "last_sign_in_at": each.last_sign_in_at,
                    "tenants": {
                        name: in_order(each.memberships[name]) for name in each.memberships
                    },
                }
                for each in found
            ]
        )
        return
    rows = [
        [
            each.name,
            "yes" if each.has_password else "",
            shown(each.created_at),
            shown(each.last_sign_in_at),
            "; ".join(f"{name}: {' '.join(in_order(s))}" for name, s in each.memberships.items()),
        ]
        for each in found
    ]
    print_table(("account", "password", "created", "signed in", "tenants"), rows)


def _password() -> str:
    secret: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return secret
