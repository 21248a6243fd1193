"""Implication of filters, the base of covering ([MBD §2]): F1 covers F2 if P(F1) ⊇ P(F2).

Invariant (soundness): implies_filter(specific, general) is true only if every item that satisfies
`specific` satisfies `general`, in the two-valued logic of evaluate.py: an atom on a missing
attribute is false.

The paper decides covering predicate by predicate: each f1 of F1 needs one f2 of F2 that it covers.
That misses that `x > 3 and x < 9` implies `x between 3 and 9`. Here `specific and not general` is
refuted instead, which treats conjunctions, disjunctions and negations alike:

    x >= 1  implies  x = 1 or x > 1

        x >= 1                      a fact
        not x = 1, not x > 1        facts: the negated disjunction
        ──────────────────────
        number: [1, …) minus {1} minus (1, …) = nothing      refuted

Facts are literals. A disjunction among them is a choice: it loses the alternatives that contradict
the facts, and the most promising is tried, alternative by alternative. A choice without
alternatives refutes at once, and a choice of one costs no branching.

Complete    within `CHECKS_MAX`, for Boolean combinations of =, !=, <, …, between, in, is present
            and starts with, with constants, on attributes and on single timestamp parts, where the
            order is dense (intervals.py); for `contains` (words, no phrases) among its own; for
            text and link atoms on an attribute for which only finitely many values are left.
Only sound  phrases, link atoms (each target alone), `similar` and `matches` (by their form),
            comparisons with the window, operator calls and value constraints (by their form, under
            the same names of variables), a timestamp against its parts, parts against each other.
Rejected    discrete steps: `x > 4` does not imply `x >= 5`, as x may be a float (a timestamp's part
            is always an integer: `published.month > 4` does imply `published.month >= 5`).
            Disjunctive normal form first: it has 2^n parts before the first is looked at.
            Decision diagrams ([MBD §4.2]): they share the work between many filters, but need this
            module for the implications between atoms.

Cost: a check is quadratic in the literals. Beyond `CHECKS_MAX` checks the answer is False, which is
sound. It is meant for the control path, when a subscription is added or removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headgate.model.atoms import (
    Atom,
    Call,
    Constraint,
    Contains,
    LinkAtom,
    Matches,
    Similar,
    TimestampPart,
)
from headgate.model.filters import Filter, Not
from headgate.model.implies_normal import (
    AllOf,
    AnyOf,
    Literal,
    Node,
    VariableGroup,
    implies_group,
    negation_normal,
)
from headgate.model.implies_text import (
    implies_link,
    implies_matches,
    implies_similar,
    known_words,
    link_satisfies,
    text_satisfies,
)
from headgate.model.implies_values import ANY, ValueSet, allowed_values, is_possible
from headgate.model.intervals import values_in
from headgate.model.text import NormalLink, words
from headgate.model.values import Comparable, Kind

CHECKS_MAX = 4_000

Facts = tuple[Literal, ...]


def implies(specific: Atom | Not, general: Atom | Not) -> bool:
    """Whether a literal, an atom or a negated one, implies another.

    >>> from headgate.model.atoms import Comparison, IsPresent, Relation
    >>> implies(Comparison("x", Relation.LESS, 5), IsPresent("x"))
    True
    >>> implies(Not(Comparison("x", Relation.LESS, 5)), Comparison("x", Relation.GREATER_EQUAL, 5))
    False
    """
    return contradictory((_literal(specific), _literal(Not(general))))


def disjoint(left: Atom | Not, right: Atom | Not) -> bool:
    """Whether no item satisfies both literals: each implies the negation of the other."""
    return contradictory((_literal(left), _literal(right)))


def implies_filter(specific: Filter, general: Filter) -> bool:
    """Whether every item that satisfies the one filter satisfies the other.

    >>> from headgate.model.atoms import Between, Comparison, Relation
    >>> from headgate.model.filters import And
    >>> more, less = Comparison("x", Relation.GREATER, 3), Comparison("x", Relation.LESS, 9)
    >>> implies_filter(And((more, less)), Between("x", 3, 9))
    True
    """
    counter_cases = _cases(negation_normal(general, positive=False))
    return all(_implies_case(case, counter_cases) for case in _cases(negation_normal(specific)))


def _implies_case(case: Node, counter_cases: tuple[Node, ...]) -> bool:
    facts, choices = _split([case])
    return contradictory(facts) or all(
        _Refutation().refutes(facts, [*choices, each]) for each in counter_cases
    )


def _cases(node: Node) -> tuple[Node, ...]:
    """The parts of a disjunction; each pair of cases is refuted within a limit of its own."""
    return node.parts if isinstance(node, AnyOf) else (node,)


def _literal(filter_: Filter) -> Literal:
    literal = negation_normal(filter_)
    assert isinstance(literal, Literal), f"{filter_} is no literal; use implies_filter"
    return literal


class _Refutation:
    """A search for a contradiction, with a limit to its checks."""

    def __init__(self) -> None:
        self.checks_left = CHECKS_MAX

    def refutes(self, facts: Facts, nodes: list[Node]) -> bool:
        """Whether no item satisfies all facts and nodes; False where the checks run out.

        The facts are known not to contradict each other.
        """
        new_facts, choices = _split(nodes)
        if new_facts and self._contradicts(facts, new_facts):
            return True
        facts += new_facts
        open_choices: list[AnyOf] = []
        for choice in choices:
            possible = [
                each for each in choice.parts if not self._contradicts(facts, _facts_of(each))
            ]
            if not possible:
                return True
            open_choices.append(AnyOf(tuple(possible)))
        if not open_choices or self.checks_left <= 0:
            return False
        best = min(open_choices, key=_branching_priority)
        other_choices = [choice for choice in open_choices if choice is not best]
        return all(self.refutes(facts, [each, *other_choices]) for each in best.parts)

    def _contradicts(self, facts: Facts, new_facts: Facts) -> bool:
        """Whether the new facts contradict each other or the old ones, which do not."""
        if not new_facts or self.checks_left <= 0:
            return False
        self.checks_left -= 1
        return contradictory(_related(facts, new_facts) + new_facts)


def _split(nodes: list[Node]) -> tuple[Facts, list[AnyOf]]:
    """The literals of a conjunction, and its disjunctions."""
    facts: list[Literal] = []
    choices: list[AnyOf] = []
    for node in nodes:
        match node:
            case Literal():
                facts.append(node)
            case AllOf(parts):
                inner_facts, inner_choices = _split(list(parts))
                facts += inner_facts
                choices += inner_choices
            case AnyOf():
                choices.append(node)
    return tuple(facts), choices


def _related(facts: Facts, new_facts: Facts) -> Facts:
    """The facts that can contradict the new ones: those on the same attributes.

    A literal on the whole item can be contradicted by many attributes together.
    """
    if any(_subject(each) is None for each in facts + new_facts):
        return facts
    subjects = {_subject(each) for each in new_facts}
    return tuple(each for each in facts if _subject(each) in subjects)


def _subject(literal: Literal) -> str | None:
    """The attribute that a literal looks at; None for the whole item and for operator calls."""
    atom = literal.atom
    return None if isinstance(atom, (Call, Constraint, VariableGroup)) else atom.attribute


def _branching_priority(choice: AnyOf) -> tuple[bool, bool, int]:
    """Smaller is better: one alternative, then alternatives of many facts, then few of them.

    Conjunctions bring facts that close other choices: a filter is found to imply itself.
    """
    parts = choice.parts
    return len(parts) > 1, not all(isinstance(each, AllOf) for each in parts), len(parts)


def _facts_of(node: Node) -> Facts:
    return _split([node])[0]


# --- contradictions ------------------------------------------------------------------------------


@dataclass(slots=True)
class _PossibleValues:
    """The values that are still possible for an attribute, and for the parts of its timestamp."""

    values: ValueSet = ANY
    parts: dict[TimestampPart, ValueSet] = field(default_factory=dict)


def contradictory(literals: Sequence[Literal]) -> bool:
    """Whether no item satisfies a conjunction of literals (a cube).

    Three ways to find a contradiction, each sound on its own:

    1. two literals     a positive atom implies a negated one          (by form, links, groups)
    2. values           no value is left for an attribute              (implies_values.py)
    3. words            the known words satisfy a negated `contains`   (implies_text.py)

    Where only finitely many texts or links are left for an attribute, its text and link atoms are
    evaluated on each of them: `title = 'rock concert' and not title contains 'rock'` leaves
    nothing. The texts are known only folded, so `matches`, and links within texts, are left out.

    Cost: 1 is quadratic in the literals, 2 and 3 are linear in them and their constants.
    """
    positive = [each.atom for each in literals if each.positive]
    negative = [each.atom for each in literals if not each.positive]
    if any(_implies_by_form(each, other) for other in negative for each in positive):
        return True
    possible = _values_left(literals)
    if not all(is_possible(each.values, each.parts) for each in possible.values()):
        return True
    known = known_words(positive, _certain_words(possible))
    return any(
        known[atom.attribute].satisfies(atom) for atom in negative if isinstance(atom, Contains)
    )


def _implies_by_form(specific: Atom | VariableGroup, general: Atom | VariableGroup) -> bool:
    match specific, general:
        case VariableGroup(), VariableGroup():
            return implies_group(specific, general)
        case LinkAtom(), LinkAtom():
            return implies_link(specific, general)
        case Similar(), Similar():
            return implies_similar(specific, general)
        case Matches(), Matches():
            return implies_matches(specific, general)
    return specific == general


def _values_left(literals: Iterable[Literal]) -> dict[str, _PossibleValues]:
    possible: defaultdict[str, _PossibleValues] = defaultdict(_PossibleValues)
    for literal in literals:
        allowed = allowed_values(literal)
        if allowed is None:
            continue
        (name, part), values = allowed
        attribute = possible[name]
        if part is None:
            attribute.values = attribute.values.intersection(values)
        else:
            attribute.parts[part] = attribute.parts.get(part, ANY).intersection(values)
    for name, attribute in possible.items():
        tests = [each for each in literals if _tests_points(each, name)]
        attribute.values = _without_refuted(attribute.values, tests)
    return possible


def _tests_points(literal: Literal, attribute: str) -> bool:
    """Whether the literal can refute single texts or links of the attribute.

    A negated literal on the whole item holds for each of its attributes.
    """
    if not isinstance(literal.atom, (Contains, Similar, LinkAtom)):
        return False
    if literal.atom.attribute is None:
        return not literal.positive
    return literal.atom.attribute == attribute


def _without_refuted(values: ValueSet, tests: list[Literal]) -> ValueSet:
    if not tests:
        return values
    kinds = dict(values.kinds)
    for kind in (Kind.TEXT, Kind.XML, Kind.LINK):
        points = values.of(kind).points()
        if points:
            remaining = [
                point for point in points if not any(_refutes(test, point) for test in tests)
            ]
            kinds[kind] = values_in(remaining)
    return ValueSet(values.missing, {kind: each for kind, each in kinds.items() if each})


def _refutes(literal: Literal, point: Comparable) -> bool:
    truth: bool | None = None
    match literal.atom, point:
        case LinkAtom() as atom, NormalLink():
            truth = link_satisfies(point, atom)
        case (Contains() | Similar()) as atom, str():
            truth = text_satisfies(point, atom)
    return truth is not None and truth is not literal.positive


def _certain_words(possible: dict[str, _PossibleValues]) -> list[tuple[str, frozenset[str]]]:
    """The words that all remaining texts of an attribute have, if it must be a text."""
    certain = []
    for name, attribute in possible.items():
        values = attribute.values
        texts = [values.of(kind).points() for kind in values.kinds if kind in (Kind.TEXT, Kind.XML)]
        if texts and not values.missing and len(texts) == len(values.kinds):
            word_sets = [frozenset(words(str(text))) for each in texts for text in each or ("",)]
            certain.append((name, frozenset.intersection(*word_sets)))
    return certain
