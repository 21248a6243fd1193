"""σ[F and G](⋈ₙ[on](r, s)) = σ[G](⋈ₙ[on](σ[F'](r), s))        where r owns all attributes of F

F' is F with r's own names for its attributes (table_join.py). Each conjunct moves as a whole to
every side that owns it; where no side does, it stays above: one that compares attributes of
several sides, one that looks at the whole item, one that calls an operator (operators see the whole
item), and one on an attribute that no side declares.

A side owns an attribute if the value in the result is its own. A join attribute has the first
side's value; the others hold an equal one, which may be spelt differently. So they own it too, but
only for atoms that cannot tell equal values apart: not for `matches` and the link atoms, which see
texts as they are written.

Precondition: none; but only conjuncts are moved, so filter_to_cnf comes before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.model.atoms import Atom, Call, Constraint, LinkAtom, Matches
from headgate.model.filters import Filter as Predicate
from headgate.model.filters import atoms_of, conjunction, conjuncts, map_atoms
from headgate.plan.algebra import Filter, Plan, TableJoin
from headgate.plan.table_join import owners

NamesBySide = Mapping[int, str]


def push_filter_through_table_join(plan: Plan) -> Plan | None:
    if not isinstance(plan, Filter) or not isinstance(plan.input, TableJoin):
        return None
    join = plan.input
    names = owners(join.sides, join.on)
    pushed: list[list[Predicate]] = [[] for _ in join.sides]
    kept: list[Predicate] = []
    for part in conjuncts(plan.filter):
        sides = _sides_that_own(part, names)
        for at in sorted(sides):
            pushed[at].append(_in_words_of(at, part, names))
        if not sides:
            kept.append(part)
    if not any(pushed):
        return None
    inputs = (
        Filter(conjunction(filters), each) if filters else each
        for filters, each in zip(pushed, join.inputs, strict=True)
    )
    below = TableJoin(join.on, join.sides, tuple(inputs))
    return Filter(conjunction(kept), below) if kept else below


def _sides_that_own(part: Predicate, names: Mapping[str, NamesBySide]) -> set[int]:
    """The sides that own every atom of the part."""
    found: list[set[int]] = []
    for atom in atoms_of(part):
        if isinstance(atom, Call | Constraint) or atom.attribute is None:
            return set()
        sides = list(names.get(atom.attribute, ()))
        found.append(set(sides[:1] if isinstance(atom, Matches | LinkAtom) else sides))
    return set.intersection(*found) if found else set()


def _in_words_of(at: int, part: Predicate, names: Mapping[str, NamesBySide]) -> Predicate:
    def rename(atom: Atom) -> Atom:
        assert not isinstance(atom, Call | Constraint), "operators see the whole item"
        assert atom.attribute is not None, "the atom is on one attribute"
        return replace(atom, attribute=names[atom.attribute][at])

    return map_atoms(part, rename)
