"""What delivery reads of the catalog. Delivery itself imports no catalog and parses no statement.

    SubscriptionEntry   the few columns that it keeps in memory for every subscription
    SubscriptionOutput  output, stylesheet, period, secret: read when something is due
    SubscriptionState   what may change of it: end, confirmation, number of the secret
    schema_of           the types of a source's attributes
    names_for           by which names the tenant of a subscription knows sources
    paused              which subscriptions are paused
    waiting_max         the quota of refused messages that are kept

A subscription's id is never reused, and its output never changes. So new ones are read by
`after_id`, and of known ones only the state has to be read again. The one thing that delivery
writes is a confirmation, where the operator has switched asking for it off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.catalog.lookups import SubscriptionEntry, SubscriptionOutput, SubscriptionState
from headgate.catalog.principals import Principal
from headgate.catalog.queries import PAGE_MAX
from headgate.catalog.tenants import TenantView, owner_of
from headgate.language.schemas import schemas_of
from headgate.model.schema import Schema


class DeliveryCatalog:
    """A catalog as delivery sees it (deliver/subscription_table.py). For one thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._schemas: dict[str, Schema | None] = {}
        self._seen: dict[tuple[str, str], bool] = {}
        """Which sources of others a tenant sees."""
        self._version = -1

    def version(self) -> int:
        version = self._catalog.version()
        if version != self._version:
            self._schemas.clear()
            self._seen.clear()
            self._version = version
        return version

    def entries(self, *, after_id: int) -> Iterator[SubscriptionEntry]:
        """All subscriptions behind this id, by id."""
        while page := self._catalog.subscription_entries(after_id=after_id, limit=PAGE_MAX):
            yield from page
            after_id = page[-1].id

    def states(self, ids: Collection[int]) -> dict[int, SubscriptionState]:
        """What may have changed of these subscriptions; removed ones are missing."""
        return self._catalog.subscription_states(ids)

    def paused(self) -> set[int]:
        """The subscriptions to which nothing is sent at the moment."""
        return self._catalog.paused_ids()

    def outputs(self, ids: Collection[int]) -> dict[int, SubscriptionOutput]:
        return self._catalog.outputs_of_ids(ids)

    def confirm_unasked(self, ids: Collection[int]) -> None:
        """Confirm these subscriptions from their beginning on."""
        self._catalog.confirm_unasked(ids)

    def waiting_max(self) -> int | None:
        return self._catalog.quotas().get(Resource.WAITING)

    def names_for(self, tenant: str, feed: str) -> Callable[[str], str]:
        """By which names a tenant that gets a feed knows sources, from the names that are kept. One
        that it does not see is called as the feed is."""
        view = TenantView(tenant)

        def name_of(kept: str) -> str:
            is_seen = owner_of(kept) == tenant or self._sees(tenant, kept)
            return view.shown(kept) if is_seen else feed

        return name_of

    def _sees(self, tenant: str, kept: str) -> bool:
        known = self._seen.get((tenant, kept))
        if known is None:
            reader = Principal(tenant, "delivery", frozenset())
            with self._catalog.acting_as(reader).looking_up() as definitions:
                known = definitions.sees(definitions.view.shown(kept))
            self._seen[tenant, kept] = known
        return known

    def schema_of(self, source: str) -> Schema | None:
        """None if the source is not registered any more."""
        if source not in self._schemas:
            with self._catalog.looking_up() as definitions:
                known = source in definitions
                schema = next(iter(schemas_of(source, definitions))) if known else None
            self._schemas[source] = schema
        return self._schemas[source]
