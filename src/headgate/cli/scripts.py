"""`headgate check`, `apply` and `drop`: check or apply a script, or drop one definition."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.catalog.transaction import Outcome
from headgate.cli.options import (
    CATALOG_DEFAULT,
    IN_MEMORY,
    AllowedModules,
    AsJson,
    CatalogUrl,
    Script,
    modules_of,
)
from headgate.cli.output import (
    error_json,
    exit_code,
    print_error,
    print_json,
    print_line,
    print_text,
    report_error,
    stderr,
)
from headgate.cli.show import print_listing
from headgate.language.names import Name
from headgate.language.parse import ReadScript, read_all
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Drop,
    Explain,
    MaterializeFeed,
    NameKind,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Show,
    Statement,
    Subscribe,
)
from headgate.model.errors import HeadgateError, LanguageError
from headgate.plan.price import Price

ERRORS_SHOWN_MAX = 20
OUTCOMES_SHOWN_MAX = 1_000
STATUS_EVERY = 1_000
PRICES_SHOWN_MAX = 10
PRICE_SHOWN_US, PRICE_SHOWN_BYTES = 50.0, 100_000_000
"""`check` shows the prices of feeds that add so much to an item, or need so much memory."""

Tickets = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the tickets and secrets of new subscriptions to this new file, readable by "
        "you only.",
    ),
]


def check(
    file: Script,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    operators: AllowedModules = "",
) -> None:
    """Check a script: its statements, names, types and plans. All errors are listed, and nothing
    is changed.

    The script is checked against the catalog if there is one, else on its own. Operators that
    cannot be loaded here are listed; that is not an error.

    [bold]headgate check examples/newsroom.feeds[/bold]
    """
    from headgate.api.check_script import check_script  # noqa: PLC0415 - operators

    text = read_text(file)
    script = _read_all(text)
    without_catalog = catalog == CATALOG_DEFAULT and not Path(catalog).exists()
    with open_headgate(IN_MEMORY if without_catalog else catalog) as h:
        checked = check_script(h.catalog, script, modules_of(operators))
        name = h.catalog.name
    if checked is None:
        _report_errors(script.errors, script.statements, text=text, file=file, as_json=json)
        raise typer.Exit(max(map(exit_code, script.errors)))
    cannot_run = list(checked.cannot_run)
    if json:
        result = {"file": str(file), "statements": len(checked.outcomes), "ok": True}
        prices = {"prices": {n: each.as_json() for n, each in checked.prices.items()}}
        print_json(result | prices | ({"cannot_run": cannot_run} if cannot_run else {}))
    else:
        against = "" if without_catalog else f", checked against {name}"
        print_line(f"{file}: {_summary(checked.outcomes)}{against}")
        for problem in cannot_run:
            print_line(f"cannot run here: {problem}")
        _print_prices(checked.prices)


def _print_prices(prices: Mapping[str, Price]) -> None:
    """The prices of the most expensive feeds; most feeds cost next to nothing."""
    notable = {
        name: price
        for name, price in sorted(prices.items(), key=lambda each: -each[1].cpu_us)
        if price.cpu_us >= PRICE_SHOWN_US or price.memory_bytes >= PRICE_SHOWN_BYTES
    }
    for name, price in list(notable.items())[:PRICES_SHOWN_MAX]:
        print_text(f"price of {name}: {price.text(brief=True)}")
    if len(notable) > PRICES_SHOWN_MAX:
        print_line(f"… and {len(notable) - PRICES_SHOWN_MAX:,} more feeds that cost something")


def apply(
    file: Script,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    tickets: Tickets = None,
) -> None:
    """Apply a script. If a statement is refused, nothing is applied.

    Definitions that are already registered do not change; every 'subscribe' makes a new
    subscription. A ticket is shown once: keep it to renew or end the subscription. So is the
    secret of a webhook.

    [bold]headgate apply examples/newsroom.feeds[/bold]
    """
    text = read_text(file)
    statements = read_statements(text, file=file, as_json=json)
    # Create the file first: a ticket that cannot be written afterwards would be lost.
    ticket_file = None if tickets is None else _new_private_file(tickets)
    with open_headgate(catalog) as h:
        outcomes = apply_script(h, statements, text=text, file=file, as_json=json)
        if ticket_file is not None:
            _write_tickets(ticket_file, outcomes)
        if json:
            print_json([outcome_json(outcome) for outcome in outcomes if outcome.action])
            return
        _print_outcomes(outcomes, h, with_tickets=ticket_file is None)


def drop(
    kind: Annotated[NameKind, typer.Argument(help="What it is.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Drop a source, feed or operator. If others use it, it stays and its users are named.

    [bold]headgate drop feed RockConcertStream[/bold]
    """
    with open_headgate(catalog) as h:
        print_outcome(h.apply_statement(Drop(kind, name)), as_json=json)


