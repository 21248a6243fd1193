"""`headgate network show`: levels, loads, and who feeds whom, as text or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.network_options import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    PlanningTime,
    SourceLimit,
    planned,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_error, print_json, print_line, print_text, stderr
from headgate.network.draw_network import draw_network
from headgate.network.explain_network import FedView, explain_network, fed_views


def show(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    *,
    time: PlanningTime = TIME_DEFAULT_S,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it into this file, as SVG.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show who feeds whom, level by level.

    [bold]headgate network show --svg network.svg[/bold]
    """
    views, found = planned(catalog, limit=limit, source_limit=source_limit, time_s=time)
    fed = fed_views(found.fast, views.labels, views.plans.join_at)
    if svg is not None:
        try:
            svg.write_text(draw_network(fed), encoding="utf-8")
        except OSError as error:
            print_error(f"{svg} cannot be written: {error.strerror}")
            raise typer.Exit(2) from None
        stderr.print(f"picture: {svg}")
    if json:
        print_json({"views": [_json(each) for each in fed], "gap": found.gap})
    elif fed:
        print_text(explain_network(fed))
        print_line(f"gap at most {found.gap:.2%}")
    else:
        print_line("-- no feeds")


def _json(view: FedView) -> dict[str, object]:
    return {
        "feed": view.label.name,
        "site": view.label.site,
        "level": view.level,
        "from": [{"feed": each.name, "site": each.site} for each in view.members],
        "computed_at": view.join_site,
        "feeds": view.feeds,
        "limit": view.limit,
        "ways": view.ways,
    }
