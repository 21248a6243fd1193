"""Which conjunct of a join predicate finds the candidates, and which predicate remains.

A predicate is a conjunction of clauses (plan/cnf.py). One clause is answered by indexes on the
window; the others, the residual, are evaluated on each candidate by model/evaluate.py.

    clause                                     found by                               priority
    title = window.title                       a chain of items with the same value   first
    title similar window.title                 a prefix filter                        then, by how
                                                                                      strict it is
    price < window.price                       sorted values                          then
    title = window.title or price > 5          one path per part: the second finds
                                               the whole window for a primary item
                                               that satisfies it alone, or nothing    by its worst
    anything else                              the whole window                       last

Invariant: the paths together find exactly the items of the window that satisfy the clause, so only
the residual remains.

Rejected: choosing for each item by the length of its chains. The fixed order is wrong only
where a text has the same value as much of the window, and then the candidates are mostly results. A
part of a timestamp (`published.year = window.year`) has no index."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.atoms import Atom, Comparison, Relation, Similar, WindowAttribute
from headgate.model.filters import TRUE, And, Filter, Or, atoms_of, conjunction, conjuncts


@dataclass(frozen=True, slots=True)
class EqualTo:
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
class OrderedBy:
    attribute: str
    relation: Relation
    window_attribute: str

    def __str__(self) -> str:
        return f"sorted {self.window_attribute}"


@dataclass(frozen=True, slots=True)
class WholeWindow:
    """All of the window, for primary items that satisfy the condition by themselves."""

    condition: Filter

    def __str__(self) -> str:
        return "all of the window" if self.condition == TRUE else "all of the window, on condition"


Path = EqualTo | SimilarTo | OrderedBy | WholeWindow


@dataclass(frozen=True, slots=True)
class Access:
    """An item satisfies the predicate if a path finds it and it satisfies the residual."""

    paths: tuple[Path, ...]
    residual: Filter

    def __str__(self) -> str:
        return " or ".join(dict.fromkeys(map(str, self.paths)))


def choose_access(predicate: Filter) -> Access:
    """The paths of the clause with the lowest cost, and the other clauses as residual."""
    clauses = conjuncts(predicate)
    indexed = [(clause, paths) for clause in clauses if (paths := _paths(clause)) is not None]
    if not indexed:
        return Access((WholeWindow(TRUE),), predicate)
    chosen, paths = min(indexed, key=lambda each: max(map(_cost, each[1])))
    return Access(paths, conjunction(clause for clause in clauses if clause is not chosen))


def _paths(clause: Filter) -> tuple[Path, ...] | None:
    parts = clause.parts if isinstance(clause, Or) else (clause,)
    candidates = [_path(part) for part in parts]
    paths = tuple(dict.fromkeys(path for path in candidates if path is not None))
    return paths if paths and None not in candidates else None


def _path(literal: Filter) -> Path | None:
    match literal:
        case Comparison(attribute, relation, WindowAttribute(name), None):
            if relation is Relation.EQUAL:
                return EqualTo(attribute, name)
            return None if relation is Relation.NOT_EQUAL else OrderedBy(attribute, relation, name)
        case Similar(attribute, WindowAttribute(name), threshold):
            return SimilarTo(attribute, name, threshold)
        case And():
            return None
    return None if looks_at_window(literal) else WholeWindow(literal)


def _cost(path: Path) -> float:
    """The order of the paths; a stricter similarity finds less."""
    match path:
        case EqualTo():
            return 0
        case SimilarTo(_, _, threshold):
            return 2 - threshold
        case OrderedBy():
            return 3
        case WholeWindow():
            return 4


def looks_at_window(filter_: Filter) -> bool:
    """Whether an atom of the filter compares with an item of the window."""
    return any(map(_of_window, atoms_of(filter_)))


def _of_window(atom: Atom) -> bool:
    match atom:
        case Comparison(_, _, WindowAttribute()) | Similar(_, WindowAttribute()):
            return True
    return False
