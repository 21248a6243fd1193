"""Build filters: one method for each grammar rule of atoms, constants and Boolean expressions."""

from __future__ import annotations

from headgate.language.literals import read_number, read_text, read_typed, read_word
from headgate.language.names import Name
from headgate.model.atoms import (
    SIMILARITY_DEFAULT,
    Argument,
    Arithmetic,
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    Expression,
    In,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Matches,
    Operand,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    Variable,
    WindowAttribute,
)
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or
from headgate.model.values import Value

Field = tuple[str, TimestampPart | None]


class FilterBuilder:
    def everything(self, _token: Name) -> Filter:
        return TRUE

    def nothing(self, _token: Name) -> Filter:
        return FALSE

    def and_(self, *parts: Filter) -> And:
        return And(parts)

    def or_(self, *parts: Filter) -> Or:
        return Or(parts)

    def not_(self, part: Filter) -> Not:
        return Not(part)

    def comparison(self, field: Field, relation: Relation, value: Operand) -> Atom:
        return Comparison(field[0], relation, value, field[1])

    def between(self, field: Field, low: Value, high: Value) -> Atom:
        return Between(field[0], low, high, field[1])

    def in_(self, field: Field, *values: Value) -> Atom:
        return In(field[0], values, field[1])

    def is_present(self, name: Name) -> Atom:
        return IsPresent(name)

    def is_not_present(self, name: Name) -> Not:
        return Not(IsPresent(name))

    def is_true(self, name: Name) -> Atom:
        return Comparison(name, Relation.EQUAL, True)

    def contains(self, name: Name | None, text: str) -> Atom:
        return Contains(name, text)

    def contains_phrase(self, name: Name | None, text: str) -> Atom:
        return Contains(name, text, phrase=True)

    def similar(self, name: Name | None, threshold: Name | None, text: str) -> Atom:
        at_least = SIMILARITY_DEFAULT if threshold is None else float(read_number(threshold))
        return Similar(name, text, at_least)

    def starts_with(self, name: Name, prefix: str) -> Atom:
        return StartsWith(name, prefix)

    def matches(self, name: Name | None, pattern: str) -> Atom:
        return Matches(name, pattern)

    def references(self, name: Name | None, url: str) -> Atom:
        return LinkAtom(name, LinkRelation.REFERENCES, (url,))

    def extends(self, name: Name | None, url: str) -> Atom:
        return LinkAtom(name, LinkRelation.EXTENDS, (url,))

    def shares_link(self, name: Name | None, *urls: str) -> Atom:
        return LinkAtom(name, LinkRelation.SHARES_LINK, urls)

    def definition(self, name: Name, part: Name | None) -> Name:
        return name if part is None else Name(f"{name}.{part}", name.position)

    def call(self, operator: Name, *arguments: Argument | None) -> Atom:
        return Call(operator, tuple(each for each in arguments if each is not None))

    def constraint(self, left: Expression, relation: Relation, right: Expression) -> Atom:
        return Constraint(left, relation, right)

    def field(self, name: Name, part: Name | None) -> Field:
        return name, None if part is None else read_word(
            TimestampPart, part, called="part of a timestamp"
        )

    def relation(self, token: Name) -> Relation:
        return Relation.NOT_EQUAL if token == "<>" else Relation(token)

    def window_attribute(self, name: Name) -> WindowAttribute:
        return WindowAttribute(name)

    def variable(self, token: Name) -> Variable:
        return Variable(Name(token[1:], token.position))

    def bare_text(self, name: Name) -> str:
        return str(name)

    def add(self, left: Expression, right: Expression) -> Arithmetic:
        return Arithmetic("+", left, right)

    def subtract(self, left: Expression, right: Expression) -> Arithmetic:
        return Arithmetic("-", left, right)

    def multiply(self, left: Expression, right: Expression) -> Arithmetic:
        return Arithmetic("*", left, right)

    def divide(self, left: Expression, right: Expression) -> Arithmetic:
        return Arithmetic("/", left, right)

    def number(self, token: Name) -> int | float:
        return read_number(token)

    def negative(self, token: Name) -> int | float:
        return read_number(token, negative=True)

    def string(self, token: Name) -> str:
        return read_text(token)

    def boolean(self, token: Name) -> bool:
        return token.lower() == "true"

    def typed(self, type_: Name, text: str) -> Value:
        return read_typed(type_, text)
