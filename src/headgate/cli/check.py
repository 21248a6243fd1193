"""`headgate check`: is a script right?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.cli.applying import apply_script
from headgate.cli.loadable import problems
from headgate.cli.options import (
    CATALOG_DEFAULT,
    IN_MEMORY,
    AllowedModules,
    AsJson,
    CatalogUrl,
    Script,
    modules_of,
)
from headgate.cli.output import print_json, print_line
from headgate.cli.read import read_statements, read_text
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
    Subscribe,
)
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names


def check(
    file: Script,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    operators: AllowedModules = "",
) -> None:
    """Check a script: its statements, names, types and plans. Nothing is changed.

    It is checked against the catalog, where there is one, and otherwise on its own. Operators that
    cannot be loaded here are named; that is no error.

    [bold]headgate check examples/newsroom.feeds[/bold]
    """
    text = read_text(file)
    statements = read_statements(text, file=file, as_json=json)
    alone = catalog == CATALOG_DEFAULT and not Path(catalog).exists()
    with Catalog.open(IN_MEMORY if alone else catalog) as opened:
        outcomes = apply_script(
            opened, statements, text=text, file=file, as_json=json, dry_run=True
        )
        known: dict[str, Statement] = {**opened.definitions()}
        name = opened.name
    defined = {str(each.name): each.statement for each in outcomes if _defines(each)}
    feeds = feed_names(defined)
    normalize_all(compose_all(feeds, known | defined))  # raises where a feed has no plan
    cannot_run = problems((each.statement for each in outcomes), modules_of(operators))
    if json:
        told = {"file": str(file), "statements": len(outcomes), "ok": True}
        print_json(told | ({"cannot_run": cannot_run} if cannot_run else {}))
    else:
        against = "" if alone else f", checked against {name}"
        print_line(f"{file}: {_summary(outcomes)}{against}")
        for problem in cannot_run:
            print_line(f"cannot run here: {problem}")


def _defines(outcome: Outcome) -> bool:
    return outcome.name is not None and hasattr(outcome.statement, "name")


def _summary(outcomes: list[Outcome]) -> str:
    """'5 statements are right (3 feeds, 2 subscriptions)'"""
    kinds = Counter(_kind(outcome.statement) for outcome in outcomes)
    listed = ", ".join(
        f"{count:,} {kind}{'' if count == 1 else 's'}" for kind, count in kinds.items()
    )
    total = len(outcomes)
    are = "statement is" if total == 1 else "statements are"
    return f"{total:,} {are} right" + (f" ({listed})" if listed else "")


def _kind(statement: Statement) -> str:
    match statement:
        case CreateFeed():
            return "feed"
        case Subscribe():
            return "subscription"
        case MaterializeFeed():
            return "materialised feed"
        case RegisterFeed() | RegisterStream() | RegisterTable() | RegisterDocuments():
            return "source"
        case RegisterOperator():
            return "operator"
        case Advertise():
            return "advertisement"
    return "other"
