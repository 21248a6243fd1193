"""What a conjunction of text atoms tells about the words of an attribute, and of the whole item.

    title contains 'rock concert'          title: words {rock, concert}
    title contains phrase 'rock concert'   title: the same, and the phrase (rock, concert)
    title starts with 'rock conc'          title: the phrase (rock); its last word may go on
    title similar(0.9) 'rock concert'      title: words {rock, concert}, see `_certain_of`

What is known of an attribute is known of the whole item, and the words of several attributes add
up there, but phrases do not: a phrase lies within one text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.model.atoms import Atom, Contains, Matches, Similar, StartsWith
from headgate.model.implies_normal import Joint
from headgate.model.words import contains_phrase, jaccard, words


@dataclass(slots=True)
class Known:
    """Words and phrases that certainly stand in a text."""

    words: set[str] = field(default_factory=set)
    phrases: list[tuple[str, ...]] = field(default_factory=list)

    def satisfies(self, atom: Contains) -> bool:
        if not atom.phrase or len(atom.words) == 1:
            return self.words.issuperset(atom.words)
        return any(contains_phrase(phrase, atom.words) for phrase in self.phrases)


def known_words(
    atoms: Iterable[Atom | Joint], certain: Iterable[tuple[str, frozenset[str]]]
) -> defaultdict[str | None, Known]:
    """What is known of each attribute, and under None of the item, where all the atoms are true.

    `certain` are words that are known of attributes by other ways.
    """
    known: defaultdict[str | None, Known] = defaultdict(Known)
    for attribute, found in certain:
        for place in (attribute, None):
            known[place].words |= found
    for atom in atoms:
        if isinstance(atom, (Contains, Similar, StartsWith)):
            for place in (atom.attribute, None):
                _add(known[place], atom)
    return known


def _add(known: Known, atom: Contains | Similar | StartsWith) -> None:
    match atom:
        case StartsWith():
            phrase = words(atom.folded + "x")[:-1]  # without the last word, which may go on
            known.words.update(phrase)
            known.phrases.append(phrase)
        case Contains(phrase=True):
            known.words.update(atom.words)
            known.phrases.append(atom.words)
        case Contains():
            known.words.update(atom.words)
        case Similar():
            known.words.update(_certain_of(atom))


def _certain_of(atom: Similar) -> tuple[str, ...]:
    """All words, if the threshold is so high that none of them may be missing.

    Without one of n words the similarity is at most (n - 1) / n.
    """
    if not isinstance(atom.words, tuple):
        return ()
    n = len(atom.words)
    return atom.words if atom.threshold > (n - 1) / n else ()


def implies_similar(specific: Similar, general: Similar) -> bool:
    """Only by their form: the same attribute and words, and a threshold that is not lower."""
    return (
        specific.attribute == general.attribute
        and specific.words == general.words
        and specific.threshold >= general.threshold
    )


def implies_matches(specific: Matches, general: Matches) -> bool:
    """Only by their form: the same pattern, on the same attribute or on the whole item."""
    return specific.pattern == general.pattern and general.attribute in (None, specific.attribute)


def text_satisfies(folded: str, atom: Contains | Similar) -> bool | None:
    """Whether an attribute with this folded text satisfies the atom; None where that is open.

    Folding twice is folding once, so the words of the folded text are those of the text itself.
    """
    found = words(folded)
    match atom:
        case Contains(phrase=True):
            return contains_phrase(found, atom.words)
        case Contains():
            return set(atom.words) <= set(found)
        case Similar(attribute, words=tuple(wanted)) if attribute is not None:
            return jaccard(frozenset(found), frozenset(wanted)) >= atom.threshold
    return None
