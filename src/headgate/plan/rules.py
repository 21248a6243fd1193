"""The rewrite rules of normalisation ([RoSeS §4.3]), in the order in which they are tried: RULES.

    drop_true_filters                σ[true](s)                = s
    merge_filters                    σ[F](σ[G](s))             = σ[G and F](s)
    filter_to_cnf                    σ[F](s)                   = σ[cnf(F)](s)
                                     ⋈ id[P](s, w)             = ⋈ id[cnf(P)](s, w)
    drop_false_branches              σ[false](s)               = ∅
                                     ⋈ id[false](s, w)         = ∅
                                     ⋈ id[P](s, ω(∅))          = ∅
                                     ⋈ₙ(…, ∅, …)               = ∅
    push_filter_through_union        σ[F](∪(s, …))             = ∪(σ[F](s), …)
    push_filter_through_join         σ[F](⋈ id[P](s, w))       = ⋈ id[P](σ[F](s), w)
    push_filter_through_match        σ[F](μ[pattern](s))       = μ[pattern](σ[F](s))
    push_filter_through_table_join   σ[F and G](⋈ₙ[on](r, s))  = σ[G](⋈ₙ[on](σ[F'](r), s))
    push_match_through_join          μ[pattern](⋈ id[P](s, w)) = ⋈ id[P](μ[pattern](s), w)
    split_join_predicate             ⋈ id[P and Q](s, w)       = ⋈ id[Q](σ[P](s), w)
    distribute_match_over_union      μ[pattern](∪(s, …))       = ∪(μ[pattern](s), …)
    distribute_join_over_union       ⋈ id[P](∪(s, …), w)       = ∪(⋈ id[P](s, w), …)
    flatten_unions                   ∪(∪(s, t), u)             = ∪(s, t, u)
                                     ∪(s, t, s)                = ∪(s, t)
                                     ∪(s)                      = s

A rule is a function `Plan -> Plan | None`. It looks at the root of a plan and returns an equivalent
plan, or None where it does not fire. The tests apply each rule alone, at every node of generated
plans, and execute both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.model.atoms import (
    Atom,
    Call,
    Comparison,
    Constraint,
    LinkAtom,
    Matches,
    Similar,
    WindowAttribute,
)
from headgate.model.filters import FALSE, TRUE, atoms_of, conjunction, conjuncts, map_atoms
from headgate.model.filters import Filter as Predicate
from headgate.model.schema import joined_names
from headgate.plan.algebra import (
    EMPTY,
    Filter,
    Join,
    Match,
    NaturalJoin,
    Plan,
    Side,
    Union,
    Window,
)
from headgate.plan.cnf import to_cnf
from headgate.plan.variable_scopes import Scope, conjoin_renamed, scopes_of

Rule = Callable[[Plan], Plan | None]


# --- filters alone ------------------------------------------------------------------------------


def drop_true_filters(plan: Plan) -> Plan | None:
    """Remove filters that are true of every item. Other rules produce them."""
    match plan:
        case Filter(filter_, input_) if filter_ == TRUE:
            return input_
    return None


def merge_filters(plan: Plan) -> Plan | None:
    """A cascade of filters is one filter with their conjunction.

    Each filter has ?variables of its own, so those that clash are renamed (variable_scopes.py).
    Otherwise `σ[mob(?p)](σ[crowd(?p)](s))` would require one value of ?p that satisfies both.
    """
    match plan:
        case Filter(outer, Filter(inner, input_)):
            return Filter(conjoin_renamed([inner, outer]), input_)
    return None


def filter_to_cnf(plan: Plan) -> Plan | None:
    """Put filters into conjunctive normal form, bounded as cnf.py says.

    Filters that differ only in how they are written become equal, and the next rules can move
    single clauses.
    """
    match plan:
        case Filter(filter_, input_):
            normal = to_cnf(filter_)
            return None if normal == filter_ else Filter(normal, input_)
        case Join(id_, predicate, primary, window):
            normal = to_cnf(predicate)
            return None if normal == predicate else Join(id_, normal, primary, window)
    return None


def drop_false_branches(plan: Plan) -> Plan | None:
    """Remove what can never output an item.

    A join needs an item in its window, a table join one on each side. Other operators over ∅ are
    rewritten by the rules that push them through unions, because ∅ is the union without inputs;
    flatten_unions removes ∅ from a union.

    It does not detect a filter that is unsatisfiable for a deeper reason, such as `x < 1 and
    x > 2`: only filters that CNF reduces to the constant false.
    """
    match plan:
        case Filter(filter_) if filter_ == FALSE:
            return EMPTY
        case Join(_, predicate, _, Window(_, input_)) if predicate == FALSE or input_ == EMPTY:
            return EMPTY
        case NaturalJoin(inputs=inputs) if EMPTY in inputs:
            return EMPTY
    return None


# --- filters go down ----------------------------------------------------------------------------


def push_filter_through_union(plan: Plan) -> Plan | None:
    """Selection distributes over union, rule (a) of [RoSeS §4.3]: F looks at one item at a time.

    Cost: the filter stands once for each input; factorisation shares it again.
    """
    match plan:
        case Filter(filter_, Union(inputs)):
            return Union(tuple(Filter(filter_, each) for each in inputs))
    return None


def push_filter_through_join(plan: Plan) -> Plan | None:
    """Selection commutes with the annotation join, rule (b) of [RoSeS §4.3].

    The join changes no attribute, and filters cannot see annotations. F is on the primary items, so
    the window stays as it is. Fewer items reach the join.
    """
    match plan:
        case Filter(filter_, Join(id_, predicate, primary, window)):
            return Join(id_, predicate, Filter(filter_, primary), window)
    return None


def push_filter_through_match(plan: Plan) -> Plan | None:
    """Both operators test one item and change nothing, so they commute.

    Filters go first: they are shared between feeds, and a document is expensive to search.
    """
    match plan:
        case Filter(filter_, Match(id_, pattern, input_)):
            return Match(id_, pattern, Filter(filter_, input_))
    return None


NamesBySide = Mapping[int, str]


def push_filter_through_table_join(plan: Plan) -> Plan | None:
    """Move each conjunct as a whole to every side that owns all of its attributes.

    F' is F with that side's own names for the attributes. A conjunct stays above the join if no
    side owns it: it compares attributes of several sides, looks at the whole item, calls an
    operator (operators see the whole item), or is on an attribute that no side declares.

    A side owns an attribute if the value in the result is its own. A join attribute has the first
    side's value. The other sides hold an equal value that may be spelt differently, so they own it
    only for atoms that cannot distinguish equal values: not for `matches` and link atoms, which
    see texts as they are written.

    Only conjuncts are moved, so filter_to_cnf comes before.
    """
    if not isinstance(plan, Filter) or not isinstance(plan.input, NaturalJoin):
        return None
    join = plan.input
    names = owners(join.sides, join.on)
    pushed: list[list[Predicate]] = [[] for _ in join.sides]
    kept: list[Predicate] = []
    for part in conjuncts(plan.filter):
        sides = _sides_that_own(part, names)
        for side in sorted(sides):
            pushed[side].append(_with_names_of(side, part, names))
        if not sides:
            kept.append(part)
    if not any(pushed):
        return None
    inputs = (
        Filter(conjunction(filters), each) if filters else each
        for filters, each in zip(pushed, join.inputs, strict=True)
    )
    below = NaturalJoin(join.on, join.sides, tuple(inputs))
    return Filter(conjunction(kept), below) if kept else below


def _sides_that_own(part: Predicate, names: Mapping[str, NamesBySide]) -> set[int]:
    """The sides that own every atom of the part."""
    sides_of_atoms: list[set[int]] = []
    for atom in atoms_of(part):
        if isinstance(atom, Call | Constraint) or atom.attribute is None:
            return set()
        sides = list(names.get(atom.attribute, ()))
        sides_of_atoms.append(set(sides[:1] if isinstance(atom, Matches | LinkAtom) else sides))
    return set.intersection(*sides_of_atoms) if sides_of_atoms else set()


def _with_names_of(side: int, part: Predicate, names: Mapping[str, NamesBySide]) -> Predicate:
    def rename(atom: Atom) -> Atom:
        assert not isinstance(atom, Call | Constraint), "operators see the whole item"
        assert atom.attribute is not None, "the atom is on one attribute"
        return replace(atom, attribute=names[atom.attribute][side])

    return map_atoms(part, rename)


def owners(sides: tuple[Side, ...], on: tuple[str, ...]) -> dict[str, dict[int, str]]:
    """For each attribute of the result, the sides that hold its value and their name for it.

    The result has the value of the first of them. A name that two sides give to different
    attributes, such as R's `d` and an `R_d` of S, has no owner.

    >>> owners((Side("S", ("k", "a", "d")), Side("R", ("k", "d"))), ("k",))
    {'k': {0: 'k', 1: 'k'}, 'a': {0: 'a'}, 'S_d': {0: 'd'}, 'R_d': {1: 'd'}}
    """
    owners_of: dict[str, dict[int, str]] = {}
    joined = joined_names(((side.name, side.attributes) for side in sides), on)
    for side, names in enumerate(joined):
        for name, joined_name in names.items():
            clashes = joined_name in owners_of and joined_name not in on
            owners_of[joined_name] = (
                {} if clashes else {**owners_of.get(joined_name, {}), side: name}
            )
    return owners_of


# --- joins and matches --------------------------------------------------------------------------


def push_match_through_join(plan: Plan) -> Plan | None:
    """A tree pattern is a test of one item, so it commutes with the annotation join as a filter.

    "First filtering, then join" ([RoSeS §4.3]): the join's cost is the rate of its primary times
    the size of its window.
    """
    match plan:
        case Match(match_id, pattern, Join(id_, predicate, primary, window)):
            return Join(id_, predicate, Match(match_id, pattern, primary), window)
    return None


def split_join_predicate(plan: Plan) -> Plan | None:
    """Turn the part P of a join's predicate that does not look at the window into a filter.

    If P(i) is false, no item of the window joins i, and the join drops i as the filter does. If
    P(i) is true, Q alone decides. The join stays even if its predicate becomes `true`, because
    the window must still hold an item, and all of its items become the annotation.

    Precondition: P and Q share no ?variables. Only whole scopes move (variable_scopes.py).
    """
    if not isinstance(plan, Join):
        return None
    scopes = scopes_of(plan.predicate)
    movable = [part for scope in scopes if not _looks_at_window(scope) for part in scope]
    if not movable:
        return None
    remaining = conjunction(part for scope in scopes if _looks_at_window(scope) for part in scope)
    return Join(plan.id, remaining, Filter(conjunction(movable), plan.primary), plan.window)


def _looks_at_window(scope: Scope) -> bool:
    return any(
        isinstance(_operand(atom), WindowAttribute) for part in scope for atom in atoms_of(part)
    )


def _operand(atom: Atom) -> object:
    match atom:
        case Comparison():
            return atom.value
        case Similar():
            return atom.text
    return None


# --- unions go up -------------------------------------------------------------------------------


def distribute_match_over_union(plan: Plan) -> Plan | None:
    """A tree pattern is tested on one item at a time, so it distributes over union."""
    match plan:
        case Match(id_, pattern, Union(inputs)):
            return Union(tuple(Match(id_, pattern, each) for each in inputs))
    return None


def distribute_join_over_union(plan: Plan) -> Plan | None:
    """The annotation join looks at one primary item at a time, so it distributes over their union.

    The id and the window are the same in every branch: an item gets the same annotation entry
    whichever branch it comes through, and the window is kept once.

    The union *inside* a window, ω(∪(s, …)), stays. For a count window ω(∪) ≠ ∪ω: the last 10 items
    of two streams are not the last 10 of each. Even for a time window the annotation entry holds
    the whole joined set I; two joins over two windows would give two entries, or two elements.
    """
    match plan:
        case Join(id_, predicate, Union(inputs), window):
            return Union(tuple(Join(id_, predicate, each, window) for each in inputs))
    return None


def flatten_unions(plan: Plan) -> Plan | None:
    """Streams are sets of elements ([RoSeS §3.2]): union is associative and idempotent.

    An empty union ∅ inside a union disappears; alone it stays, as the plan without items. The
    inputs keep the order in which they first occur.
    """
    if not isinstance(plan, Union):
        return None
    flat: dict[Plan, None] = {}
    for input_ in plan.inputs:
        flat.update(dict.fromkeys(input_.inputs if isinstance(input_, Union) else (input_,)))
    inputs = tuple(flat)
    if len(inputs) == 1:
        return inputs[0]
    return None if inputs == plan.inputs else Union(inputs)


RULES: tuple[Rule, ...] = (
    drop_true_filters,
    merge_filters,
    filter_to_cnf,
    drop_false_branches,
    push_filter_through_union,
    push_filter_through_join,
    push_filter_through_match,
    push_filter_through_table_join,
    push_match_through_join,
    split_join_predicate,
    distribute_match_over_union,
    distribute_join_over_union,
    flatten_unions,
)
