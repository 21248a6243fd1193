"""`/v1/deliveries`: all subscriptions of the tenant with what became of their deliveries; those
that need somebody come first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.api.deliveries import WAITING_COUNTED_MAX, ReceiverState, count_waiting
from headgate.api.delivery_states import DeliveriesOf, deliveries_of_all
from headgate.catalog.principals import Scope
from headgate.catalog.tenants import TenantView
from headgate.language.statements import OutputKind
from headgate.model.errors import InvalidValue
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import NAME_LENGTH_MAX, PAGE_DEFAULT, PAGE_MAX
from headgate.service.problems import RESPONSES

ERROR_LENGTH_MAX = 300
ORDER = (
    ReceiverState.HALTED,
    ReceiverState.FAILING,
    ReceiverState.UNCONFIRMED,
    ReceiverState.PAUSED,
    ReceiverState.WAITING,
    ReceiverState.CURRENT,
    ReceiverState.EXPIRED,
)
router = APIRouter(prefix="/v1/deliveries", tags=["subscriptions"], responses=RESPONSES)


class DeliveryOverview(BaseModel):
    """A subscription in the list; `/v1/subscriptions/{id}/deliveries` says more."""

    id: int
    feed: str
    output: OutputKind
    target: str
    every_s: int | None = None
    created_at: datetime
    expires_at: datetime
    paused_at: datetime | None = None
    state: ReceiverState
    waiting: int = Field(
        description="Items of the feed that are not delivered yet; "
        f"{WAITING_COUNTED_MAX:,}: so many or more."
    )
    retrying: int = Field(description="Messages that were refused by themselves.")
    dead: int = Field(description="Messages that were given up.")
    failures: int = Field(description="Attempts in a row that have failed.")
    last_error: str | None = Field(None, description="The beginning of the last error.")
    next_attempt: datetime | None = None


class DeliveryStatesPage(BaseModel):
    entries: list[DeliveryOverview] = Field(description="By state, then the newest first.")
    totals: dict[ReceiverState, int] = Field(description="Of all subscriptions of the tenant.")
    dead: int = Field(description="Messages of all of them that were given up.")
    matching: int = Field(description="Of those that were asked for, on all pages.")
    next: str | None = Field(None, description="`after` of the next page.")


@router.get("", response_model_exclude_none=True)
def list_delivery_states(
    caller: AnyCaller,
    state: Annotated[ReceiverState | None, Query(description="Only those in this state.")] = None,
    has_dead: Annotated[bool, Query(description="Only those with dead letters.")] = False,
    feed: Annotated[str, Query(max_length=NAME_LENGTH_MAX, description="Only of this feed.")] = "",
    words: Annotated[
        str, Query(max_length=250, description="Only with this in the feed's name or the target.")
    ] = "",
    after: Annotated[str, Query(max_length=60)] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> DeliveryStatesPage:
    """How far the deliveries of the tenant's subscriptions are; also of those that have expired
    and are not removed yet."""
    found = _all(caller)
    view, wanted = TenantView(caller.principal.tenant), words.casefold()
    totals = dict.fromkeys(ReceiverState, 0)
    for each in found:
        totals[each.state] += 1
    matching = sorted(
        (
            each
            for each in found
            if (state is None or each.state is state)
            and (not has_dead or each.progress.dead)
            and (not feed or view.shown(each.entry.feed) == feed)
            and wanted in f"{view.shown(each.entry.feed)}\n{each.entry.target}".casefold()
        ),
        key=_place_of,
    )
    first = _place(after)
    page = [each for each in matching if _place_of(each) > first][:limit]
    is_last = not page or page[-1] is matching[-1]
    return DeliveryStatesPage(
        entries=[_overview(caller, each, view) for each in page],
        totals=totals,
        dead=sum(each.progress.dead for each in found),
        matching=len(matching),
        next=None if is_last else f"{page[-1].state}:{page[-1].entry.id}",
    )


def _all(caller: Caller) -> list[DeliveriesOf]:
    service, now = caller.require(Scope.SUBSCRIBE).service, datetime.now(UTC)
    entries = caller.catalog.own_subscriptions()
    with service.headgate.delivery_database() as database:
        if not service.log.is_there:
            return deliveries_of_all(entries, database, None, now)
        return service.log.ask(lambda log: deliveries_of_all(entries, database, log, now))


def _overview(caller: Caller, found: DeliveriesOf, view: TenantView) -> DeliveryOverview:
    entry, progress, state, waiting = found.entry, found.progress, found.state, 0
    if found.may_wait and caller.service.log.is_there:
        waiting = caller.service.log.ask(lambda log: count_waiting(log, entry, progress.cursor))
    if state is ReceiverState.WAITING and not waiting:
        state = ReceiverState.CURRENT  # what is new arrived before it was made
    at_s = progress.next_attempt_s
    has_ended = state in (ReceiverState.EXPIRED, ReceiverState.PAUSED, ReceiverState.UNCONFIRMED)
    return DeliveryOverview(
        id=entry.id,
        feed=view.shown(entry.feed),
        output=OutputKind(entry.output_kind),
        target=entry.target,
        every_s=entry.period_s,
        created_at=entry.created_at,
        expires_at=entry.expires_at,
        paused_at=entry.paused_at,
        state=state,
        waiting=waiting,
        retrying=progress.retrying,
        dead=progress.dead,
        failures=progress.failures,
        last_error=progress.error[:ERROR_LENGTH_MAX] or None,
        next_attempt=None if at_s is None or has_ended else datetime.fromtimestamp(at_s, UTC),
    )


def _place_of(found: DeliveriesOf) -> tuple[int, int]:
    return ORDER.index(found.state), -found.entry.id


def _place(after: str) -> tuple[int, int]:
    """Behind which entry a page begins."""
    if not after:
        return -1, 0
    state, _, number = after.partition(":")
    if state not in ORDER or not number.isdecimal():
        raise InvalidValue("'after' is the 'next' of the page before")
    return ORDER.index(ReceiverState(state)), -int(number)
