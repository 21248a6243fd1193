"""The naive evaluator, the oracle of every optimiser: does an item satisfy a filter?

The logic is two-valued: an atom on an attribute that the item lacks is false, and so is an atom
that compares two kinds of value; `not` negates. Variables are read as in [Operators §2.2]: a
conjunction is true if one joint substitution satisfies all of it. A `not` is true if no
substitution satisfies what it negates, given the bindings made outside of it.

It is written to be obviously right, not to be fast: it uses neither an index nor a cache.
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from headgate.model.atoms import (
    Argument,
    Arithmetic,
    AttributeAtom,
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
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    Variable,
    WindowAttribute,
)
from headgate.model.errors import OperatorError
from headgate.model.filters import And, Filter, Not, Or, ready_order
from headgate.model.items import Item
from headgate.model.patterns import PATTERN_TEXT_MAX, compile_pattern
from headgate.model.text import (
    contains_phrase,
    extends,
    fold,
    jaccard,
    links_in,
    references,
    words,
    xml_text,
)
from headgate.model.values import Kind, Value, Xml, comparable, is_missing, kind_of

Answer = bool | Iterable[tuple[Value, ...]]
Operator = Callable[..., Answer]
"""Called with the item and the arguments. Without variables among them it answers true or false;
otherwise with one tuple for each solution, one value for each variable argument."""

Substitution = Mapping[str, Value]

_COMPUTE: dict[str, Callable[..., int | float]] = {
    "+": python_operator.add,
    "-": python_operator.sub,
    "*": python_operator.mul,
    "/": python_operator.truediv,
}


def matches(
    filter_: Filter,
    item: Item,
    *,
    operators: Mapping[str, Operator] | None = None,
    window_item: Item | None = None,
) -> bool:
    """Whether the item satisfies the filter; in a join, together with an item of the window."""
    substitutions = solutions(filter_, item, {}, operators=operators or {}, window_item=window_item)
    return next(substitutions, None) is not None


def solutions(
    filter_: Filter,
    item: Item,
    bound: Substitution,
    *,
    operators: Mapping[str, Operator],
    window_item: Item | None,
) -> Iterator[Substitution]:
    """The substitutions that extend `bound` and make the filter true."""

    def solve(part: Filter, bound: Substitution) -> Iterator[Substitution]:
        match part:
            case And(parts):
                yield from solve_all(ready_order(parts, bound=frozenset(bound)), bound)
            case Or(parts):
                for alternative in parts:
                    yield from solve(alternative, bound)
            case Not(negated):
                if next(solve(negated, bound), None) is None:
                    yield bound
            case Call():
                yield from _call(part, item, bound, operators)
            case Constraint():
                if _holds(part, bound):
                    yield bound
            case atom:
                if _atom_matches(atom, item, window_item):
                    yield bound

    def solve_all(parts: tuple[Filter, ...], bound: Substitution) -> Iterator[Substitution]:
        if not parts:
            yield bound
            return
        for extended in solve(parts[0], bound):
            yield from solve_all(parts[1:], extended)

    return solve(filter_, bound)


def _atom_matches(atom: AttributeAtom, item: Item, window_item: Item | None) -> bool:
    match atom:
        case Comparison(attribute, relation, operand, part):
            value = part_of(_value_of(item, attribute), part)
            return _compare(value, relation, _operand_value(operand, window_item))
        case Between(attribute, low, high, part):
            value = part_of(_value_of(item, attribute), part)
            return _compare(value, Relation.GREATER_EQUAL, low) and _compare(
                value, Relation.LESS_EQUAL, high
            )
        case In(attribute, values, part):
            value = part_of(_value_of(item, attribute), part)
            return any(_compare(value, Relation.EQUAL, each) for each in values)
        case IsPresent(attribute):
            return _value_of(item, attribute) is not None
        case Contains(attribute, _, phrase):
            texts = [words(text) for text in _texts(item, attribute)]
            if phrase:
                return any(contains_phrase(text, atom.words) for text in texts)
            return set(atom.words) <= {word for text in texts for word in text} and all(
                any(contains_phrase(text, each) for text in texts) for each in atom.phrases
            )
        case Similar(attribute, text, threshold):
            other_text = _operand_value(text, window_item)
            if not isinstance(other_text, str):
                return False
            item_words = frozenset(word for each in _texts(item, attribute) for word in words(each))
            return jaccard(item_words, frozenset(words(other_text))) >= threshold
        case StartsWith(attribute):
            return any(fold(text).startswith(atom.folded) for text in _texts(item, attribute))
        case Matches(attribute, pattern):
            compiled = compile_pattern(pattern)
            return any(
                compiled.search(_seen_by_patterns(text)) is not None
                for text in _texts(item, attribute)
            )
        case LinkAtom(attribute, relation, urls):
            test = extends if relation is LinkRelation.EXTENDS else references
            return any(test(link, url) for link in _links(item, attribute) for url in urls)


def _seen_by_patterns(text: str) -> str:
    """The longest beginning of a text that has at most PATTERN_TEXT_MAX bytes."""
    sizes = accumulate(len(each.encode("utf-8", "surrogatepass")) for each in text)
    return text[: sum(size <= PATTERN_TEXT_MAX for size in sizes)]


def _value_of(item: Item, attribute: str) -> Value | None:
    value = item.attributes.get(attribute)
    return None if is_missing(value) else value


def _operand_value(operand: Value | WindowAttribute, window_item: Item | None) -> Value | None:
    if not isinstance(operand, WindowAttribute):
        return operand
    assert window_item is not None, "window.attribute is only meant in a join"
    return _value_of(window_item, operand.name)


def part_of(value: Value | None, part: TimestampPart | None) -> Value | None:
    if part is None or value is None:
        return value
    if isinstance(value, (str, bytes, int, float)):
        return None
    match part:
        case TimestampPart.WEEKDAY:
            return value.isoweekday()
        case TimestampPart.DATE:
            return value.replace(hour=0, minute=0, second=0, microsecond=0)
    number: int = getattr(value, part.value)
    return number


def _compare(left: Value | None, relation: Relation, right: Value | None) -> bool:
    if is_missing(left) or is_missing(right) or left is None or right is None:
        return False
    if kind_of(left) is not kind_of(right):
        return False
    return relation.holds(comparable(left), comparable(right))


def _texts(item: Item, attribute: str | None) -> list[str]:
    """The text of one attribute, or the texts of all; links are not text."""
    names = sorted(item.attributes) if attribute is None else [attribute]
    values = (item.attributes.get(name) for name in names)
    return [
        xml_text(value) if isinstance(value, Xml) else value
        for value in values
        if isinstance(value, str) and kind_of(value) in (Kind.TEXT, Kind.XML)
    ]


def _links(item: Item, attribute: str | None) -> list[str]:
    """The links of one attribute, or of all: links themselves, and the URLs within texts."""
    names = sorted(item.attributes) if attribute is None else [attribute]
    links: list[str] = []
    for value in (item.attributes.get(name) for name in names):
        if isinstance(value, str):
            links += [value] if kind_of(value) is Kind.LINK else links_in(value)
    return links


def _call(
    call: Call, item: Item, bound: Substitution, operators: Mapping[str, Operator]
) -> Iterator[Substitution]:
    operator = operators.get(call.operator)
    if operator is None:
        raise OperatorError(f"operator '{call.operator}' is not loaded")
    answer = operator(item, *call.arguments)
    variables = [each.name for each in call.arguments if isinstance(each, Variable)]
    if isinstance(answer, bool):
        if variables:
            raise OperatorError(f"operator '{call.operator}' did not bind its variables")
        if answer:
            yield bound
        return
    for values in answer:
        extended = _bind(bound, variables, values)
        if extended is not None:
            yield extended


def _bind(
    bound: Substitution, variables: list[str], values: tuple[Value, ...]
) -> Substitution | None:
    """The substitution with these bindings too, or nothing where they contradict it."""
    extended = dict(bound)
    for name, value in zip(variables, values, strict=True):
        if name in extended and not _compare(extended[name], Relation.EQUAL, value):
            return None
        extended.setdefault(name, value)
    return extended


def _holds(constraint: Constraint, bound: Substitution) -> bool:
    try:
        left, right = _compute(constraint.left, bound), _compute(constraint.right, bound)
    except (ArithmeticError, TypeError):
        return False
    return _compare(left, constraint.relation, right)


def _compute(expression: Expression, bound: Substitution) -> Value:
    match expression:
        case Variable(name):
            return bound[name]
        case Arithmetic(sign, left, right):
            numbers = _compute(left, bound), _compute(right, bound)
            if any(kind_of(number) is not Kind.NUMBER for number in numbers):
                raise TypeError(f"'{sign}' is for numbers")
            return _COMPUTE[sign](*numbers)
    return expression


__all__ = ["Answer", "Argument", "Operator", "Substitution", "matches", "solutions"]
