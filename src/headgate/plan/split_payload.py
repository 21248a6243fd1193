"""Split the payload off a table: σ[F](T) = σ[F](T(key, rest)) ⋈ₙ[key] T(key, payload).

    Stocks (Symbol key, PER, Logo payload)                ⋈ₙ on Symbol
    from Stocks where PER between 45 and 70       ──►       σ [PER between 45 and 70]
                                                              Stocks(Symbol, PER)
                                                            Stocks(Symbol, Logo)

A selection over rows with a bulky payload is better expressed as a join ([Select-Joins], Appendix
I). As semijoins, the payload is sent to a subscriber when the row begins to be selected, and not
again with each change of the row. A table that is already one side of a join becomes two sides of a
multi-way join.

Invariant: over tables, where a key identifies one row, both plans give the same rows. The two
halves of a table are tables of their own, with names that no source has; `PayloadSplit.halves`
describes them.

A table is not split where F looks at the whole item, at a payload or at an undeclared attribute, or
calls an operator: the first half lacks what these need. Nor where another side of a join has an
attribute with the name of the key that is not joined on: the join would be on that too.

It is not a rule of the normal form, because streams have no key and matching single items needs no
state. Only table joins use it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headgate.language.schemas import Definitions, row_schema
from headgate.language.statements import RegisterTable
from headgate.model.atoms import Call, Constraint
from headgate.model.filters import TRUE, atoms_of
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import Filter, NaturalJoin, Plan, Side, Source, Transform, Union


@dataclass(frozen=True, slots=True)
class Half:
    """Some attributes of a table, as a table of its own."""

    table: str
    attributes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table}({', '.join(self.attributes)})"


@dataclass(frozen=True, slots=True)
class PayloadSplit:
    plan: Plan
    halves: Mapping[str, Half]
    """By the names that they have in the plan."""


@dataclass(frozen=True, slots=True)
class Halves:
    """A table that has a payload, cut in two; the key is in both halves."""

    key: tuple[str, ...]
    rest: Half
    payload: Half


def split_payload(plan: Plan, definitions: Definitions) -> PayloadSplit | None:
    """A normal plan with payloads split off in each branch; None if no table can be split."""
    match plan:
        case Transform(stylesheet, input_):
            below = split_payload(input_, definitions)
            return below and PayloadSplit(Transform(stylesheet, below.plan), below.halves)
        case Union(inputs):
            splits = [_split_branch(each, definitions) for each in inputs]
            plans = [s.plan if s else each for s, each in zip(splits, inputs, strict=True)]
            halves = {name: half for s in splits if s for name, half in s.halves.items()}
            return PayloadSplit(Union(tuple(plans)), halves) if halves else None
    return _split_branch(plan, definitions)


def _split_branch(plan: Plan, definitions: Definitions) -> PayloadSplit | None:
    match plan:
        case Filter(rest, NaturalJoin() as join):
            below = _split_join(join, definitions)
            return below and PayloadSplit(Filter(rest, below.plan), below.halves)
        case NaturalJoin():
            return _split_join(plan, definitions)
    table = _table(plan, definitions)
    if table is None:
        return None
    sides, inputs = _sides(plan, table)
    joined = NaturalJoin(table.key, tuple(sides), tuple(inputs))
    return PayloadSplit(joined, {each.name: each for each in (table.rest, table.payload)})


def _split_join(join: NaturalJoin, definitions: Definitions) -> PayloadSplit | None:
    """Every side that has a payload becomes two sides."""
    on, sides, inputs = list(join.on), list[Side](), list[Plan]()
    halves: dict[str, Half] = {}
    for number, (side, input_) in enumerate(zip(join.sides, join.inputs, strict=True)):
        table = _table(input_, definitions)
        other_sides = [other for place, other in enumerate(join.sides) if place != number]
        names = [name for other in other_sides for name in other.attributes]
        if table is None or not is_own_key(table.key, names, join.on):
            sides.append(side)
            inputs.append(input_)
            continue
        new_sides, new_inputs = _sides(input_, table)
        sides += new_sides
        inputs += new_inputs
        on += [name for name in table.key if name not in on]
        halves |= {half.name: half for half in (table.rest, table.payload)}
    return (
        PayloadSplit(NaturalJoin(tuple(on), tuple(sides), tuple(inputs)), halves)
        if halves
        else None
    )


def is_own_key(key: Sequence[str], other_names: Collection[str], on: Sequence[str]) -> bool:
    """Whether a join on the key joins nothing but the two halves and what is joined on it anyway.

    `other_names` are the attributes of other tables.
    """
    return all(name in on or name not in other_names for name in key)


def _sides(plan: Plan, table: Halves) -> tuple[list[Side], list[Plan]]:
    """The halves as two sides; both give their attributes the name of the whole table."""
    first_half: Plan = Source(table.rest.name)
    if isinstance(plan, Filter):
        first_half = Filter(plan.filter, first_half)
    sides = [Side(each.table, each.attributes) for each in (table.rest, table.payload)]
    return sides, [first_half, Source(table.payload.name)]


def _table(plan: Plan, definitions: Definitions) -> Halves | None:
    match plan:
        case Source(name):
            return halves_of(name, TRUE, definitions)
        case Filter(filter_, Source(name)):
            return halves_of(name, filter_, definitions)
        case _:
            return None


def halves_of(name: str, filter_: Predicate, definitions: Definitions) -> Halves | None:
    """The two halves of a table, if it has a payload that the filter does not look at."""
    if not isinstance(definitions.get(name), RegisterTable):
        return None
    attributes = row_schema(name, definitions).attributes
    key = tuple(str(each.name) for each in attributes if each.key)
    rest = tuple(str(each.name) for each in attributes if not each.payload)
    payload = tuple(str(each.name) for each in attributes if each.payload)
    if not payload or not _looks_only_at(filter_, rest):
        return None
    return Halves(key, Half(name, rest), Half(name, key + payload))


def _looks_only_at(filter_: Predicate, attributes: Sequence[str]) -> bool:
    return all(
        not isinstance(atom, Call | Constraint) and atom.attribute in attributes
        for atom in atoms_of(filter_)
    )
