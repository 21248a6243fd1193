"""Why an item of the log is in a feed, or why not: what the log says and what the plan says.

    the log      which feeds have it: decided when it arrived, by the plans of that moment
    the plan     what the feed's definition says of it now (plan/why.py)
    delivery     what became of it for a subscription

They differ where a feed was created after the item had arrived, and the plan alone cannot decide
joins; the log can, as it has what joins have found.

A tenant may ask about the rows that it may read (`readable`): those of a source that it sees, and
those that a feed has which it sees. The result of a join has items of its window in it, so there
only the feed counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.queries import Subscription
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import deliveries_of
from headgate.language.schemas import schemas_of
from headgate.match.item_columns import group_of
from headgate.model.errors import CatalogError, UnknownName, alternatives
from headgate.plan.why import Why, sources_of, why
from headgate.store.find_item import FoundRow, Note, find_item
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView
from headgate.store.tail import key_of


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item, and all that the log has of it: it may lie there more than once."""

    row: LoggedItem
    feeds: frozenset[int]
    inputs: frozenset[int]
    joined: Sequence[Mapping[str, object]]
    """What joins have joined to it."""
    positions: Mapping[int, int]
    """For each feed the last position at which it has the item."""


@dataclass(frozen=True, slots=True)
class WhyInFeed:
    """Whether a feed or source has an item, and why."""

    row: LoggedItem
    feed: str
    has: bool
    """Whether the log says that the feed has it."""
    is_input: bool
    """Whether joins, patterns or operators of the feed have read it."""
    why: Why | None
    """Nothing for a source, and for an item whose source the feed does not read and the reader does
    not see."""
    is_source: bool
    source: str
    """Of the item, as the reader calls it; empty if the reader does not see it."""
    created_at: datetime | None

    def verdict(self) -> str:
        """What the log says, and where it differs from the plan, why."""
        name = self.feed
        if self.is_source:
            other = f"the item is of {self.source}" if self.source else "it is of another one"
            return f"{name} is a source: {'it has all of its own items' if self.has else other}"
        if self.has:
            return f"{name} has it"
        if self.created_at is not None and self.created_at > self.row.arrived:
            return (
                f"{name} does not have it: the feed was created at {_shown(self.created_at)}, "
                f"after the item had arrived at {_shown(self.row.arrived)}"
            )
        if self.why is None:
            return f"{name} does not have it: it does not read the source of the item"
        if self.why.answer:
            return f"{name} does not have it: it was not planned yet when the item arrived"
        if self.why.answer is None and self.is_input:
            return f"{name} does not have it: its leaves let it through, what is above did not"
        return f"{name} does not have it"


@dataclass(frozen=True, slots=True)
class WhyStored(WhyInFeed):
    """The same, with everything else that the log and delivery have of the item."""

    feeds: Sequence[str]
    """Those that have it, by name."""
    further: Sequence[str]
    """Those that look further at it and do not have it."""
    dropped: int
    """How many feeds had it that are not registered any more."""
    subscription: Subscription | None
    delivered: str
    """What became of it for the subscription; empty if that is not known."""
    joined: Sequence[Mapping[str, object]]
    """What joins have joined to it."""

    def delivery(self) -> str:
        """What became of it for the subscription; empty if none was asked for."""
        asked = self.subscription
        if asked is None:
            return ""
        title = f"subscription {asked.id}, {asked.output_kind} {asked.target}: "
        if self.delivered:
            return title + self.delivered
        if not self.has:
            return title + "nothing to deliver"
        if asked.created_at > self.row.arrived:
            return title + (
                f"not delivered, as it was made at {_shown(asked.created_at)}, "
                "after the item had arrived"
            )
        return title + "nothing was delivered from this folder yet"


def found_item(
    view: LogView,
    catalog: TenantCatalog,
    id_: str,
    *,
    source: str | None = None,
    note: Note = lambda _: None,
) -> FoundItem:
    """The item with this id that the reader may read; an error if there is none, or if several
    sources have one."""
    schemas = None if source is None else _schemas(source, catalog)
    kept = None if source is None else catalog.view.kept(source)
    rows = readable(find_item(view, id_, source=kept, schemas=schemas, note=note), catalog)
    if not rows:
        place = f" of '{source}'" if source else ""
        raise UnknownName(f"the store has no item '{id_}'{place}")
    sources = sorted({catalog.view.shown(row.item.source) for row in rows})
    if len(sources) > 1:
        raise CatalogError(
            f"{len(sources)} sources have an item '{id_}'; name its source: {alternatives(sources)}"
        )
    return item_of_rows(rows)


