"""Scopes of ?variables: which conjuncts share them, and the conjunction of separate scopes.

Each bracket `$v[…]` is one joint substitution of its own: ?p in one bracket has nothing to do with
?p in another. When two brackets become one filter, variables that clash are renamed:

    [mob(?p) and ?p > 50] and [crowd(?p) and ?p < 9]
    =  mob(?p) and ?p > 50 and crowd(?p_2) and ?p_2 < 9

Within one filter, conjuncts without a common variable are independent of each other. A *scope* is a
smallest set of conjuncts that shares no variable with the others; only whole scopes may move.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from headgate.model.filters import (
    Filter,
    conjunction,
    conjuncts,
    rename_variables,
    variables_of,
)

Scope = tuple[Filter, ...]


def scopes_of(filter_: Filter) -> list[Scope]:
    """The conjuncts, grouped by the variables they share; each group in the order written.

    A conjunct without variables is a scope alone.
    """
    parts = conjuncts(filter_)
    alone: list[tuple[frozenset[str], list[int]]] = []
    scopes: list[tuple[frozenset[str], list[int]]] = []
    for number, part in enumerate(parts):
        names = variables_of(part)
        if not names:
            alone.append((names, [number]))
            continue
        linked = [scope for scope in scopes if scope[0] & names]
        scopes = [scope for scope in scopes if not scope[0] & names]
        members = sorted(each for _, found in linked for each in found)
        scopes.append((names.union(*(found for found, _ in linked)), [*members, number]))
    scopes += alone
    scopes.sort(key=lambda scope: scope[1][0])
    return [tuple(parts[at] for at in members) for _, members in scopes]


def conjoin_renamed(filters: Iterable[Filter]) -> Filter:
    """The conjunction of filters with separate scopes; clashing variables are renamed.

    A scope that occurs in several filters is kept once.
    """
    seen: set[Filter] = set()
    used: set[str] = set()
    kept: list[Filter] = []
    for filter_ in filters:
        if not variables_of(filter_):
            kept.append(filter_)
            continue
        before = frozenset(used)
        taken = before | variables_of(filter_)
        for scope in scopes_of(filter_):
            key = _with_numbered_variables(scope)
            if key in seen:
                continue
            seen.add(key)
            renamed = _rename_clashing(conjunction(scope), before, taken)
            taken |= variables_of(renamed)
            kept.append(renamed)
        used |= taken
    return conjunction(kept)


def _with_numbered_variables(scope: Scope) -> Filter:
    """The scope with its variables numbered: equal for scopes that differ only in names."""
    numbers: dict[str, str] = {}
    return rename_variables(
        conjunction(scope), lambda name: numbers.setdefault(name, str(len(numbers)))
    )


def _rename_clashing(filter_: Filter, clashing: frozenset[str], taken: frozenset[str]) -> Filter:
    """The filter with its clashing variables replaced by names that are not taken."""
    new_names: dict[str, str] = {}
    for name in sorted(variables_of(filter_) & clashing):
        free = (f"{name}_{number}" for number in count(2))
        new_names[name] = next(
            each for each in free if each not in taken and each not in new_names.values()
        )
    return rename_variables(filter_, lambda name: new_names.get(name, name))