# --- reading and applying scripts, also used by other commands ----------------------------------


def read_text(file: Path) -> str:
    """The text of a script. A file that cannot be read ends the command with exit code 2."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start:,} is not UTF-8"
    print_error(f"{file} cannot be read: {reason}")
    raise typer.Exit(2)


def read_statements(text: str, *, file: Path, as_json: bool) -> list[Statement]:
    """All statements of a script. If it has errors, all are printed and the exit code is 1."""
    script = _read_all(text)
    if script.errors:
        _report_errors(script.errors, script.statements, text=text, file=file, as_json=as_json)
        raise typer.Exit(1)
    return script.statements


def _read_all(text: str) -> ReadScript:
    with stderr.status("reading the script …") as status:

        def show(number: int) -> None:
            if number % STATUS_EVERY == 0:
                status.update(f"reading the script … {number:,} statements")

        return read_all(text, show)


def _report_errors(
    errors: list[HeadgateError],
    statements: Sequence[Statement],
    *,
    text: str,
    file: Path,
    as_json: bool,
) -> None:
    lines = [_line(each, statements) for each in errors]
    for error in errors:
        if isinstance(error, LanguageError):
            error.within(text)
    if as_json:
        print_json({"errors": [error_json(error, file=str(file)) for error in errors]})
        return
    for error, line in list(zip(errors, lines, strict=True))[:ERRORS_SHOWN_MAX]:
        report_error(error, as_json=False, file=str(file), line=line)
    if len(errors) > ERRORS_SHOWN_MAX:
        print_error(f"… and {len(errors) - ERRORS_SHOWN_MAX:,} more errors in {file}")


def apply_script(
    h: Headgate,
    statements: Sequence[Statement],
    *,
    text: str,
    file: Path,
    as_json: bool,
    dry_run: bool = False,
) -> list[Outcome]:
    """Apply the statements. An error is printed with its line, and the command ends."""
    try:
        with stderr.status(f"applying {len(statements):,} statements …"):
            return h.apply(statements, text=text, dry_run=dry_run)
    except HeadgateError as error:
        report_error(error, as_json=as_json, file=str(file), line=_line(error, statements))
        raise typer.Exit(exit_code(error)) from None


def _line(error: HeadgateError, statements: Sequence[Statement]) -> int | None:
    """The line of the refused statement, if a name in it has a position."""
    number = error.statement_number
    if number is None:
        return None
    statement = statements[number - 1]
    names = (getattr(statement, field, None) for field in ("name", "feed", "source"))
    return next((name.position.line for name in names if isinstance(name, Name)), None)


def print_outcome(outcome: Outcome, *, as_json: bool, with_ticket: bool = True) -> None:
    if as_json:
        print_json(outcome_json(outcome))
        return
    print_line(outcome.action)
    if outcome.ticket and with_ticket:
        print_line(f"  ticket   {outcome.ticket}", style="bold")
    if outcome.secret and with_ticket:
        print_line(f"  secret   {outcome.secret}", style="bold")
    if outcome.expires_at:
        print_line(f"  expires  {outcome.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if outcome.is_pending:
        print_line(f"  waits    until {outcome.subscription_id} is confirmed by its reader")


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """The fields of the outcome that have a value."""
    fields: dict[str, object] = {
        "action": outcome.action,
        "name": outcome.name,
        "changed": outcome.changed,
        "subscription": outcome.subscription_id,
        "ticket": outcome.ticket,
        "secret": outcome.secret,
        "expires_at": outcome.expires_at.isoformat() if outcome.expires_at else None,
        "pending": outcome.is_pending or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _print_outcomes(outcomes: list[Outcome], h: Headgate, *, with_tickets: bool) -> None:
    for number, outcome in enumerate(outcomes):
        match outcome.statement:
            case Show(listing):
                print_listing(h, listing)
            case Explain(feed):
                print_text(h.explain(feed).text)
            case _ if number < OUTCOMES_SHOWN_MAX or (outcome.ticket and with_tickets):
                print_outcome(outcome, as_json=False, with_ticket=with_tickets)
    changed = sum(outcome.changed for outcome in outcomes)
    print_line(f"{changed:,} of {len(outcomes):,} statements changed the catalog")


def _new_private_file(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--tickets") from None


def _write_tickets(file: int, outcomes: list[Outcome]) -> None:
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        for outcome in outcomes:
            if outcome.ticket:
                secret = f" {outcome.secret}" if outcome.secret else ""
                stream.write(f"{outcome.ticket}{secret}\n")


def _summary(outcomes: Sequence[Outcome]) -> str:
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
