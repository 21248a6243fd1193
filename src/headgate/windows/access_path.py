"""Which conjunct of a join predicate finds the candidates, and what is left to be judged.

A predicate is a conjunction of clauses (plan/cnf.py). One of them is answered by indexes on the
window; the others are judged for what it finds, by model/evaluate.py.

    clause                                     found by                               taken
    title = window.title                       a chain of items with the same value   first
    title similar window.title                 a prefix filter                        then, by how
                                                                                      strict it is
    price < window.price                       sorted values                          then
    title = window.title or price > 5          each by its own: the second finds all
                                               of the window for a primary item that
                                               satisfies it by itself, or nothing     by its worst
    anything else                              all of the window                      last

Law: the paths together find exactly the items of the window that satisfy the clause, so that only
the residual remains to be judged.

Rejected: choosing anew for each item by how long its chains are. The order above errs only where a
text has the same value as much of the window, and then what it finds is the result in most cases.
A part of a timestamp (`published.year = window.year`) has no path: nobody has asked for it yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.atoms import Atom, Comparison, Relation, Similar, WindowAttribute
from headgate.model.filters import TRUE, And, Filter, Or, atoms_of, conjunction, conjuncts


@dataclass(frozen=True, slots=True)
class Equal:
    attribute: str
    window_attribute: str

    def __str__(self) -> str:
        return f"equal {self.window_attribute}"


@dataclass(frozen=True, slots=True)
class SimilarTo:
    attribute: str | None
    window_attribute: str
    threshold: float

    def __str__(self) -> str:
        return f"similar {self.window_attribute}"


@dataclass(frozen=True, slots=True)
class Ordered:
    attribute: str
    relation: Relation
    window_attribute: str

    def __str__(self) -> str:
        return f"sorted {self.window_attribute}"


@dataclass(frozen=True, slots=True)
class Whole:
    """All of the window, for primary items that satisfy the condition by themselves."""

    condition: Filter

    def __str__(self) -> str:
        return "all of the window" if self.condition == TRUE else "all of the window, on condition"


Path = Equal | SimilarTo | Ordered | Whole


@dataclass(frozen=True, slots=True)
class Access:
    """What is found by any of the paths and satisfies the residual, satisfies the predicate."""

    paths: tuple[Path, ...]
    residual: Filter

    def __str__(self) -> str:
        return " or ".join(dict.fromkeys(map(str, self.paths)))


def choose_access(predicate: Filter) -> Access:
    """The best clause to begin with."""
    clauses = conjuncts(predicate)
    known = [(clause, paths) for clause in clauses if (paths := _paths(clause)) is not None]
    if not known:
        return Access((Whole(TRUE),), predicate)
    chosen, paths = min(known, key=lambda each: max(map(_cost, each[1])))
    return Access(paths, conjunction(clause for clause in clauses if clause is not chosen))


def _paths(clause: Filter) -> tuple[Path, ...] | None:
    parts = clause.parts if isinstance(clause, Or) else (clause,)
    found = [_path(part) for part in parts]
    paths = tuple(dict.fromkeys(path for path in found if path is not None))
    return paths if paths and len(found) == sum(path is not None for path in found) else None


def _path(literal: Filter) -> Path | None:
    match literal:
        case Comparison(attribute, relation, WindowAttribute(name), None):
            if relation is Relation.EQUAL:
                return Equal(attribute, name)
            return None if relation is Relation.NOT_EQUAL else Ordered(attribute, relation, name)
        case Similar(attribute, WindowAttribute(name), threshold):
            return SimilarTo(attribute, name, threshold)
        case And():
            return None
    return None if looks_at_window(literal) else Whole(literal)


def _cost(path: Path) -> float:
    """The order of the paths; a stricter similarity finds less."""
    match path:
        case Equal():
            return 0
        case SimilarTo(_, _, threshold):
            return 2 - threshold
        case Ordered():
            return 3
        case Whole():
            return 4


def looks_at_window(filter_: Filter) -> bool:
    """Whether some atom of it compares with an item of the window."""
    return any(map(_of_window, atoms_of(filter_)))


def _of_window(atom: Atom) -> bool:
    match atom:
        case Comparison(_, _, WindowAttribute()) | Similar(_, WindowAttribute()):
            return True
    return False
