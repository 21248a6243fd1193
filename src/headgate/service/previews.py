"""`/v1/preview` and `/v1/plan`: what somebody who writes a feed sees beside the text. Nothing is
created (api/preview.py, api/plan_graph.py)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from headgate.api.plan_graph import plan_of_name, plan_of_statement
from headgate.api.planned_feed import planned_statement
from headgate.api.preview import FeedPreview, fill_preview, sources_to_look_at
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.service.backtests import STATEMENT_LENGTH_MAX
from headgate.service.caller import AnyCaller
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.problems import RESPONSES

SAMPLES_DEFAULT, SAMPLES_MAX = 8, 50
router = APIRouter(prefix="/v1", tags=["statements"], responses=RESPONSES)


class FeedToPreview(BaseModel):
    statement: str = Field(
        max_length=STATEMENT_LENGTH_MAX,
        examples=["create feed Rock from News where title contains 'rock';"],
    )
    samples: int = Field(SAMPLES_DEFAULT, ge=0, le=SAMPLES_MAX)


class ConditionCounts(BaseModel):
    text: str
    items: int = Field(description="Of which it was asked.")
    holds: int = Field(description="Of those: for which it holds.")
    alone: int = Field(description="Of those: for which it fails, and it alone.")


class NearlyMatched(BaseModel):
    item: FeedItem
    condition: str = Field(description="The only one that fails.")


class PreviewAnswer(BaseModel):
    """What a feed would have of the newest items."""

    sources: int = Field(description="That were looked at.")
    other_sources: int = Field(description="That were not: not seen by the tenant, or too many.")
    other_branches: int = Field(description="With joins, patterns, operators: not evaluated.")
    items: int = Field(description="That were looked at: the newest ones of each source.")
    since: datetime | None = Field(None, description="When the oldest of them arrived.")
    per_day: float = Field(description="Items of these sources in the last day.")
    matched: int
    matched_per_day: float = Field(description="Estimated from the share that matched.")
    nearly: int
    conditions: list[ConditionCounts]
    matched_items: list[FeedItem] = Field(description="The newest first.")
    nearly_items: list[NearlyMatched] = Field(description="The newest first.")

    @classmethod
    def of(cls, found: FeedPreview, samples: int, definitions: CatalogDefinitions) -> Self:
        counts = [
            ConditionCounts(text=text, items=n, holds=found.holds[text], alone=found.alone[text])
            for text, n in found.conditions.items()
        ]
        return cls(
            sources=found.sources,
            other_sources=found.other_sources,
            other_branches=found.other_branches,
            items=found.items,
            since=found.since,
            per_day=found.per_day,
            matched=len(found.matched),
            matched_per_day=found.matched_per_day,
            nearly=len(found.nearly),
            conditions=counts,
            matched_items=[item_of(each, definitions) for each in found.matched[:samples]],
            nearly_items=[
                NearlyMatched(item=item_of(each, definitions), condition=text)
                for each, text in found.nearly[:samples]
            ],
        )


class FeedToPlan(BaseModel):
    statement: str | None = Field(None, max_length=STATEMENT_LENGTH_MAX)
    feed: str | None = Field(None, max_length=250, description="In place of a statement.")

    @model_validator(mode="after")
    def _one_feed(self) -> Self:
        if (self.statement is None) == (self.feed is None):
            raise ValueError("name a statement or a feed")
        return self


class PlanCondition(BaseModel, from_attributes=True):
    text: str
    shared_by: int = Field(description="Other feeds that the tenant sees and that have it too.")


class PlanNode(BaseModel, from_attributes=True):
    id: int
    op: str = Field(examples=["source", "filter", "union", "window", "join", "match"])
    text: str
    inputs: list[int]
    feed: str = Field(description="The feed whose plan begins here; empty: none.")
    conditions: Annotated[list[PlanCondition], Field(description="Of a filter.")]


class PlanOfFeed(BaseModel, from_attributes=True):
    nodes: list[PlanNode] = Field(description="Inputs come before the nodes that use them.")
    count: int = Field(description="Nodes that there are; a large plan has no `nodes` here.")


class PlanAnswer(BaseModel, from_attributes=True):
    before: PlanOfFeed = Field(description="As written; feeds below are part of it.")
    after: PlanOfFeed = Field(description="In normal form: filters directly on sources.")


@router.post("/preview", response_model_exclude_none=True)
def preview_feed(new: FeedToPreview, caller: AnyCaller) -> PreviewAnswer:
    """What a new feed has of the newest items of its sources, and what it misses by a single
    condition. The matcher is that of a run."""
    catalog = caller.require(Scope.READ).catalog
    feed = planned_statement(catalog, new.statement)
    with catalog.looking_up() as definitions:
        sources, preview = sources_to_look_at(feed.plan, definitions)
    fill_preview(preview, sources, caller.service.samples.sample)
    with catalog.looking_up() as definitions:
        return PreviewAnswer.of(preview, new.samples, definitions)


@router.post("/plan")
def plan_feed(asked: FeedToPlan, caller: AnyCaller) -> PlanAnswer:
    """The plan of a feed as a graph, as it is written and in normal form. That of a source is the
    source."""
    catalog = caller.require(Scope.READ).catalog
    if asked.statement is not None:
        feed = planned_statement(catalog, asked.statement)
        return PlanAnswer.model_validate(plan_of_statement(catalog, feed))
    assert asked.feed is not None, "the request was checked"
    return PlanAnswer.model_validate(plan_of_name(catalog, asked.feed))
