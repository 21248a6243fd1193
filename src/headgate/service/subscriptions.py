"""`/v1/subscriptions`: standing orders for feeds. Whoever has the scope manages all of the tenant's
subscriptions by number; a ticket is for those without an account."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from headgate.api.arguments import optional_duration
from headgate.catalog.principals import Scope
from headgate.catalog.queries import Subscription
from headgate.language.parse import parse
from headgate.language.statements import Output, OutputKind, Subscribe
from headgate.language.unparse import unparse
from headgate.service.caller import AnyCaller
from headgate.service.definitions import PAGE_DEFAULT, PAGE_MAX
from headgate.service.problems import RESPONSES
from headgate.service.statements import StatementOutcome

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], responses=RESPONSES)
Number = Annotated[int, Path(ge=1, le=2**62)]
Text = Annotated[str, Field(max_length=2_000)]
Period = Annotated[str, Field(max_length=50, examples=["10 minutes", "30 days"])]


class NewSubscription(BaseModel):
    feed: Text
    output: OutputKind
    target: Text = Field("", description="An address, a URL, a file, a topic.")
    every: Period | None = Field(None, description="The period of a digest.")
    valid_for: Period | None = Field(None, description="One day unless stated.")
    stylesheet: Text | None = None


class Renewal(BaseModel):
    valid_for: Period | None = None


class SubscriptionResource(BaseModel):
    id: int
    feed: str
    output: OutputKind
    target: str
    every_s: int | None = None
    stylesheet: str | None = None
    created_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None = Field(
        None, description="Missing: its reader has to confirm it."
    )
    paused_at: datetime | None = Field(None, description="Missing: it is not paused.")

    @classmethod
    def of(cls, found: Subscription) -> SubscriptionResource:
        return cls(
            id=found.id,
            feed=found.feed,
            output=found.output_kind,
            target=found.target,
            every_s=found.period_s,
            stylesheet=found.stylesheet,
            created_at=found.created_at,
            expires_at=found.expires_at,
            confirmed_at=found.confirmed_at,
            paused_at=found.paused_at,
        )


class SubscriptionsPage(BaseModel):
    entries: list[SubscriptionResource]
    total: int
    next: int | None = Field(None, description="`after` of the next page.")


@router.get("", response_model_exclude_none=True)
def list_subscriptions(
    caller: AnyCaller,
    feed: Annotated[str | None, Query(max_length=250)] = None,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> SubscriptionsPage:
    catalog = caller.require(Scope.READ).catalog
    found = catalog.list_subscriptions(feed, after_id=after, limit=limit)
    return SubscriptionsPage(
        entries=[SubscriptionResource.of(each) for each in found],
        total=catalog.count_subscriptions(feed),
        next=found[-1].id if len(found) == limit else None,
    )


@router.post("", status_code=201, response_model_exclude_none=True)
def subscribe(new: NewSubscription, caller: AnyCaller, response: Response) -> StatementOutcome:
    """The answer has the ticket, and the secret of a webhook; they are shown only here."""
    statement = Subscribe(
        new.feed,
        Output(new.output, new.target),
        new.stylesheet,
        optional_duration(new.every),
        optional_duration(new.valid_for),
    )
    (outcome,) = caller.catalog.apply([parse(unparse(statement))])
    response.headers["location"] = f"/v1/subscriptions/{outcome.subscription_id}"
    return StatementOutcome.of(outcome)


@router.get("/{number}", response_model_exclude_none=True)
def get_subscription(number: Number, caller: AnyCaller) -> SubscriptionResource:
    return SubscriptionResource.of(caller.require(Scope.READ).catalog.get_subscription(number))


@router.post("/{number}/renew", response_model_exclude_none=True)
def renew(number: Number, renewal: Renewal, caller: AnyCaller) -> SubscriptionResource:
    """Valid from now on, for a day unless stated."""
    validity = optional_duration(renewal.valid_for)
    caller.catalog.renew_subscription(number, validity)
    return SubscriptionResource.of(caller.catalog.get_subscription(number))


@router.post("/{number}/pause", response_model_exclude_none=True)
def pause(number: Number, caller: AnyCaller) -> SubscriptionResource:
    """Send nothing until it is resumed. It keeps its place: what arrives meanwhile is sent then, as
    far as the log still has it. It expires as if it were not paused."""
    caller.catalog.pause_subscription(number)
    return SubscriptionResource.of(caller.catalog.get_subscription(number))


@router.post("/{number}/resume", response_model_exclude_none=True)
def resume(number: Number, caller: AnyCaller) -> SubscriptionResource:
    """Send what has arrived while it was paused, and go on."""
    caller.catalog.resume_subscription(number)
    return SubscriptionResource.of(caller.catalog.get_subscription(number))


@router.delete("/{number}", status_code=204)
def unsubscribe(number: Number, caller: AnyCaller) -> None:
    caller.catalog.end_subscription(number)
