"""Which atoms are measured: all that feeds ask of sources.

An atom that is written in two ways ('Rock', 'rock') is one atom: it is counted once and kept under
both texts, so that whoever has either finds it. Operators are not among them (plan/leaves.py): they
cost time, and a store has no answers of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.catalog.definitions import Definitions
from headgate.catalog.kinds import SOURCE_KINDS, DefinitionKind
from headgate.language.schemas import schemas_of
from headgate.language.unparse import unparse_filter
from headgate.model.atoms import Atom
from headgate.model.errors import HeadgateError
from headgate.model.filters import Filter, atoms_of
from headgate.model.schema import Schema
from headgate.plan.algebra import Plan
from headgate.plan.compose import compose_all
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all


@dataclass(slots=True)
class SourceAtoms:
    """The distinct atoms of a source, in the order in which they are counted; all their texts."""

    schema: Schema
    atoms: dict[Atom, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    """For each text the number of its atom."""

    def add(self, filters: Iterable[Filter]) -> None:
        seen: set[tuple[Atom, object]] = set()
        for atom in (atom for filter_ in filters for atom in atoms_of(filter_)):
            # Atoms are equal whatever the case of their texts.
            key = atom, getattr(atom, "text", getattr(atom, "prefix", None))
            if key not in seen:
                seen.add(key)
                number = self.atoms.setdefault(atom, len(self.atoms))
                self.texts[unparse_filter(atom)] = number


@dataclass(slots=True)
class AskedOfAll:
    by_source: dict[str, SourceAtoms] = field(default_factory=dict)
    """Sources of which nothing is asked, too: they have a rate."""
    refused: dict[str, str] = field(default_factory=dict)
    """Feeds that have no plan within the limits, each with the reason."""


def asked_of_all(definitions: Definitions) -> AskedOfAll:
    found = AskedOfAll()
    feeds: list[str] = []
    for name in definitions:
        entry = definitions.entry(name)
        assert entry is not None, "it is listed"
        if entry.kind in SOURCE_KINDS:
            schema = next(iter(schemas_of(name, definitions)))
            found.by_source[name] = SourceAtoms(schema)
        if entry.kind in (DefinitionKind.FEED, DefinitionKind.MATERIALIZED):
            feeds.append(name)
    plans = _plans(feeds, definitions, found.refused)
    for source, leaves in leaves_by_source(plans).items():
        found.by_source[source].add(leaves)
    return found


def _plans(
    names: list[str], definitions: Definitions, refused: dict[str, str]
) -> Mapping[str, Plan]:
    """The plans of all that have one; those that have none are found by halving."""
    try:
        return normalize_all(compose_all(names, definitions))
    except HeadgateError as error:
        if len(names) == 1:
            refused[names[0]] = str(error)
            return {}
    half = len(names) // 2
    first = _plans(names[:half], definitions, refused)
    return {**first, **_plans(names[half:], definitions, refused)}
