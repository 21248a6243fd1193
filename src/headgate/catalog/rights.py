"""What a tenant may do with a statement: see what it names, use it, touch the machine.

what a statement names       is seen, or the error is that of a name that does not exist
what a feed is built on      may be used, not only read
what it defines or drops     belongs to the tenant
files, topics, operators,    need the operator's permission (`may_use_machine`): they are those of
stylesheets                  the machine, and no tenant's
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.dependencies import names_in_ranges, names_used
from headgate.catalog.tenants import LOCAL, Right, owner_of, require_tenant, tenant_of
from headgate.catalog.transaction import Transaction
from headgate.language.check import check
from headgate.language.names import error_at
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Drop,
    Explain,
    Format,
    MaterializeFeed,
    OutputKind,
    RegisterDocuments,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
    Subscribe,
)

_OUTPUTS_OF_MACHINE = {OutputKind.FILE, OutputKind.KAFKA, OutputKind.CONSOLE}


def check_rights(transaction: Transaction, statement: Statement) -> None:
    """Raise an error that points at what the tenant may not do. Names are as `apply` has made them:
    one's own have no tenant before them."""
    _check_owner(transaction, statement)
    if transaction.view.is_whole:
        return
    _check_machine(transaction, statement)  # first: its error must not depend on other tenants
    definitions = transaction.definitions
    named = list(_names_in(statement, definitions))
    definitions.fetch(named)
    unseen = [name for name in named if definitions.entry(name) and not definitions.sees(name)]
    if unseen:
        with definitions.hiding(unseen):
            check(statement, definitions)  # says that there is no such name
    if isinstance(statement, CreateFeed | MaterializeFeed):
        for name in named:
            _check_use(definitions, name)


def _names_in(statement: Statement, definitions: CatalogDefinitions) -> Iterator[str]:
    if isinstance(statement, Explain):
        yield statement.feed
    yield from names_used(statement)
    if isinstance(statement, CreateFeed):
        yield from names_in_ranges(statement, definitions)


def _check_machine(transaction: Transaction, statement: Statement) -> None:
    if used := _use_of_machine(statement):
        tenant = require_tenant(transaction.connection, transaction.tenant)
        if not tenant.may_use_machine:
            name, what = used
            raise error_at(
                name,
                f"tenant '{tenant.name}' may not {what}",
                hint="the operator of this installation can allow it",
            )


def _check_owner(transaction: Transaction, statement: Statement) -> None:
    if isinstance(statement, Advertise):
        name = statement.source
    elif isinstance(statement, Subscribe | Explain) or not hasattr(statement, "name"):
        return
    else:
        name = statement.name
    view, definitions = transaction.view, transaction.definitions
    kept = view.kept(name)
    if isinstance(statement, Advertise | Drop):
        if definitions.sees(name) and not view.owns(kept):
            raise error_at(name, f"'{name}' belongs to another tenant")
        return
    if not view.owns(kept):
        raise error_at(name, f"'{name}' would be a name of another tenant")
    owner = owner_of(kept)
    if owner in (view.tenant, LOCAL) or definitions.entry(name) is not None:
        return
    if tenant_of(transaction.connection, owner) is None:
        raise error_at(
            name,
            f"there is no tenant '{owner}'",
            hint="a word with a dot behind it is the name of a tenant",
        )


def _check_use(definitions: CatalogDefinitions, name: str) -> None:
    entry = definitions.entry(name)
    if entry is not None and entry.right is Right.READ:
        raise error_at(
            name,
            f"'{name}' may be read and subscribed to, but no feed may be built on it",
            hint="its owner can grant that",
        )


def _use_of_machine(statement: Statement) -> tuple[str, str] | None:
    """The name that an error points at, and what of the machine the statement uses."""
    match statement:
        case RegisterStream(name, format_) | RegisterTable(name, format_):
            if format_ is not Format.POST:
                return name, f"read from {format_}: post events instead"
        case RegisterDocuments(name):
            return name, "read files"
        case RegisterOperator(name):
            return name, "register operators"
        case MaterializeFeed(name):
            return name, "use stylesheets"
        case Subscribe(feed, output, stylesheet):
            if output.kind in _OUTPUTS_OF_MACHINE:
                return feed, f"write to the output {output.kind}"
            if stylesheet is not None:
                return feed, "use stylesheets"
    return None
