"""`/v1/items/{position}/deliveries`: what became of an item for each subscription that gets it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from headgate.catalog.principals import Scope
from headgate.catalog.queries import Subscription
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import DeliveryStatus, deliveries_of
from headgate.deliver.records import DeliveryState
from headgate.language.statements import OutputKind
from headgate.service.caller import AnyCaller, Caller
from headgate.service.problems import RESPONSES
from headgate.service.why import NUMBERS_AT_ONCE, POSITION_MAX, row_of
from headgate.store.log_view import LogView

SUBSCRIPTIONS_MAX = 100
router = APIRouter(prefix="/v1/items/{position}", tags=["explanations"], responses=RESPONSES)


class ItemDelivery(BaseModel):
    """What became of the item for one subscription."""

    subscription: int
    feed: str
    output: OutputKind
    target: str
    state: DeliveryState | None = Field(None, description="Missing: it was never due.")
    text: str = Field(description="For people to read.")
    attempts: int = 0
    error: str | None = None
    retry_at: datetime | None = None


class ItemDeliveries(BaseModel):
    deliveries: list[ItemDelivery]
    complete: bool = Field(description=f"False: there are more than {SUBSCRIPTIONS_MAX}.")


@router.get("/deliveries", response_model_exclude_none=True)
def deliveries_of_item(
    position: Annotated[int, Path(ge=0, le=POSITION_MAX)], caller: AnyCaller
) -> ItemDeliveries:
    """For the active subscriptions of the tenant to the item's source and to the feeds that have
    it."""
    caller.require(Scope.SUBSCRIBE)
    found = _subscriptions(caller, position)
    shown = found[:SUBSCRIPTIONS_MAX]
    with caller.service.headgate.delivery_database() as database:
        deliveries = [_delivery(caller, each, position, database) for each in shown]
    return ItemDeliveries(deliveries=deliveries, complete=len(shown) == len(found))


def _subscriptions(caller: Caller, position: int) -> list[Subscription]:
    """One more than are shown, if there are more."""
    found: list[Subscription] = []
    for name in _names(caller, position):
        missing = SUBSCRIPTIONS_MAX + 1 - len(found)
        if not missing:
            break
        found += caller.catalog.list_subscriptions(name, limit=missing)
    return found


def _names(caller: Caller, position: int) -> Iterator[str]:
    """The item's source, if the tenant sees it, and the feeds that have the item."""
    row, catalog = row_of(caller, position), caller.catalog
    source = catalog.view.shown(row.item.source)
    with catalog.looking_up() as definitions:
        is_seen = definitions.sees(source)
    if is_seen and not row.is_result:
        yield source
    names = catalog.names_of_numbers(sorted(row.feeds)[:NUMBERS_AT_ONCE])
    yield from (names[number] for number in sorted(names))


def _delivery(
    caller: Caller, found: Subscription, position: int, database: DeliveryDatabase | None
) -> ItemDelivery:
    entry = caller.service.headgate.subscription_entry(found.id)

    def ask(view: LogView) -> DeliveryStatus | str:
        places = view.index.places_at(np.array([position]))
        if not places or database is None:
            return "nothing was delivered from this folder yet"
        return deliveries_of(database, view.index, entry, places[0])

    status = caller.service.log.ask(ask)
    answer = ItemDelivery(
        subscription=found.id,
        feed=found.feed,
        output=found.output_kind,
        target=found.target,
        state=None,
        text=status if isinstance(status, str) else status.text(),
    )
    if isinstance(status, DeliveryStatus):
        answer.state, answer.attempts = status.state, status.attempts
        answer.error, answer.retry_at = status.error or None, status.retry_at
    return answer
