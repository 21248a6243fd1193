"""`headgate deliveries` and `replay`: how far the deliveries of a subscription are, what was given
up, and sending again."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    LogUrl,
    RunFolder,
    StateUrl,
    existing_folder,
    log_option,
)
from headgate.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from headgate.deliver.replay import NumberedLetter, Replayed

SubscriptionNumber = Annotated[
    int, typer.Argument(metavar="SUBSCRIPTION", min=1, help="Its number.", show_default=False)
]
ERROR_SHOWN_MAX = 80


def deliveries(
    subscription: SubscriptionNumber,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Dead letters that are shown.")] = 20,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    state: StateUrl = "",
    *,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show how far the deliveries of a subscription are, and its dead letters.

    [bold]headgate deliveries 17[/bold]
    """
    where = existing_folder(folder, log)
    with open_headgate(catalog, folder=where, log=log_option(log), state=state) as h:
        found = h.deliveries(subscription)
        letters = h.dead_letters(subscription, limit=limit)
    progress = found.progress
    if json:
        print_json(
            {
                "subscription": subscription,
                "state": found.state,
                "cursor": progress.cursor,
                "waiting": found.waiting,
                "failures": progress.failures,
                "retrying": progress.retrying,
                "dead": progress.dead,
                "last_error": progress.error or None,
                "next_attempt": found.next_attempt,
                "letters": [{**asdict(each), "died_at": _died_at(each)} for each in letters],
            }
        )
        return
    print_line(
        f"subscription {subscription} is {found.state}: {found.waiting:,} items waiting, "
        f"{progress.retrying:,} messages retried, {progress.dead:,} dead"
    )
    if progress.error:
        print_line(f"last error: {progress.error}")
    if letters:
        rows = [
            [
                *(str(each.number), f"{_died_at(each):%Y-%m-%d %H:%M:%S}", f"{each.item_count:,}"),
                *(f"{each.attempts:,}", each.error[:ERROR_SHOWN_MAX]),
            ]
            for each in letters
        ]
        print_table(["letter", "died at", "items", "attempts", "error"], rows)


def replay(
    subscription: SubscriptionNumber,
    letter: Annotated[int, typer.Option(min=0, help="Only this dead letter.")] = 0,
    since: Annotated[
        int, typer.Option(min=-1, metavar="POSITION", help="All since this position of the log.")
    ] = -1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much it would be.")
    ] = False,
    folder: RunFolder = FOLDER_DEFAULT,
    *,
    log: LogUrl = "",
    state: StateUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Send the dead letters of a subscription again, or all since a position, under the same ids.
    A subscription whose receiver was gone goes on.

    [bold]headgate replay 17[/bold]

    [bold]headgate replay 17 --since 4711 --dry-run[/bold]
    """
    if letter and since >= 0:
        raise typer.BadParameter("name a letter or a position, not both", param_hint="--since")
    where = existing_folder(folder, log)
    with open_headgate(catalog, folder=where, log=log_option(log), state=state) as h:
        found = h.replay(
            subscription,
            letter=letter or None,
            since=None if since < 0 else since,
            dry_run=dry_run,
        )
    if json:
        print_json(asdict(found))
    else:
        print_line(_replayed(found, dry_run=dry_run))


def _replayed(found: Replayed, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "are"
    text = f"{found.letters:,} dead letters and {found.items:,} sent items {verb} sent again"
    if found.was_halted:
        text += "; it was halted and goes on"
    if found.letters_left:
        text += f"; {found.letters_left:,} letters are left"
    if found.next is not None:
        text += f"; go on with --since {found.next}"
    return text


def _died_at(letter: NumberedLetter) -> datetime:
    return datetime.fromtimestamp(letter.died_at, UTC)
