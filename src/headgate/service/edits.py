"""`/v1/feeds/{name}/edit`: the smallest edit of a feed that would admit a stored item, and how many
more items a day that would let in. Nothing is changed (plan/smallest_edit.py)."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.api.value_rates import rate_filters
from headgate.catalog.definitions import CatalogDefinitions
from headgate.catalog.principals import Scope
from headgate.language.schemas import schemas_of
from headgate.language.unparse import unparse, unparse_filter
from headgate.model.errors import UnknownName
from headgate.model.filters import TRUE
from headgate.model.schema import Schema
from headgate.plan.leaves import calls_operators
from headgate.plan.normalize import normalize
from headgate.plan.relate import PlanBranches
from headgate.plan.smallest_edit import EditedFeed, smallest_edit
from headgate.plan.translate import compose
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import Name
from headgate.service.explanations import explainable
from headgate.service.problems import RESPONSES
from headgate.service.values import RateOfValue
from headgate.service.why import POSITION_MAX, row_of
from headgate.store.log_items import LoggedItem
from headgate.store.tail import key_of

router = APIRouter(prefix="/v1/feeds/{name}", tags=["explanations"], responses=RESPONSES)


class ChangedCondition(BaseModel):
    before: str
    after: str | None = Field(None, description="Missing: the condition is left out.")


class FeedToEdit(BaseModel):
    feed: str
    before: str = Field(description="Its statement.")
    after: str
    changes: list[ChangedCondition]


class EditRates(BaseModel):
    """How many items of the item's source pass, by a sample of the newest ones."""

    sample: int
    per_day: int | None = Field(None, description="Items of the source in the last day.")
    before: RateOfValue
    after: RateOfValue


class EditAnswer(BaseModel):
    feeds: list[FeedToEdit] = Field(
        description="What to change, the feed itself first; empty: no such edit was found."
    )
    rates: EditRates | None = Field(None, description="Missing: not known.")


@dataclass(frozen=True, slots=True)
class _FilterPair:
    """What a feed asks of the items of a source, before and after an edit."""

    key: int | str
    schema: Schema
    before: str
    after: str


@router.get("/edit", response_model_exclude_none=True)
def get_edit(
    name: Name, caller: AnyCaller, position: Annotated[int, Query(ge=0, le=POSITION_MAX)]
) -> EditAnswer:
    """The smallest change of conditions after which the feed has the item at this position."""
    row = row_of(caller.require(Scope.READ), position).item
    with explainable(caller, name) as definitions:
        source = definitions.view.shown(row.source)
        if not definitions.sees(source):
            raise UnknownName(f"the source of the item at position {position} is not seen")
        schema = next(iter(schemas_of(source, definitions)))
        edits = _edits(name, row, source, schema, definitions)
        pair = _filters(name, source, schema, edits, definitions) if edits else None
    return EditAnswer(
        feeds=[_to_edit(each) for each in edits],
        rates=None if pair is None else _rates(caller, pair),
    )


def _edits(
    name: str, row: LoggedItem, source: str, schema: Schema, definitions: CatalogDefinitions
) -> list[EditedFeed]:
    """None if one of the feeds is another tenant's."""
    item = replace(row.item(schema), source=source)
    edits = smallest_edit(name, item, definitions)
    entries = (definitions.entry(str(each.before.name)) for each in edits)
    is_own = all(entry is not None and entry.is_own for entry in entries)
    return edits if is_own else []


def _to_edit(edited: EditedFeed) -> FeedToEdit:
    return FeedToEdit(
        feed=str(edited.before.name),
        before=unparse(edited.before),
        after=unparse(edited.after),
        changes=[
            ChangedCondition(
                before=unparse_filter(each.before),
                after=None if each.after is None else unparse_filter(each.after),
            )
            for each in edited.changes
        ],
    )


def _filters(
    name: str,
    source: str,
    schema: Schema,
    edits: list[EditedFeed],
    definitions: CatalogDefinitions,
) -> _FilterPair | None:
    edited = {str(each.after.name): each.after for each in edits}
    with_them = ChainMap(edited, definitions)  # type: ignore[arg-type]
    plans = (normalize(compose(name, each)) for each in (definitions, with_them))
    texts: list[str] = []
    for plan in plans:
        filter_ = PlanBranches.of(plan).filters.get(source)
        if filter_ is None or calls_operators(filter_):
            return None
        texts.append("" if filter_ == TRUE else unparse_filter(filter_))
    before, after = texts
    return _FilterPair(key_of(source, definitions), schema, before, after)


def _rates(caller: Caller, pair: _FilterPair) -> EditRates:
    sample = caller.service.samples.sample(pair.key)
    asked = [text for text in dict.fromkeys((pair.before, pair.after)) if text]
    rates = {each.text: each for each in rate_filters(sample, pair.schema, asked)}
    size = len(sample.items)
    everything = RateOfValue(text="", items=size, share=1.0, per_day=sample.per_day)
    before, after = (
        RateOfValue.of(rates[text]) if text else everything for text in (pair.before, pair.after)
    )
    return EditRates(sample=size, per_day=sample.per_day, before=before, after=after)
