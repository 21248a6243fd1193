"""Why an item of the store is in a feed, or why not: what the store says and what the plan says.

    the store    which feeds have it: decided when it arrived, by the plans of that moment
    the plan     what the feed's definition says of it now (plan/why.py)
    the outbox   what became of its delivery to a subscription

They differ where a feed was created after the item had arrived, and the plan alone cannot decide
joins; the store can, as it has what joins have found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.queries import Subscription
from headgate.deliver.item_deliveries import DeliveryStatus, deliveries_of
from headgate.language.schemas import schemas_of
from headgate.model.errors import CatalogError, UnknownName, alternatives
from headgate.plan.why import Why, why
from headgate.store.read_store import StoredRow, StoreReader, find_item
from headgate.store.tail import selection_of


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item, and all that the store knows of it: it may lie there more than once."""

    row: StoredRow
    feeds: frozenset[int]
    inner: frozenset[int]
    joined: Sequence[Mapping[str, object]]
    """What joins have joined to it."""


@dataclass(frozen=True, slots=True)
class WhyStored:
    row: StoredRow
    feeds: Sequence[str]
    """Those that have it, by name."""
    further: Sequence[str]
    """Those that look further at it and do not have it."""
    dropped: int
    """How many feeds had it that are not registered any more."""
    feed: str
    has: bool
    """Whether the store says that the feed has it."""
    why: Why | None
    """Nothing for a source: that has its own items and no others."""
    created_at: datetime | None
    subscription: Subscription | None
    deliveries: Sequence[DeliveryStatus]
    joined: Sequence[Mapping[str, object]]
    """What joins have joined to it."""

    def verdict(self) -> str:
        """What the store says, and where it differs from the plan, why."""
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
        if self.deliveries:
            return title + "; ".join(each.text() for each in self.deliveries)
        if not self.has:
            return title + "nothing to deliver"
        if asked.created_at > self.row.arrived:
            return title + (
                f"not delivered, as it was made at {_shown(asked.created_at)}, "
                "after the item had arrived"
            )
        return title + "not in the outbox, which forgets what was sent long ago"


def found_item(reader: StoreReader, id_: str, source: str | None) -> FoundItem:
    """The item with this id; an error if there is none, or if several sources have one."""
    rows = find_item(reader, id_, source=source)
    if not rows:
        place = f" of '{source}'" if source else ""
        raise UnknownName(f"the store has no item '{id_}'{place}")
    sources = sorted({row.source for row in rows})
    if len(sources) > 1:
        raise CatalogError(
            f"{len(sources)} sources have an item '{id_}'; "
            f"say with --source which: {alternatives(sources)}"
        )
    own = [row for row in rows if not row.annotations]
    return FoundItem(
        (own or rows)[-1],
        frozenset(number for row in rows for number in row.feeds),
        frozenset(number for row in rows for number in row.inner),
        [annotation for row in rows for annotation in row.annotations],
    )


def why_stored(reader: StoreReader, catalog: Catalog, item: FoundItem, asked: str) -> WhyStored:
    """`asked` is the number of a subscription, or the name of a feed or source."""
    subscription = catalog.get_subscription(int(asked)) if asked.isdecimal() else None
    feed = asked if subscription is None else subscription.feed
    row = item.row
    names = catalog.names_of_numbers(item.feeds | item.inner)
    with catalog.looking_up() as definitions:
        wanted = selection_of(feed, definitions)
        explained = None
        entry = definitions.entry(feed)
        assert entry is not None, "wanted_of has found it"
        if entry.kind not in SOURCE_KINDS:
            if row.source not in definitions:
                raise UnknownName(f"the item's source '{row.source}' is not registered any more")
            schema = next(iter(schemas_of(row.source, definitions)))
            explained = why(feed, row.item(schema), definitions)
    has = row.source == feed if explained is None else wanted.feed in item.feeds
    deliveries: list[DeliveryStatus] = []
    if subscription is not None:
        deliveries = deliveries_of(
            reader.folder.outbox, subscription=subscription.id, id_=row.id, source=row.source
        )
    return WhyStored(
        row=row,
        feeds=_named(item.feeds, names),
        further=_named(item.inner - item.feeds, names),
        dropped=len(item.feeds - names.keys()),
        feed=feed,
        has=has,
        why=explained,
        created_at=catalog.created_at(feed),
        subscription=subscription,
        deliveries=deliveries,
        joined=item.joined,
    )


def _named(numbers: frozenset[int], names: Mapping[int, str]) -> list[str]:
    return sorted(names[number] for number in numbers if number in names)


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
