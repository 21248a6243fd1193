"""`/v1/suggest`: what is there already for a feed that somebody writes, and what it adds to the
bill. Nothing is created (api/suggest.py)."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from headgate.api.planned_feed import planned_statement
from headgate.api.suggest import SharedPart, suggest
from headgate.catalog.principals import Scope
from headgate.plan.relate import PlanRelation
from headgate.service.backtests import STATEMENT_LENGTH_MAX
from headgate.service.caller import AnyCaller
from headgate.service.problems import RESPONSES

router = APIRouter(prefix="/v1", tags=["statements"], responses=RESPONSES)


class FeedToSuggest(BaseModel):
    statement: str = Field(
        max_length=STATEMENT_LENGTH_MAX,
        examples=["create feed Rock from News where title contains 'rock';"],
    )


class KnownFeed(BaseModel, from_attributes=True):
    """A feed that is there already."""

    name: str
    relation: PlanRelation = Field(
        description="What it has, compared with the new feed: for all items that there can be."
    )
    definition: str
    statement: str = Field(
        description="The new feed as one over this wider feed; empty where that is not so simple."
    )


class PartOfPrice(BaseModel, from_attributes=True):
    text: str
    cpu_us: float
    shared_by: int = Field(description="Other feeds that the tenant sees and that have it too.")
    share_us: float = Field(description="An equal part of it for all that have it.")
    cheaper: str = Field(description="What says almost the same for less; empty: nothing known.")


class SuggestAnswer(BaseModel):
    feeds: list[KnownFeed]
    looked_at: int
    candidates: int = Field(description="Feeds over the same sources that the tenant may use.")
    cpu_us: float = Field(description="The CPU time of an item, if nothing were shared.")
    added_us: float = Field(description="What the feed adds, as others have conditions of it.")
    share_us: float = Field(description="Its fair share.")
    items_per_day: float | None = None
    parts: list[PartOfPrice]
    text: str


def part_of(part: SharedPart) -> PartOfPrice:
    return PartOfPrice.model_validate(part)


@router.post("/suggest", response_model_exclude_none=True)
def suggest_feeds(new: FeedToSuggest, caller: AnyCaller) -> SuggestAnswer:
    """Feeds that have the same items, or more, or fewer; what the new feed adds to the cost of an
    item; cheaper conditions."""
    catalog = caller.require(Scope.READ).catalog
    found = suggest(catalog, planned_statement(catalog, new.statement))
    return SuggestAnswer(
        feeds=[KnownFeed.model_validate(each) for each in found.feeds],
        looked_at=found.looked_at,
        candidates=found.candidates,
        cpu_us=found.price.cpu_us,
        added_us=found.added_us,
        share_us=found.share_us,
        items_per_day=found.price.items_per_day,
        parts=[part_of(each) for each in found.parts],
        text=found.text(),
    )
