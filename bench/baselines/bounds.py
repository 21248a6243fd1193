"""The atoms of bench/workloads/conjunctions.py as ranges of integers."""

from __future__ import annotations

from bench.workloads.conjunctions import VALUES
from headgate.model.atoms import Atom, Between, Comparison, Relation


def bounds_of(atom: Atom) -> tuple[int, int]:
    """The values from … to … that satisfy an atom of the workload."""
    if isinstance(atom, Between):
        return int(atom.low), int(atom.high)  # type: ignore[arg-type]
    assert isinstance(atom, Comparison)
    value = int(atom.value)  # type: ignore[arg-type]
    return {
        Relation.EQUAL: (value, value),
        Relation.LESS: (0, value - 1),
        Relation.LESS_EQUAL: (0, value),
        Relation.GREATER: (value + 1, VALUES),
        Relation.GREATER_EQUAL: (value, VALUES),
    }[atom.relation]
