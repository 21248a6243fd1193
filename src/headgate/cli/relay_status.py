"""The status of all relays of a network, asked of each and shown as a table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from headgate.model.errors import RelayError, printable
from headgate.relay.client import relay_status
from headgate.relay.deployment import Deployment
from headgate.relay.wire import Secret

Statuses = dict[str, Mapping[str, object]]
TROUBLE_WIDTH = 70


async def statuses(deployment: Deployment, secret: Secret) -> Statuses:
    """Of each site what its relay says, or why it says nothing."""

    async def one(site: str) -> Mapping[str, object]:
        try:
            return await relay_status(deployment, site, secret)
        except RelayError as error:
            return {"site": site, "error": str(error)}

    found = await asyncio.gather(*map(one, deployment.addresses))
    return dict(zip(deployment.addresses, found, strict=True))


def status_table(found: Statuses) -> Table:
    table = Table.grid(padding=(0, 2))
    heads = ("site", "views", "received", "computed", "forwarded", "kept", "lag", "held")
    table.add_row(*(Text(each, style="bold") for each in (*heads, "")))
    for site, each in found.items():
        if error := each.get("error"):
            table.add_row(Text(printable(site)), *[""] * 7, Text(printable(str(error)), "red"))
            continue
        counts = each.get("counts")
        known = counts if isinstance(counts, dict) else {}
        figures = [known.get(name, 0) for name in ("received", "computed", "forwarded", "kept")]
        cells = [_figure(each.get("views")), *map(_figure, figures), _figure(each.get("lag"))]
        held = each.get("held_bytes")
        cells.append(f"{held / 2**20:,.1f} MB" if isinstance(held, int | float) else "")
        right = (Text(cell, justify="right") for cell in cells)
        table.add_row(Text(printable(site)), *right, Text(_trouble(each), style="yellow"))
    return table


def _figure(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _trouble(each: Mapping[str, object]) -> str:
    """The first thing that is wrong, in a few words."""
    documents, said = each.get("documents"), list[str]()
    if isinstance(documents, dict):
        behind = documents.get("published", 0) - documents.get("settled", 0)
        said += [f"documents that not everybody has: {behind:,}"] if behind else []
    waiting = each.get("waiting")
    if isinstance(waiting, list) and waiting:
        said.append(f"{_figure(each.get('views_waiting'))} views wait for {', '.join(waiting)}")
    troubles = each.get("troubles")
    if isinstance(troubles, dict):
        said += [f"{what}: {why}" for what, why in troubles.items()]
    if refused := each.get("last_refused"):
        said.append(f"refused {refused}")
    return printable("; ".join(map(str, said)))[:TROUBLE_WIDTH]
