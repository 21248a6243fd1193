"""Why an item of the log is in a feed, or why not: what the log says and what the plan says.

    the log      which feeds have it: decided when it arrived, by the plans of that moment
    the plan     what the feed's definition says of it now (plan/why.py)
    delivery     what became of it for a subscription

They differ where a feed was created after the item had arrived, and the plan alone cannot decide
joins; the log can, as it has what joins have found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.queries import Subscription
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import deliveries_of
from headgate.language.schemas import schemas_of
from headgate.match.item_columns import group_of
from headgate.model.errors import CatalogError, UnknownName, alternatives
from headgate.plan.why import Why, why
from headgate.store.find_item import Note, find_item
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
class WhyStored:
    row: LoggedItem
    feeds: Sequence[str]
    """Those that have it, by name."""
    further: Sequence[str]
    """Those that look further at it and do not have it."""
    dropped: int
    """How many feeds had it that are not registered any more."""
    feed: str
    has: bool
    """Whether the log says that the feed has it."""
    why: Why | None
    """Nothing for a source: that has its own items and no others."""
    created_at: datetime | None
    subscription: Subscription | None
    delivered: str
    """What became of it for the subscription; empty if that is not known."""
    joined: Sequence[Mapping[str, object]]
    """What joins have joined to it."""

    def verdict(self) -> str:
        """What the log says, and where it differs from the plan, why."""
        name = self.feed
        if self.why is None:
            own = "it has all of its own items" if self.has else f"the item is of {self.row.source}"
            return f"{name} is a source: {own}"
        if self.has:
            return f"{name} has it"
        if self.created_at is not None and self.created_at > self.row.arrived:
            return (
                f"{name} does not have it: the feed was created at {_shown(self.created_at)}, "
                f"after the item had arrived at {_shown(self.row.arrived)}"
            )
        if self.why.answer:
            return f"{name} does not have it: it was not planned yet when the item arrived"
        if self.why.answer is None and name in self.further:
            return f"{name} does not have it: its leaves let it through, what is above did not"
        return f"{name} does not have it"

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
    catalog: Catalog,
    id_: str,
    *,
    source: str | None = None,
    note: Note = lambda _: None,
) -> FoundItem:
    """The item with this id; an error if there is none, or if several sources have one."""
    schemas = None if source is None else _schemas(source, catalog)
    rows = find_item(view, id_, source=source, schemas=schemas, note=note)
    if not rows:
        place = f" of '{source}'" if source else ""
        raise UnknownName(f"the store has no item '{id_}'{place}")
    sources = sorted({row.item.source for row in rows})
    if len(sources) > 1:
        raise CatalogError(
            f"{len(sources)} sources have an item '{id_}'; "
            f"say with --source which: {alternatives(sources)}"
        )
    items = [row.item for row in rows]
    own = [item for item in items if not item.annotations]
    return FoundItem(
        (own or items)[-1],
        frozenset(number for row in rows for number in row.feeds),
        frozenset(number for row in rows for number in row.inputs),
        [annotation for item in items for annotation in item.annotations],
        {feed: row.item.position for row in rows for feed in row.feeds},
    )


def _schemas(source: str, catalog: Catalog) -> frozenset[str] | None:
    """The names of the schemas of a source; None if it is not registered any more."""
    with catalog.looking_up() as definitions:
        if source not in definitions:
            return None
        return frozenset(group_of(each) for each in schemas_of(source, definitions))


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
    row = item.row
    names = catalog.names_of_numbers(item.feeds | item.inputs)
    with catalog.looking_up() as definitions:
        key = key_of(feed, definitions)
        explained = None
        entry = definitions.entry(feed)
        assert entry is not None, "key_of has found it"
        if entry.kind not in SOURCE_KINDS:
            if row.source not in definitions:
                raise UnknownName(f"the item's source '{row.source}' is not registered any more")
            schema = next(iter(schemas_of(row.source, definitions)))
            explained = why(feed, row.item(schema), definitions)
    has = row.source == feed if explained is None else key in item.feeds
    delivered = ""
    if subscription is not None and deliveries is not None and has:
        delivered = _delivered(view, catalog, subscription.id, item, deliveries)
    return WhyStored(
        row=row,
        feeds=_named(item.feeds, names),
        further=_named(item.inputs - item.feeds, names),
        dropped=len(item.feeds - names.keys()),
        feed=feed,
        has=has,
        why=explained,
        created_at=catalog.created_at(feed),
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
