"""The description of a filter: the values that it allows, place by place.

Covering searches the forest with descriptions as matching searches it with items. A filter F is
described by the values that it allows at *places*, and by *forms*: properties that all its items
have, such as a word or the host of a link. Both sides of a cover check are described in this way:

    price > 3 and price < 9           price: (3, 9)
    title contains 'rock'             title: a text    word rock in title    word rock in the item
    published.year = 2026             published: an instant     its year: {2026}
    x = 1 or x = 5                    x: {1, 5}
    (x = 1 or y = 1) and y = 0        x: {1}   y: {0}            (the branch y = 1 is impossible)

Invariants. Every item of F satisfies F's description. If model/implies.py finds that F implies G,
then F's description lies within G's, place by place. If G is *exact*, which means that it is
equivalent to its description, the converse holds too. So the forest of descriptions finds every
pair, and only pairs with an inexact G must be checked with `implies_filter`.

Exact are conjunctions of comparisons, ranges, lists, `is present`, `starts with`, `contains` of
words and operator calls, of negations that restrict values, and of disjunctions at one place.
Negations about texts and links, and disjunctions over several places, are left out of the
description, and the filter is not exact.

Cost: linear for conjunctions. A disjunction over several places is multiplied out, up to
`CASES_MAX` cases; beyond that it is left out. A negated prefix is known by its values only where
the filter restricts the attribute otherwise too: `title > 'a' and not title contains 'rock'` is
not found to imply `title > 'a' and not title starts with 'rock concert'`. Either may cost a
forwarded filter, never a match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from headgate.cover.describe_values import (
    Description,
    DescriptionPlace,
    restrict_parts,
    without_holes,
    without_refuted,
)
from headgate.model.atoms import (
    Between,
    Call,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    StartsWith,
    WindowAttribute,
)
from headgate.model.filters import Filter
from headgate.model.implies import contradictory
from headgate.model.implies_normal import (
    AllOf,
    AnyOf,
    Literal,
    Node,
    VariableGroup,
    negation_normal,
)
from headgate.model.implies_text import known_words
from headgate.model.implies_values import ANY, PRESENT, ValueSet, allowed_values
from headgate.model.text import NormalLink, normal_link, words
from headgate.model.values import Kind

_PLAIN_KINDS = (Kind.NUMBER, Kind.BOOL, Kind.TIMESTAMP, Kind.BYTES)
CASES_MAX = 64
LABELS_MAX = 8
"""Longer host names are described by their last labels, which is enough to find candidates."""


@dataclass(frozen=True, slots=True)
class FilterDescription:
    """The allowed values by place; `places` is None if no item satisfies the filter."""

    places: Description | None
    is_exact: bool


def describe(filter_: Filter) -> FilterDescription:
    """The description of a filter. Single comparisons, the most frequent case, take a shortcut."""
    if isinstance(filter_, Comparison | Between | In) and filter_.kind in _PLAIN_KINDS:
        allowed = _values_of(Literal(filter_, True))
        if filter_.part is None and allowed.kinds:
            return FilterDescription({("value", filter_.attribute, None): allowed}, True)
    node = negation_normal(filter_)
    conjuncts = node.parts if isinstance(node, AllOf) else (node,)
    facts = tuple(each for each in conjuncts if isinstance(each, Literal))
    choices = [each for each in conjuncts if not isinstance(each, Literal)]
    at_one_place = [(choice, _one_place(choice)) for choice in choices]
    values = [(place, _values_of(choice)) for choice, place in at_one_place if place is not None]
    others = [choice for choice, place in at_one_place if place is None]
    # Values at one place do not say which words their prefixes have in common.
    prefixes = [choice for choice, place in at_one_place if place and _has_prefix(choice)]
    cases = [
        case
        for alternative in _alternatives([*others, *prefixes])
        if (case := _describe_case((*facts, *alternative), values)) is not None
    ]
    if not cases:
        return FilterDescription(None, True)
    described = _union(cases)
    filled = {place: without_holes(values) for place, values in described.items()}
    is_exact = not others and all(map(_is_exact, facts)) and filled == described
    return FilterDescription({at: each for at, each in filled.items() if each != ANY}, is_exact)


def _union(cases: Sequence[Description]) -> Description:
    """The description of a disjunction: places that every case restricts, with all their values."""
    first, *rest = cases
    return {
        place: reduce(_either, [case[place] for case in rest], values)
        for place, values in first.items()
        if all(place in case for case in rest)
    }


def _either(left: ValueSet, right: ValueSet) -> ValueSet:
    kinds = {
        kind: left.of(kind).union(right.of(kind))
        for kind in dict.fromkeys((*left.kinds, *right.kinds))
    }
    return ValueSet(left.missing or right.missing, kinds)


def _alternatives(choices: Sequence[Node]) -> list[tuple[Literal, ...]]:
    """The choices multiplied out. A choice that would make more than CASES_MAX cases is ignored."""
    cases: list[tuple[Literal, ...]] = [()]
    for choice in choices:
        choice_cases = _cases_of(choice)
        if choice_cases is not None and len(cases) * len(choice_cases) <= CASES_MAX:
            cases = [(*before, *case) for before in cases for case in choice_cases]
    return cases


def _cases_of(node: Node) -> list[tuple[Literal, ...]] | None:
    match node:
        case Literal():
            return [(node,)]
        case AllOf(parts):
            return _alternatives(parts)
        case AnyOf(parts):
            cases = [_cases_of(part) for part in parts]
            united = [case for each in cases if each is not None for case in each]
            whole = all(each is not None for each in cases) and len(united) <= CASES_MAX
            return united if whole else None


def _leaves(node: Node) -> Iterator[Literal]:
    if isinstance(node, Literal):
        yield node
        return
    for part in node.parts:
        yield from _leaves(part)


def _has_prefix(node: Node) -> bool:
    return any(isinstance(leaf.atom, StartsWith) and leaf.positive for leaf in _leaves(node))


def _one_place(node: Node) -> DescriptionPlace | None:
    """The only place that a disjunction restricts, if all its literals restrict values there."""
    places = {_value_place(leaf) for leaf in _leaves(node)}
    return places.pop() if len(places) == 1 else None


def _value_place(literal: Literal) -> DescriptionPlace | None:
    """The place whose values the literal restricts, if that is all that it does."""
    atom = literal.atom
    if not isinstance(atom, Comparison | Between | In | IsPresent | StartsWith):
        return None
    part = getattr(atom, "part", None)
    if isinstance(atom, Comparison) and isinstance(atom.value, WindowAttribute):
        return None
    if part is not None and not literal.positive:
        return None  # also true of values without parts, which are not at this place
    return ("value", atom.attribute, part)


def _values_of(node: Node) -> ValueSet:
    match node:
        case Literal():
            allowed = allowed_values(node)
            assert allowed is not None, "a literal about values allows some"
            return allowed[1]
        case AllOf(parts):
            return reduce(ValueSet.intersection, map(_values_of, parts), ANY)
        case AnyOf(parts):
            return reduce(_either, map(_values_of, parts), ValueSet(False, {}))


def _is_exact(literal: Literal) -> bool:
    match literal.atom:
        case Comparison(value=WindowAttribute()):
            return literal.positive
        case Contains(phrase=phrase, phrases=phrases):
            return literal.positive and not phrase and not phrases
        case Call():
            return True
    return _value_place(literal) is not None


def _describe_case(
    literals: tuple[Literal, ...], more_values: Iterable[tuple[DescriptionPlace, ValueSet]]
) -> Description | None:
    """The description of a conjunction of literals and of value sets; None if it is unsatisfiable.

    `more_values` are the value sets of disjunctions that restrict one place each.
    """
    if contradictory(literals):
        return None
    values: Description = {}
    for literal in literals:
        allowed = allowed_values(literal)
        if allowed is not None:
            place: DescriptionPlace = ("value", *allowed[0])
            values[place] = values.get(place, ANY).intersection(allowed[1])
    for place, allowed_there in more_values:
        values[place] = values.get(place, ANY).intersection(allowed_there)
    restrict_parts(values)
    for place in values:
        values[place] = without_refuted(place, values[place], literals)
    if not all(each.missing or each.kinds for each in values.values()):
        return None
    described = {place: each for place, each in values.items() if each != ANY}
    return described | dict.fromkeys(_forms(literals, values), PRESENT)


def _forms(literals: Iterable[Literal], values: Description) -> Iterator[DescriptionPlace]:
    """Properties that all items of the conjunction have: words, hosts, patterns, operator calls."""
    positive = [each.atom for each in literals if each.positive]
    for attribute, known_text in known_words(positive, _certain_words(values)).items():
        for word in known_text.words:
            yield ("word", attribute, word)
    for atom in positive:
        match atom:
            case Comparison(value=WindowAttribute()) | Call():
                yield ("form", atom)
            case Matches(_, pattern):
                yield ("pattern", pattern)
            case LinkAtom(attribute, _, urls):
                for host in _hosts([normal_link(url) for url in urls]):
                    yield from (("host", attribute, host), ("host", None, host))
            case VariableGroup(parts):
                yield from (("joint", part) for part in parts)
    for literal in literals:
        if not literal.positive and isinstance(literal.atom, Call):
            yield ("not", literal.atom)
    for (_, name, part), allowed in values.items():
        links = allowed.of(Kind.LINK).points()
        if part is None and links and not allowed.missing and set(allowed.kinds) == {Kind.LINK}:
            for host in _hosts([each for each in links if isinstance(each, NormalLink)]):
                yield from (("host", name, host), ("host", None, host))


def _hosts(links: Sequence[NormalLink]) -> frozenset[str]:
    """The hosts and parent domains that all of the links have in common."""
    host_sets = [_host_and_above(link.host) for link in links]
    return frozenset.intersection(*host_sets)


def _host_and_above(host: str) -> frozenset[str]:
    labels = host.split(".")[-LABELS_MAX:]
    return frozenset(".".join(labels[at:]) for at in range(len(labels)))


def _certain_words(values: Description) -> list[tuple[str, frozenset[str]]]:
    """The words in all texts that an attribute may have, if it must be a text."""
    certain = []
    for (_, attribute, part), allowed in values.items():
        texts = [
            allowed.of(kind).points() for kind in allowed.kinds if kind in (Kind.TEXT, Kind.XML)
        ]
        is_text = texts and not allowed.missing and len(texts) == len(allowed.kinds)
        if part is None and is_text and isinstance(attribute, str):
            word_sets = [frozenset(words(str(text))) for each in texts for text in each or ("",)]
            certain.append((attribute, frozenset.intersection(*word_sets)))
    return certain
