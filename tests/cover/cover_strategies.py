"""Generated filters for covering: all kinds of atoms over few constants, so many are covered."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st
from tests.model.strategies import all_atoms, filters, value_atoms

from headgate.model.atoms import Between, Comparison, In, IsPresent, Relation, StartsWith
from headgate.model.filters import And, Filter
from headgate.model.implies_normal import Literal, Node, negation_normal

names = st.sampled_from(["x", "y", "z"])
small = st.integers(0, 3)
comparisons = st.builds(Comparison, names, st.sampled_from(Relation), small)
ranges = st.builds(lambda name, low, more: Between(name, low, low + more), names, small, small)
lists = st.builds(lambda name, some: In(name, tuple(some)), names, st.lists(small, min_size=1))
number_atoms = comparisons | ranges | lists | st.builds(IsPresent, names)

cubes: st.SearchStrategy[Filter] = st.lists(number_atoms, max_size=4).map(
    lambda atoms: And(tuple(atoms))
)
"""Conjunctions of comparisons of numbers, often several of them on one attribute."""

numbers: st.SearchStrategy[Filter] = filters(number_atoms)
"""Any Boolean combination of such comparisons."""


def is_easy(filter_: Filter) -> bool:
    """Whether the filter has none of the cases that describe_filter.py does not find."""
    return not any(
        isinstance(leaf.atom, StartsWith) and not leaf.positive
        for leaf in _leaves(negation_normal(filter_))
    )


def _leaves(node: Node) -> Iterator[Literal]:
    if isinstance(node, Literal):
        yield node
        return
    for part in node.parts:
        yield from _leaves(part)


any_kind: st.SearchStrategy[Filter] = st.one_of(
    filters(all_atoms),
    st.lists(all_atoms, max_size=3).map(lambda atoms: And(tuple(atoms))),
)
"""Every kind of atom."""

mixed: st.SearchStrategy[Filter] = st.one_of(
    any_kind.filter(is_easy),
    filters(value_atoms("link")),
)
"""Every kind of atom, where covering finds all that the oracle finds."""

texts: st.SearchStrategy[Filter] = filters(value_atoms("text") | value_atoms("text", "y"))
"""Comparisons of texts, lists of them and prefixes."""
