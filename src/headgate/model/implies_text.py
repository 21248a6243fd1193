"""What text atoms say about words, and link atoms about links, for implies.py.

Text atoms, if true, say which words and phrases a text certainly has:

    title contains 'rock concert'          title: words {rock, concert}
    title contains phrase 'rock concert'   title: the same, and the phrase (rock, concert)
    title contains '東京 rock'             title: words {東, 京, rock}, and the phrase (東, 京)
    title starts with 'rock conc'          title: the phrase (rock); its last word may go on
    title similar(0.9) 'rock concert'      title: words {rock, concert}, see `_certain_of`

What is known of an attribute is known of the whole item. There the words of several attributes add
up, but phrases do not: a phrase lies within one text.

Each target of a link atom stands for a set of links. The set is a product, so one set lies in
another if it does so in each of the three components:

    relation    target            scheme   host              path
    references  https://m.mu/a    https    m.mu              /a
    references  m.mu/a            any      m.mu              /a
    references  m.mu              any      m.mu              any
    extends     https://m.mu/a    https    m.mu              /a and below
    extends     m.mu/a            any      m.mu              /a and below
    extends     m.mu              any      m.mu, *.m.mu      any

A value of kind link lies in exactly one such set of one link. An atom is true if one of the links
of the attribute lies in one of its sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from headgate.model.atoms import (
    Atom,
    Contains,
    LinkAtom,
    LinkRelation,
    Matches,
    Similar,
    StartsWith,
)
from headgate.model.implies_normal import VariableGroup
from headgate.model.text import (
    NormalLink,
    contains_phrase,
    is_below,
    jaccard,
    normal_link,
    words,
    words_of_prefix,
)


@dataclass(slots=True)
class KnownWords:
    """Words and phrases that certainly stand in a text."""

    words: set[str] = field(default_factory=set)
    phrases: list[tuple[str, ...]] = field(default_factory=list)

    def satisfies(self, atom: Contains) -> bool:
        if atom.phrase and len(atom.words) > 1:
            return self._has_phrase(atom.words)
        return self.words.issuperset(atom.words) and all(map(self._has_phrase, atom.phrases))

    def _has_phrase(self, words: tuple[str, ...]) -> bool:
        return any(contains_phrase(phrase, words) for phrase in self.phrases)


def known_words(
    atoms: Iterable[Atom | VariableGroup], certain: Iterable[tuple[str, frozenset[str]]]
) -> defaultdict[str | None, KnownWords]:
    """What is known of each attribute, and under None of the item, where all the atoms are true.

    `certain` are words of attributes that are already known to occur.
    """
    known: defaultdict[str | None, KnownWords] = defaultdict(KnownWords)
    for attribute, certain_words in certain:
        for place in (attribute, None):
            known[place].words |= certain_words
    for atom in atoms:
        if isinstance(atom, (Contains, Similar, StartsWith)):
            for place in (atom.attribute, None):
                _add(known[place], atom)
    return known


def _add(known: KnownWords, atom: Contains | Similar | StartsWith) -> None:
    match atom:
        case StartsWith():
            phrase = words_of_prefix(atom.folded)
            known.words.update(phrase)
            known.phrases.append(phrase)
        case Contains(phrase=True):
            known.words.update(atom.words)
            known.phrases.append(atom.words)
        case Contains():
            known.words.update(atom.words)
            known.phrases.extend(atom.phrases)
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
    text_words = words(folded)
    match atom:
        case Contains(phrase=True):
            return contains_phrase(text_words, atom.words)
        case Contains():
            has_phrases = (contains_phrase(text_words, each) for each in atom.phrases)
            return set(atom.words) <= set(text_words) and all(has_phrases)
        case Similar(attribute, words=tuple(wanted)) if attribute is not None:
            return jaccard(frozenset(text_words), frozenset(wanted)) >= atom.threshold
    return None


# --- links ---------------------------------------------------------------------------------------


class PathReach(Enum):
    """How far a set of paths reaches from its path."""

    ITSELF = auto()
    BELOW = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class LinkSet:
    scheme: str | None
    host: str
    subdomains: bool
    path: str
    reach: PathReach


def implies_link(specific: LinkAtom, general: LinkAtom) -> bool:
    """Complete but for unions: each set of the one must lie in a single set of the other."""
    if general.attribute not in (None, specific.attribute):
        return False
    wider = _link_sets(general)
    return all(any(_lies_in(narrow, wide) for wide in wider) for narrow in _link_sets(specific))


def link_satisfies(link: NormalLink, atom: LinkAtom) -> bool:
    """Whether an attribute that is this link satisfies the atom."""
    alone = LinkSet(link.scheme, link.host, False, link.path, PathReach.ITSELF)
    return any(_lies_in(alone, wide) for wide in _link_sets(atom))


def _link_sets(atom: LinkAtom) -> list[LinkSet]:
    below = atom.relation is LinkRelation.EXTENDS
    return [_link_set(normal_link(url), below=below) for url in atom.urls]


def _link_set(target: NormalLink, *, below: bool) -> LinkSet:
    if not target.scheme and target.path == "/":
        return LinkSet(None, target.host, below, "/", PathReach.ANY)
    reach = PathReach.BELOW if below else PathReach.ITSELF
    return LinkSet(target.scheme or None, target.host, False, target.path, reach)


def _lies_in(narrow: LinkSet, wide: LinkSet) -> bool:
    return (
        wide.scheme in (None, narrow.scheme)
        and _host_lies_in(narrow, wide)
        and _path_lies_in(narrow, wide)
    )


def _host_lies_in(narrow: LinkSet, wide: LinkSet) -> bool:
    if wide.subdomains:
        return narrow.host == wide.host or narrow.host.endswith("." + wide.host)
    return narrow.host == wide.host and not narrow.subdomains


def _path_lies_in(narrow: LinkSet, wide: LinkSet) -> bool:
    if wide.reach is PathReach.ANY:
        return True
    if wide.reach is PathReach.ITSELF:
        return narrow.reach is PathReach.ITSELF and narrow.path == wide.path
    # "At or below" is transitive, so what lies below a path here lies below that path's ancestor.
    return narrow.reach is not PathReach.ANY and is_below(narrow.path, wide.path)
