"""A feed that is not registered, checked and planned as if it were: for backtests, suggestions and
comparisons."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, replace
from secrets import token_hex

from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import Right
from headgate.language.check import check
from headgate.language.parse import parse
from headgate.language.rename import rename_definitions
from headgate.language.statements import CreateFeed
from headgate.language.unparse import unparse
from headgate.model.errors import InvalidValue, LanguageError, UnknownName
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize
from headgate.plan.translate import compose


@dataclass(frozen=True, slots=True)
class PlannedFeed:
    text: str
    """As the tenant has written it."""
    statement: CreateFeed
    """Checked, with the names that the tenant uses."""
    plan: Plan
    """In normal form."""


def planned_statement(catalog: TenantCatalog, text: str) -> PlannedFeed:
    """A feed from its statement; errors point into the text. Its name may be taken already."""
    view = catalog.view
    try:
        statement = parse(text)
        if not isinstance(statement, CreateFeed):
            raise InvalidValue("this is about a feed: 'create feed …'")
        # Its own name may be taken; nobody has this one.
        statement = replace(statement, name=f"unregistered_{token_hex(8)}")
        if errors := catalog.find_errors([statement]):
            raise errors[0]
        usual = rename_definitions(statement, view.usual)
        with catalog.looking_up() as definitions:
            checked = check(usual, definitions)
            assert isinstance(checked, CreateFeed)
            with_it = ChainMap({statement.name: checked}, definitions)  # type: ignore[arg-type]
            plan = normalize(compose(statement.name, with_it))
    except LanguageError as error:
        raise error.within(text) from None
    return PlannedFeed(text, checked, plan)


def require_definition(name: str, definitions: CatalogDefinitions) -> None:
    """An error if the tenant may not see how this feed is made."""
    entry = definitions.entry(name)
    if entry is None or entry.right is not Right.USE:
        raise UnknownName(f"there is no feed '{name}' whose definition can be seen")


def planned_feed(name: str, definitions: CatalogDefinitions) -> PlannedFeed:
    """A registered feed whose definition the tenant may see."""
    require_definition(name, definitions)
    statement = definitions[name]
    if not isinstance(statement, CreateFeed):
        raise InvalidValue(f"'{name}' is a source, not a feed")
    return PlannedFeed(unparse(statement), statement, normalize(compose(name, definitions)))
