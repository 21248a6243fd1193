"""Request the status of all relays of a network, and show it as a table."""

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
    """For each site, the status of its relay, or the error if it does not answer."""

    async def status_of(site: str) -> Mapping[str, object]:
        try:
            return await relay_status(deployment, site, secret)
        except RelayError as error:
            return {"site": site, "error": str(error)}

    answers = await asyncio.gather(*map(status_of, deployment.addresses))
    return dict(zip(deployment.addresses, answers, strict=True))


def status_table(by_site: Statuses) -> Table:
    table = Table.grid(padding=(0, 2))
    heads = ("site", "views", "received", "computed", "forwarded", "kept", "lag", "held")
    table.add_row(*(Text(each, style="bold") for each in (*heads, "")))
    for site, status in by_site.items():
        if error := status.get("error"):
            table.add_row(Text(printable(site)), *[""] * 7, Text(printable(str(error)), "red"))
            continue
        counts = status.get("counts")
        count_of = counts if isinstance(counts, dict) else {}
        figures = [count_of.get(name, 0) for name in ("received", "computed", "forwarded", "kept")]
        cells = [
            _count_text(status.get("views")),
            *map(_count_text, figures),
            _count_text(status.get("lag")),
        ]
        held_bytes = status.get("held_bytes")
        cells.append(f"{held_bytes / 2**20:,.1f} MB" if isinstance(held_bytes, int | float) else "")
        right = (Text(cell, justify="right") for cell in cells)
        table.add_row(Text(printable(site)), *right, Text(_problems_text(status), style="yellow"))
    return table


def _count_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _problems_text(status: Mapping[str, object]) -> str:
    """The problems of a relay on one line, truncated."""
    documents, problems = status.get("documents"), list[str]()
    if isinstance(documents, dict):
        behind = documents.get("published", 0) - documents.get("settled", 0)
        problems += [f"documents that not everybody has: {behind:,}"] if behind else []
    waiting = status.get("waiting")
    if isinstance(waiting, list) and waiting:
        problems.append(
            f"{_count_text(status.get('views_waiting'))} views wait for {', '.join(waiting)}"
        )
    troubles = status.get("troubles")
    if isinstance(troubles, dict):
        problems += [f"{what}: {why}" for what, why in troubles.items()]
    if refused := status.get("last_refused"):
        problems.append(f"refused {refused}")
    return printable("; ".join(map(str, problems)))[:TROUBLE_WIDTH]