def item_of_rows(rows: Sequence[FoundRow]) -> FoundItem:
    """All rows of one item."""
    items = [row.item for row in rows]
    own = [item for item in items if not item.annotations]
    return FoundItem(
        (own or items)[-1],
        frozenset(number for row in rows for number in row.feeds),
        frozenset(number for row in rows for number in row.inputs),
        [annotation for item in items for annotation in item.annotations],
        {feed: row.item.position for row in rows for feed in row.feeds},
    )


def readable(rows: Sequence[FoundRow], catalog: TenantCatalog) -> list[FoundRow]:
    """The rows that the tenant may read."""
    view = catalog.view
    if view.is_whole:
        return list(rows)
    sources = {view.shown(row.item.source) for row in rows if not row.is_result}
    with catalog.looking_up() as definitions:
        definitions.fetch(sources)
        seen = {name for name in sources if definitions.sees(name)}
    return [
        row
        for row in rows
        if (not row.is_result and view.shown(row.item.source) in seen)
        or catalog.names_of_numbers(row.feeds)
    ]


def _schemas(source: str, catalog: TenantCatalog) -> frozenset[str] | None:
    """The names of the schemas of a source; None if it is not registered any more."""
    with catalog.looking_up() as definitions:
        if not definitions.sees(source):
            return None
        return frozenset(group_of(each) for each in schemas_of(source, definitions))


def why_in_feed(
    definitions: CatalogDefinitions, item: FoundItem, feed: str, created_at: datetime | None
) -> WhyInFeed:
    """Why the feed or source has the item or not, as the tenant of these definitions sees it."""
    key = key_of(feed, definitions)
    row, source = item.row, definitions.view.shown(item.row.source)
    is_source, explained = isinstance(key, str), None
    is_seen = definitions.sees(source)
    if not is_source and (is_seen or source in sources_of(feed, definitions)):
        schema = next(iter(schemas_of(source, definitions)))
        explained = why(feed, replace(row.item(schema), source=source), definitions)
    elif not is_source and definitions.view.owns(row.source):
        raise UnknownName(f"the item's source '{source}' is not registered any more")
    return WhyInFeed(
        row=row,
        feed=feed,
        has=row.source == key if is_source else key in item.feeds,
        is_input=key in item.inputs - item.feeds,
        why=explained,
        is_source=is_source,
        source=source if is_seen else "",
        created_at=created_at,
    )


def why_stored(
    view: LogView,
    catalog: Catalog,
    item: FoundItem,
    asked: str,
    deliveries: DeliveryDatabase | None = None,
) -> WhyStored:
    """`asked` is the number of a subscription, or the name of a feed or source."""
    subscription = catalog.get_subscription(int(asked)) if asked.isdecimal() else None
    feed = asked if subscription is None else subscription.feed
    names = catalog.names_of_numbers(item.feeds | item.inputs)
    with catalog.looking_up() as definitions:
        told = why_in_feed(definitions, item, feed, catalog.created_at(feed))
    delivered = ""
    if subscription is not None and deliveries is not None and told.has:
        delivered = _delivered(view, catalog, subscription.id, item, deliveries)
    return WhyStored(
        row=told.row,
        feed=feed,
        has=told.has,
        is_input=told.is_input,
        why=told.why,
        is_source=told.is_source,
        source=told.source,
        created_at=told.created_at,
        feeds=_named(item.feeds, names),
        further=_named(item.inputs - item.feeds, names),
        dropped=len(item.feeds - names.keys()),
        subscription=subscription,
        delivered=delivered,
        joined=item.joined,
    )


def _delivered(
    view: LogView, catalog: Catalog, subscription: int, item: FoundItem, database: DeliveryDatabase
) -> str:
    """What became of the item for a subscription."""
    entries = catalog.subscription_entries(after_id=subscription - 1, limit=1)
    if not entries or entries[0].id != subscription:
        return ""
    entry = entries[0]
    position = item.row.position if entry.is_source else item.positions[entry.feed_number]

    def ask() -> str:
        places = view.index.places_at(np.array([position]))
        status = deliveries_of(database, view.index, entry, places[0]) if places else ""
        return status if isinstance(status, str) else status.text()

    return view.ask(ask)


def _named(numbers: frozenset[int], names: Mapping[int, str]) -> list[str]:
    return sorted(names[number] for number in numbers if number in names)


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
