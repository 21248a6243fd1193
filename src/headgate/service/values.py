"""`/v1/sources/{name}/values` and `/selectivity`: what a source has had lately, for somebody who is
writing a filter (api/value_rates.py)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.api.value_rates import (
    AttributeRates,
    SourceSample,
    ValueRate,
    rate_conditions,
    rate_values,
)
from headgate.catalog.definitions import SOURCE_KINDS
from headgate.catalog.principals import Scope
from headgate.language.schemas import schemas_of
from headgate.model.errors import InvalidValue, LanguageError, UnknownName
from headgate.model.schema import Schema
from headgate.model.values import Type
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import Name
from headgate.service.problems import RESPONSES
from headgate.store.tail import key_of

FILTER_LENGTH_MAX = 64_000
VALUES_DEFAULT, VALUES_MAX = 20, 200
router = APIRouter(prefix="/v1/sources/{name}", tags=["values"], responses=RESPONSES)


class RateOfValue(BaseModel):
    text: str
    items: int = Field(description="Of the sample.")
    share: float
    per_day: float | None = Field(None, description="Missing: the last day had no items.")

    @classmethod
    def of(cls, rate: ValueRate) -> RateOfValue:
        return cls(text=rate.text, items=rate.items, share=rate.share, per_day=rate.per_day)


class ValuesOfAttribute(BaseModel):
    name: str
    type: Type
    present: RateOfValue
    values: list[RateOfValue] = Field(description="Of at most 100 characters.")
    words: list[RateOfValue] = Field(description="As `contains` finds them; of texts only.")

    @classmethod
    def of(cls, rates: AttributeRates) -> ValuesOfAttribute:
        return cls(
            name=rates.name,
            type=rates.type,
            present=RateOfValue.of(rates.present),
            values=[RateOfValue.of(each) for each in rates.values],
            words=[RateOfValue.of(each) for each in rates.words],
        )


class SourceValues(BaseModel):
    sample: int = Field(description="Items that were looked at: the newest ones.")
    per_day: int | None = Field(None, description="Items of the last day, exactly.")
    attributes: list[ValuesOfAttribute]


class FilterToRate(BaseModel):
    filter: str = Field(
        max_length=FILTER_LENGTH_MAX, examples=["title contains 'rock' and not author = 'x'"]
    )


class FilterRates(BaseModel):
    sample: int
    per_day: int | None = None
    filter: RateOfValue
    conditions: list[RateOfValue]


@router.get("/values", response_model_exclude_none=True)
def get_values(
    name: Name,
    caller: AnyCaller,
    attribute: Annotated[
        str | None, Query(max_length=250, description="One of its attributes; missing: all.")
    ] = None,
    prefix: Annotated[str, Query(max_length=100)] = "",
    limit: Annotated[int, Query(ge=1, le=VALUES_MAX)] = VALUES_DEFAULT,
) -> SourceValues:
    """The most frequent values and words of the newest items, with their rates."""
    schema, sample = _sample(caller, name)
    names = [str(each.name) for each in schema.attributes] if attribute is None else [attribute]
    rates = rate_values(sample, schema, names, prefix=prefix, limit=limit)
    return SourceValues(
        sample=len(sample.items),
        per_day=sample.per_day,
        attributes=[ValuesOfAttribute.of(each) for each in rates],
    )


@router.post("/selectivity", response_model_exclude_none=True)
def rate_filter(name: Name, asked: FilterToRate, caller: AnyCaller) -> FilterRates:
    """How often a filter holds for the newest items, and each of its conditions."""
    schema, sample = _sample(caller, name)
    try:
        whole, *conditions = rate_conditions(sample, schema, asked.filter)
    except LanguageError as error:
        raise error.within(asked.filter) from None
    return FilterRates(
        sample=len(sample.items),
        per_day=sample.per_day,
        filter=RateOfValue.of(whole),
        conditions=[RateOfValue.of(each) for each in conditions],
    )


def _sample(caller: Caller, name: str) -> tuple[Schema, SourceSample]:
    with caller.require(Scope.READ).catalog.looking_up() as definitions:
        entry = definitions.entry(name)
        if entry is None or entry.right is None or entry.kind not in SOURCE_KINDS:
            raise UnknownName(f"there is no source '{name}'")
        key = key_of(name, definitions)
        schemas = list(schemas_of(name, definitions))
    if len(schemas) != 1:
        raise InvalidValue(f"'{name}' has items of {len(schemas)} schemas; name one of its sources")
    return schemas[0], caller.service.samples.sample(key)
