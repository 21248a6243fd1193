"""Conjunctive normal form of filters, bounded ([RoSeS §4.3]).

Invariant: to_cnf(F) is true of the same items as F, in the two-valued logic of model/evaluate.py.

    not (a and b)          not a or not b         negations go down to the atoms and stay there:
                                                  `not x < 5` is not `x >= 5` where x is missing
    a or (b and c)         (a or b) and (a or c)
    a and (a or b)         a                      a clause is dropped if another is a subset of it
    a or not a             true
    a and not a            false

The result is a conjunction of, in this order:
    1. clauses: a literal or a disjunction of literals (an atom or its negation), sorted, so that
       the same condition written in another order becomes the same filter;
    2. factored parts, whose clauses would be too many;
    3. parts with ?variables, unchanged and in the order written. A part that binds a variable must
       stay with the parts that test it (model/filters.py), so only the top conjunction is split.

Cost: growth is bounded. A conjunct becomes several clauses only while all clauses together are at
most CLAUSES_MAX and its literals at most LITERALS_MAX; small conjuncts come first, so that only the
part that explodes stays factored. A filter that was written with more conjuncts keeps them.

Rejected: Tseitin's transformation, linear in size, because its auxiliary atoms mean nothing to an
item; and resolution beyond subsumption, because it is quadratic and rarely finds anything here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headgate.model.filters import (
    FALSE,
    And,
    Filter,
    Not,
    Or,
    conjunction,
    disjunction,
    variables_of,
)

CLAUSES_MAX = 64
LITERALS_MAX = 4_096
EXPANSION_MAX = 4 * CLAUSES_MAX
"""How many clauses one step of distribution may make, before subsumption."""

Clause = tuple[Filter, ...]


_known: dict[int, tuple[Filter, Filter]] = {}
"""Filters and their normal forms by identity: equal filters may differ in spelling, and keep it."""
KNOWN_MAX = 16_384


def to_cnf(filter_: Filter) -> Filter:
    """The filter in bounded conjunctive normal form; the very same object if it is in it."""
    cached = _known.get(id(filter_))
    if cached is not None and cached[0] is filter_:
        return cached[1]
    normal = _to_cnf(filter_)
    if len(_known) >= KNOWN_MAX:
        _known.clear()
    _known[id(filter_)] = (filter_, normal)
    _known[id(normal)] = (normal, normal)
    return normal


def is_cnf(filter_: Filter) -> bool:
    return to_cnf(filter_) == filter_


def _to_cnf(filter_: Filter) -> Filter:
    # Subsumption may make room for a part that had stayed factored, hence the fixpoint. It ends, as
    # each further round turns at least one factored part into clauses.
    before, (after, is_factored) = filter_, _expand_once(filter_)
    while is_factored and after != before:
        before, (after, is_factored) = after, _expand_once(after)
    return filter_ if after == filter_ else after


def _expand_once(filter_: Filter) -> tuple[Filter, bool]:
    """An equivalent filter, and whether parts of it stayed factored."""
    parts = tuple(dict.fromkeys(_top_conjuncts(filter_)))
    if FALSE in parts:
        return FALSE, False
    with_variables = [part for part in parts if variables_of(part)]
    expanded = [(part, _clauses_of(part)) for part in parts if not variables_of(part)]
    bounded = [(at, found) for at, (_, found) in enumerate(expanded) if found is not None]
    clauses: list[Clause] = []
    split: set[int] = set()
    total = len(parts)
    for number, part_clauses in sorted(bounded, key=lambda each: len(each[1])):
        if len(part_clauses) <= 1 or total + len(part_clauses) - 1 <= CLAUSES_MAX:
            clauses += part_clauses
            total += len(part_clauses) - 1
            split.add(number)
    factored = [part for at, (part, _) in enumerate(expanded) if at not in split]
    normal = [*_sorted_clauses(_drop_implied(clauses)), *factored, *with_variables]
    return conjunction(normal), bool(factored)


def _sorted_clauses(clauses: list[Clause]) -> list[Filter]:
    keyed = [(sorted(map(_literal_key, clause)), clause) for clause in clauses]
    return [
        disjunction(sorted(clause, key=_literal_key) if len(clause) > 1 else clause)
        for _, clause in sorted(keyed, key=lambda each: each[0])
    ]


def _literal_key(literal: Filter) -> tuple[str, str, bool]:
    """By attribute first: that is how people read conditions, and how they are compiled."""
    negated = isinstance(literal, Not)
    atom = literal.part if isinstance(literal, Not) else literal
    return getattr(atom, "attribute", None) or "", repr(atom), negated


def _top_conjuncts(filter_: Filter) -> Iterator[Filter]:
    if isinstance(filter_, And):
        for part in filter_.parts:
            yield from _top_conjuncts(part)
    elif variables_of(filter_):
        yield filter_
    else:
        pushed = _push_not(filter_, negated=False)
        yield from pushed.parts if isinstance(pushed, And) else (pushed,)


def _push_not(filter_: Filter, *, negated: bool) -> Filter:
    """Negations at the atoms only, by De Morgan; constants and repetitions are gone."""
    match filter_:
        case Not(part):
            return _push_not(part, negated=not negated)
        case And(parts) | Or(parts):
            pushed = [_push_not(part, negated=negated) for part in parts]
            return (
                conjunction(pushed)
                if isinstance(filter_, And) is not negated
                else disjunction(pushed)
            )
    return Not(filter_) if negated else filter_


def _clauses_of(filter_: Filter) -> list[Clause] | None:
    """The clauses of a filter whose negations are at the atoms; nothing if they are too many."""
    match filter_:
        case And(parts):
            clauses: list[Clause] = []
            for part in parts:
                part_clauses = _clauses_of(part)
                if part_clauses is None or len(clauses) + len(part_clauses) > EXPANSION_MAX:
                    return None
                clauses += part_clauses
            return _if_within_limits(_drop_implied(clauses))
        case Or(parts):
            return _distribute(parts)
    return [(filter_,)]


def _distribute(parts: tuple[Filter, ...]) -> list[Clause] | None:
    """(a or (b and c)) as (a or b), (a or c); the literals first, as they do not multiply."""
    literals = tuple(part for part in parts if not isinstance(part, And))
    clauses: list[Clause] = [literals]
    for part in parts:
        if not isinstance(part, And):
            continue
        part_clauses = _clauses_of(part)
        if part_clauses is None or len(clauses) * len(part_clauses) > EXPANSION_MAX:
            return None
        product = _drop_implied([left + right for left in clauses for right in part_clauses])
        few = _if_within_limits(product)
        if few is None:
            return None
        clauses = few
    return _drop_implied(clauses)


def _if_within_limits(clauses: list[Clause]) -> list[Clause] | None:
    literals = sum(map(len, clauses))
    too_many = len(clauses) > CLAUSES_MAX or (len(clauses) > 1 and literals > LITERALS_MAX)
    return None if too_many else clauses


def _drop_implied(clauses: list[Clause]) -> list[Clause]:
    """The clauses without tautologies and without those that a smaller one implies.

    A subset is found through its rarest literal, which every superset contains.
    """
    distinct = {frozenset(clause): tuple(dict.fromkeys(clause)) for clause in clauses}
    times = Counter(literal for literals in distinct for literal in literals)
    kept: list[Clause] = []
    kept_by_literal: dict[Filter, list[frozenset[Filter]]] = {}
    for literals in sorted(distinct, key=len):
        clause = distinct[literals]
        if any(Not(literal) in literals for literal in clause):
            continue
        if any(small <= literals for each in clause for small in kept_by_literal.get(each, ())):
            continue
        # Clauses of one literal come first, so that here only they can be in the index.
        if not clause or (len(clause) == 1 and _complement(clause[0]) in kept_by_literal):
            return [()]
        kept.append(clause)
        rarest = min(clause, key=lambda literal: times[literal])
        kept_by_literal.setdefault(rarest, []).append(literals)
    return kept


def _complement(literal: Filter) -> Filter:
    return literal.part if isinstance(literal, Not) else Not(literal)
