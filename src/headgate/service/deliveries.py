"""`/v1/subscriptions/{number}/deliveries`, `…/replay` and `…/test`: how far the deliveries of a
subscription are, what was tried last and given up, sending again, and a test call."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import APIRouter, HTTPException, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, model_validator

from headgate.api.deliveries import (
    NOTHING_YET,
    WAITING_COUNTED_MAX,
    ReceiverState,
    SubscriptionDeliveries,
    count_waiting,
    replay_deliveries,
)
from headgate.catalog.lookups import SubscriptionEntry
from headgate.catalog.principals import Scope
from headgate.deliver.attempts import ATTEMPTS_KEPT, AttemptRow, last_attempts
from headgate.deliver.confirmations import address_key, ask_again
from headgate.deliver.delivery_status import progress_of
from headgate.deliver.output_mail import checked_address
from headgate.deliver.records import Transport
from headgate.deliver.replay import NumberedLetter, Replayed, dead_letters_of
from headgate.model.errors import InvalidValue
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import PAGE_DEFAULT, PAGE_MAX
from headgate.service.problems import RESPONSES
from headgate.service.subscriptions import Number

NUMBER_MAX = 2**62
LetterNumber = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
router = APIRouter(prefix="/v1/subscriptions/{number}", tags=["subscriptions"], responses=RESPONSES)


class DeadLetterEntry(BaseModel):
    number: int
    message: str = Field(description="Its id, the same at every attempt: `webhook-id` of a call.")
    position: int = Field(description="Of its first item in the log.")
    items: int = Field(description="0: retention has removed them.")
    attempts: int
    error: str
    died_at: datetime

    @classmethod
    def of(cls, letter: NumberedLetter) -> DeadLetterEntry:
        return cls(
            number=letter.number,
            message=f"msg_{letter.message}" if letter.message else "",
            position=letter.first,
            items=letter.item_count,
            attempts=letter.attempts,
            error=letter.error,
            died_at=datetime.fromtimestamp(letter.died_at, UTC),
        )


class AttemptEntry(BaseModel):
    at: datetime
    took_s: float
    status: int | None = Field(None, description="Of the answer of a call; missing: none came.")
    error: str | None = Field(None, description="Missing: the receiver has taken it.")
    message: str = Field(description="Its id, the same at every attempt: `webhook-id` of a call.")
    items: int

    @classmethod
    def of(cls, row: AttemptRow) -> AttemptEntry:
        return cls(
            at=datetime.fromtimestamp(row.at, UTC),
            took_s=row.took_s,
            status=row.status,
            error=row.error or None,
            message=f"msg_{row.message}",
            items=row.item_count,
        )


class DeliveriesAnswer(BaseModel):
    state: ReceiverState
    cursor: int | None = Field(None, description="The next position of the log to deliver.")
    waiting: int = Field(
        description="Items of the feed that are not delivered yet; "
        f"{WAITING_COUNTED_MAX:,}: so many or more."
    )
    failures: int = Field(description="Attempts in a row that have failed.")
    retrying: int = Field(description="Messages that were refused by themselves.")
    dead: int = Field(description="Messages that were given up.")
    last_error: str | None = Field(None, description="Of what is not delivered.")
    next_attempt: datetime | None = None
    attempts: list[AttemptEntry] = Field(
        description=f"The last {ATTEMPTS_KEPT}, the newest first; of mails, calls and records."
    )
    letters: list[DeadLetterEntry] = Field(description="What was given up, by number.")
    next: int | None = Field(None, description="`after` of the next page of letters.")


class ReplayRequest(BaseModel):
    """Some dead letters, or all from a position on with everything that was sent since then;
    without either, all dead letters."""

    letter: int | None = Field(None, ge=1, le=NUMBER_MAX, description="One, by its number.")
    letters: list[LetterNumber] | None = Field(
        None, min_length=1, max_length=PAGE_MAX, description="Several, by their numbers."
    )
    since: int | None = Field(None, ge=0, le=NUMBER_MAX, description="A position.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(each is not None for each in (self.letter, self.letters, self.since)) > 1:
            raise ValueError("name a letter, several letters or a position: one of them")
        return self

    @property
    def wanted(self) -> list[int] | None:
        return self.letters if self.letter is None else [self.letter]


class ReplayAnswer(BaseModel):
    letters: int = Field(description="Dead letters that are sent again.")
    letters_left: int = Field(description="Further ones: ask again when these are sent.")
    items: int = Field(description="Items that were sent before.")
    resumed: bool = Field(description="Whether it was halted, and goes on.")
    next: int | None = Field(None, description="`since` of the next request: there is more.")


@router.get("/deliveries", response_model_exclude_none=True)
def get_deliveries(
    number: Number,
    caller: AnyCaller,
    after: Annotated[int, Query(ge=0, le=NUMBER_MAX)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> DeliveriesAnswer:
    entry, progress, letters = _entry(caller, number), NOTHING_YET, list[NumberedLetter]()
    attempts: list[AttemptRow] = []
    with caller.service.headgate.delivery_database() as database:
        if database is not None:
            progress = progress_of(database, entry)
            letters = dead_letters_of(database, number, after=after, limit=limit)
            attempts = last_attempts(database, number)
    waiting = caller.service.log.ask(lambda view: count_waiting(view, entry, progress.cursor))
    found = SubscriptionDeliveries.of(entry, progress, waiting)
    return DeliveriesAnswer(
        state=found.state,
        cursor=progress.cursor,
        waiting=found.waiting,
        failures=progress.failures,
        retrying=progress.retrying,
        dead=progress.dead,
        last_error=progress.error or None,
        next_attempt=found.next_attempt,
        attempts=[AttemptEntry.of(each) for each in attempts],
        letters=[DeadLetterEntry.of(each) for each in letters],
        next=letters[-1].number if len(letters) == limit else None,
    )


@router.post("/replay", response_model_exclude_none=True)
def replay(
    number: Number,
    again: ReplayRequest,
    caller: AnyCaller,
    dry_run: Annotated[bool, Query(description="Only say how much it would be.")] = False,
) -> ReplayAnswer:
    """Send again, under the ids that the messages had before. Sending begins within seconds."""
    entry, replayed = _entry(caller, number), Replayed()
    with caller.service.headgate.delivery_database() as database:
        if database is not None:
            with caller.service.log.searching() as view:
                replayed = replay_deliveries(
                    database, view, entry, letters=again.wanted, since=again.since, dry_run=dry_run
                )
    if not dry_run and (replayed.letters or replayed.items or replayed.was_halted):
        detail = f"{replayed.letters:,} dead letters, {replayed.items:,} items"
        caller.catalog.record_replay(number, detail)
    return ReplayAnswer(
        letters=replayed.letters,
        letters_left=replayed.letters_left,
        items=replayed.items,
        resumed=replayed.was_halted,
        next=replayed.next,
    )


@router.post("/confirmation", status_code=202)
def ask_for_confirmation(number: Number, caller: AnyCaller) -> None:
    """Send the mail that asks its reader to confirm a subscription once more; one a day at most."""
    entry = _entry(caller, number)
    if entry.output_kind != Transport.MAIL or entry.confirmed_at is not None:
        raise InvalidValue(f"subscription {number} waits for no confirmation")
    key, left_s = address_key(checked_address(entry.target), entry.tenant), 0.0
    with caller.service.headgate.delivery_database() as database:
        if database is not None:
            left_s = ask_again(database, key, now_s=database.now_s())
    if left_s:
        raise HTTPException(
            429,
            "This address was asked within the last day",
            {"retry-after": str(math.ceil(left_s))},
        )


class TestAnswer(BaseModel):
    """What the receiver has answered to a test."""

    taken: bool = Field(description="Whether the answer was one of success.")
    status: int | None = Field(None, description="Missing: no answer came.")
    took_s: float
    body: str = Field(description="The beginning of the answer, as text.")
    error: str | None = None
    message: str = Field(description="The `webhook-id` of the call.")


@router.post("/test", response_model_exclude_none=True)
async def test_receiver(number: Number, caller: AnyCaller) -> TestAnswer:
    """Call the receiver of a webhook once, with a signed message of the type `headgate.test` and
    no items. Nothing of the subscription changes."""
    caller.service.rates.take_test(caller.principal.tenant)
    await run_in_threadpool(_entry, caller, number)
    found = await run_in_threadpool(caller.service.receivers.call, number)
    return TestAnswer(
        taken=found.is_taken,
        status=found.status,
        took_s=found.took_s,
        body=found.body,
        error=found.error or None,
        message=found.message,
    )


def _entry(caller: Caller, number: int) -> SubscriptionEntry:
    """A subscription of the tenant."""
    caller.require(Scope.SUBSCRIBE).catalog.get_subscription(number)
    return caller.service.headgate.subscription_entry(number)
