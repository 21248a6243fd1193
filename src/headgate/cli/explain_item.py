"""`headgate explain --item FILE`: why an item is in a feed, or why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import typer

from headgate.cli.output import print_json, print_text
from headgate.cli.read import read_text
from headgate.language.schemas import Definitions, schemas_of
from headgate.model.errors import alternatives, did_you_mean
from headgate.model.items import Item, attributes_of_json
from headgate.model.schema import Schema
from headgate.plan.why import sources_of, why

Attributes = Mapping[str, object]


def read_item(file: Path) -> Attributes:
    """The item in a file: a JSON object with its attributes."""
    try:
        found = json.loads(read_text(file))
    except (json.JSONDecodeError, RecursionError) as reason:
        raise typer.BadParameter(f"{file} is no JSON: {reason}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{file} is no JSON object with the attributes of an item")
    return found


def print_why(
    feed: str, found: Attributes, source: str, definitions: Definitions, *, as_json: bool
) -> None:
    source = _source_of(feed, source, definitions)
    schema = next(iter(schemas_of(source, definitions)))
    attributes = attributes_of_json(found, schema)
    item = Item(str(found.get("id", "item")), source, _time_of(attributes), attributes)
    explained = why(feed, item, definitions)
    if as_json:
        print_json({**explained.as_json(), "not_declared": _not_declared(found, schema)})
        return
    print_text(explained.text())
    if unknown := _not_declared(found, schema):
        sys.stdout.write(f"{source} does not declare, so nobody looks at: {', '.join(unknown)}\n")


def _not_declared(found: Attributes, schema: Schema) -> list[str]:
    return sorted(name for name in found if name not in schema.names)


def _time_of(attributes: Mapping[str, object]) -> datetime:
    times = [value for value in attributes.values() if isinstance(value, datetime)]
    return times[0] if times else datetime.now(UTC)


def _source_of(feed: str, source: str, definitions: Definitions) -> str:
    """The source that the item is from: the one that is named, or the only one there is."""
    known = sources_of(feed, definitions)
    if source and source not in known:
        hint = did_you_mean(source, known)
        raise typer.BadParameter(
            f"'{feed}' does not read '{source}'; it reads {alternatives(known)}"
            + (f"; {hint}" if hint else "")
        )
    if not source and len(known) != 1:
        raise typer.BadParameter(
            f"'{feed}' reads {len(known):,} sources; say with --source which the item is from: "
            + alternatives(known)
        )
    return source or known[0]
