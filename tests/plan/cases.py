"""Short functions with which tests write plans."""

from headgate.language.parse import parse
from headgate.language.statements import Advertise, CreateFeed, WindowJoin
from headgate.model.duration import ItemCount
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import Filter, Join, NaturalJoin, Plan, Side, Source, Union, Window

s, t, u = Source("s"), Source("t"), Source("u")
stocks, reviews = Source("Stocks"), Source("Reviews")


def condition(text: str) -> Predicate:
    statement = parse(f"advertise s where {text}")
    assert isinstance(statement, Advertise)
    return statement.filter


def join_condition(text: str) -> Predicate:
    statement = parse(f"create feed F from s as $s join last 1 items on t with $s[{text}]")
    assert isinstance(statement, CreateFeed)
    (join,) = statement.joins
    assert isinstance(join, WindowJoin)
    return join.predicate


def where(text: str, input_: Plan) -> Filter:
    return Filter(condition(text), input_)


def union(*inputs: Plan) -> Union:
    return Union(inputs)


def last(count: int, input_: Plan) -> Window:
    return Window(ItemCount(count), input_)


def join(primary: Plan, text: str, window: Window) -> Join:
    return Join("F#1", join_condition(text), primary, window)


def rated(left: Plan = stocks, right: Plan = reviews) -> NaturalJoin:
    """Stocks and reviews; both have a Date, so that it is renamed."""
    sides = (
        Side("Stocks", ("Symbol", "PER", "Date")),
        Side("Reviews", ("Symbol", "Rating", "Date")),
    )
    return NaturalJoin(("Symbol",), sides, (left, right))
