"""Whether a conjunction of literals (a cube) is a contradiction: no item satisfies it.

Three ways to find one, each sound on its own:

    1. two literals     a positive atom implies a negated one          (form, links, joints)
    2. values           no value is left for an attribute              (implies_values.py)
    3. words            the known words satisfy a negated `contains`   (implies_words.py)

Where only finitely many texts or links are left for an attribute, its text and link atoms are
judged on each of them: `title = 'rock concert' and not title contains 'rock'` leaves nothing.
The texts are known folded, so `matches`, and links within texts, are not judged that way.

Cost: 1 is quadratic in the literals, 2 and 3 are linear in them and their constants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headgate.model.atoms import Atom, Contains, LinkAtom, Matches, Part, Similar
from headgate.model.implies_links import implies_link, link_satisfies
from headgate.model.implies_normal import Joint, Literal, implies_joint
from headgate.model.implies_values import ANY, ValueSet, allowed_values, is_possible
from headgate.model.implies_words import (
    implies_matches,
    implies_similar,
    known_words,
    text_satisfies,
)
from headgate.model.intervals import values_in
from headgate.model.links import NormalLink
from headgate.model.values import Comparable, Kind
from headgate.model.words import words


@dataclass(slots=True)
class _Attribute:
    """What is left for an attribute, and for the parts of its timestamp."""

    values: ValueSet = ANY
    parts: dict[Part, ValueSet] = field(default_factory=dict)


def contradictory(literals: Sequence[Literal]) -> bool:
    positive = [each.atom for each in literals if each.positive]
    negative = [each.atom for each in literals if not each.positive]
    if any(_implies_by_form(each, other) for other in negative for each in positive):
        return True
    left = _values_left(literals)
    if not all(is_possible(each.values, each.parts) for each in left.values()):
        return True
    known = known_words(positive, _certain_words(left))
    return any(
        known[atom.attribute].satisfies(atom) for atom in negative if isinstance(atom, Contains)
    )


def _implies_by_form(specific: Atom | Joint, general: Atom | Joint) -> bool:
    match specific, general:
        case Joint(), Joint():
            return implies_joint(specific, general)
        case LinkAtom(), LinkAtom():
            return implies_link(specific, general)
        case Similar(), Similar():
            return implies_similar(specific, general)
        case Matches(), Matches():
            return implies_matches(specific, general)
    return specific == general


def _values_left(literals: Iterable[Literal]) -> dict[str, _Attribute]:
    left: defaultdict[str, _Attribute] = defaultdict(_Attribute)
    for literal in literals:
        allowed = allowed_values(literal)
        if allowed is None:
            continue
        (name, part), values = allowed
        attribute = left[name]
        if part is None:
            attribute.values = attribute.values.intersection(values)
        else:
            attribute.parts[part] = attribute.parts.get(part, ANY).intersection(values)
    for name, attribute in left.items():
        judges = [each for each in literals if _judges(each, name)]
        attribute.values = _without_refuted(attribute.values, judges)
    return left


def _judges(literal: Literal, attribute: str) -> bool:
    """Whether the literal can refute single texts or links of the attribute.

    What the whole item must not contain, none of its attributes may.
    """
    if not isinstance(literal.atom, (Contains, Similar, LinkAtom)):
        return False
    if literal.atom.attribute is None:
        return not literal.positive
    return literal.atom.attribute == attribute


def _without_refuted(values: ValueSet, judges: list[Literal]) -> ValueSet:
    if not judges:
        return values
    kinds = dict(values.kinds)
    for kind in (Kind.TEXT, Kind.XML, Kind.LINK):
        points = values.of(kind).points()
        if points:
            rest = [point for point in points if not any(_refutes(j, point) for j in judges)]
            kinds[kind] = values_in(rest)
    return ValueSet(values.missing, {kind: each for kind, each in kinds.items() if each})


def _refutes(literal: Literal, point: Comparable) -> bool:
    truth: bool | None = None
    match literal.atom, point:
        case LinkAtom() as atom, NormalLink():
            truth = link_satisfies(point, atom)
        case (Contains() | Similar()) as atom, str():
            truth = text_satisfies(point, atom)
    return truth is not None and truth is not literal.positive


def _certain_words(left: dict[str, _Attribute]) -> list[tuple[str, frozenset[str]]]:
    """The words that all the texts have that are left for an attribute, if it must be a text."""
    certain = []
    for name, attribute in left.items():
        values = attribute.values
        texts = [values.of(kind).points() for kind in values.kinds if kind in (Kind.TEXT, Kind.XML)]
        if texts and not values.missing and len(texts) == len(values.kinds):
            known = [frozenset(words(str(text))) for each in texts for text in each or ("",)]
            certain.append((name, frozenset.intersection(*known)))
    return certain
