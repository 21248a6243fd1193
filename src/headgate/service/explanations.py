"""`/v1/feeds/{name}/explain`, `/price`, `/why`, `/suspend`, `/resume`: what a feed is made of, what
it costs, why it has an item or would not have it, and whether it is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from headgate.api.explain import Explained, FeedLimits, explain_feeds, explain_item
from headgate.api.planned_feed import planned_feed, require_definition
from headgate.api.suggest import suggest
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import Name
from headgate.service.problems import RESPONSES
from headgate.service.suggestions import PartOfPrice, part_of

REASON_LENGTH_MAX = 500
ATTRIBUTES_MAX = 1_000
router = APIRouter(prefix="/v1/feeds/{name}", tags=["explanations"], responses=RESPONSES)


class ExplainAnswer(BaseModel):
    text: str = Field(description="For people to read.")
    data: Any

    @classmethod
    def of(cls, explained: Explained) -> ExplainAnswer:
        return cls(text=explained.text, data=explained.data)


class PriceOfFeed(BaseModel):
    """What a feed adds to an item; with what costs most, and what would be cheaper."""

    text: str
    cpu_us: float
    memory_bytes: int
    items_per_day: float | None = None
    parts: list[PartOfPrice]
    added_us: float = Field(description="What the feed adds, as others have conditions of it.")
    share_us: float = Field(description="Its fair share of what it has in common with others.")
    spent_s: float | None = Field(
        None, description="CPU time that the run has charged it for patterns, joins and operators."
    )


class ItemToExplain(BaseModel):
    attributes: Annotated[dict[str, Any], Field(max_length=ATTRIBUTES_MAX)]
    source: str = Field("", max_length=250, description="Of which source, if the feed has several.")


class Suspend(BaseModel):
    reason: str = Field("by request", max_length=REASON_LENGTH_MAX)


class SuspendAnswer(BaseModel):
    changed: bool = Field(description="Whether it was not so before.")


@router.get("/explain")
def explain(name: Name, caller: AnyCaller) -> ExplainAnswer:
    """The plan of a feed as it is written and in normal form, its price, and whether it is
    suspended."""
    limits = FeedLimits(caller.catalog.statistics, caller.catalog.suspended())
    with explainable(caller, name) as definitions:
        (explained,) = explain_feeds(definitions, [name], limits)
    return ExplainAnswer.of(explained)


@router.get("/price", response_model_exclude_none=True)
def price(name: Name, caller: AnyCaller) -> PriceOfFeed:
    """What the feed costs, and its share of the bill: what it has in common with others is divided
    among them."""
    with explainable(caller, name) as definitions:
        feed = planned_feed(name, definitions)
    found = suggest(caller.catalog, feed, but=name, relate_max=0)
    spent_s = caller.service.headgate.spent_s().get(caller.catalog.view.kept(name))
    return PriceOfFeed(
        text=found.price.text(),
        cpu_us=found.price.cpu_us,
        memory_bytes=found.price.memory_bytes,
        items_per_day=found.price.items_per_day,
        parts=[part_of(each) for each in found.parts],
        added_us=found.added_us,
        share_us=found.share_us,
        spent_s=spent_s,
    )


@router.post("/why")
def why(name: Name, item: ItemToExplain, caller: AnyCaller) -> ExplainAnswer:
    """Why an item with these attributes would be in the feed, or why not: atom by atom."""
    with explainable(caller, name) as definitions:
        explained = explain_item(name, item.attributes, definitions, source=item.source)
    return ExplainAnswer.of(explained)


@router.post("/suspend")
def suspend(name: Name, body: Suspend, caller: AnyCaller) -> SuspendAnswer:
    """Stop evaluating a feed. It stays registered, and so do its subscriptions."""
    return SuspendAnswer(changed=caller.catalog.suspend(name, body.reason))


@router.post("/resume")
def resume(name: Name, caller: AnyCaller) -> SuspendAnswer:
    return SuspendAnswer(changed=caller.catalog.resume(name))


@contextmanager
def explainable(caller: Caller, name: str) -> Iterator[CatalogDefinitions]:
    """What the tenant has, if it may see how this feed is made."""
    with caller.require(Scope.READ).catalog.looking_up() as definitions:
        require_definition(name, definitions)
        yield definitions
