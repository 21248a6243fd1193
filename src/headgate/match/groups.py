"""The groups of atoms: each answers all atoms of a form by one pass over a batch ([MBD §3.1]).

    form                                         group            looks at
    =  <  in  between  is present                OrderedAtoms     columns of numbers, coded texts
    contains, contains phrase, similar           WordAtoms        words, read once for all three
    starts with                                  PrefixAtoms      folded texts
    matches                                      PatternAtoms     texts as they are
    references, extends, shares-link             LinkAtoms        links, and URLs within texts

Law: after all groups have filled their rows, a row has the bit of an item exactly if
`model.evaluate` says that its atom is true of it. An item has only attributes of the schema, and
only values of their types; so an atom on something else is false, and its row stays zero.

A group is a frozen dataclass of arrays, texts, names and further such dataclasses, nothing else: it
can be written to a file and read from it (stored.py). `fill` sets bits in rows that are zero;
`check` makes sure that a file cannot make a kernel read or write outside of an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.match.link_atoms import LinkAtoms, compile_links
from headgate.match.ordered_atoms import OrderedAtoms, compile_ordered
from headgate.match.pattern_atoms import PatternAtoms, compile_patterns
from headgate.match.prefix_atoms import PrefixAtoms, compile_prefixes
from headgate.match.text_columns import TEXT_TYPES
from headgate.match.word_atoms import WordAtoms, compile_words
from headgate.model.atoms import (
    Atom,
    Between,
    Call,
    Comparison,
    Constraint,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    Matches,
    Similar,
    StartsWith,
    WindowAttribute,
)
from headgate.model.errors import PlanError
from headgate.model.values import Type

Group = OrderedAtoms | WordAtoms | PrefixAtoms | PatternAtoms | LinkAtoms


def compile_groups(
    atoms: Sequence[tuple[Atom, int]], types: Mapping[str, Type]
) -> tuple[Group, ...]:
    """The atoms, each with its row, in groups; together they answer all of them."""
    ordered: list[tuple[Comparison | Between | In | IsPresent, int]] = []
    words: list[tuple[Contains | Similar, int]] = []
    prefixes: list[tuple[StartsWith, int]] = []
    patterns: list[tuple[Matches, int]] = []
    links: list[tuple[LinkAtom, int]] = []
    for atom, row in atoms:
        if not _can_be_true(atom, types):
            continue
        match atom:
            case Comparison() | Between() | In() | IsPresent():
                ordered.append((atom, row))
            case Contains() | Similar():
                words.append((atom, row))
            case StartsWith():
                prefixes.append((atom, row))
            case Matches():
                patterns.append((atom, row))
            case LinkAtom():
                links.append((atom, row))
    return (
        *compile_ordered(ordered, types),
        *compile_words(words),
        *compile_prefixes(prefixes),
        *compile_patterns(patterns),
        *compile_links(links),
    )


def _can_be_true(atom: Atom, types: Mapping[str, Type]) -> bool:
    """Whether there is something of the right type for the atom to look at."""
    match atom:
        case Call() | Constraint():
            raise PlanError("an operator call is no part of a program; it comes behind it")
        case Comparison(value=WindowAttribute()) | Similar(text=WindowAttribute()):
            raise PlanError("a comparison with an item of a window is no part of a program")
        case Comparison() | Between() | In() | IsPresent():
            return atom.attribute in types
        case LinkAtom():
            wanted: tuple[Type, ...] = (Type.LINK, *TEXT_TYPES)
        case _:
            wanted = TEXT_TYPES
    found = types.values() if atom.attribute is None else [types.get(atom.attribute)]
    return any(each in wanted for each in found)
