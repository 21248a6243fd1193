"""When a link atom implies another (the table of links.py).

Each target stands for the set of links that satisfy the relation to it. A set is a product, so
one lies in another if it does so in each of the three components:

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

from dataclasses import dataclass
from enum import Enum, auto

from headgate.model.atoms import LinkAtom, LinkRelation
from headgate.model.links import NormalLink, is_below, normal_link


class Reach(Enum):
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
    reach: Reach


def implies_link(specific: LinkAtom, general: LinkAtom) -> bool:
    """Complete but for unions: each set of the one must lie in a single set of the other."""
    if general.attribute not in (None, specific.attribute):
        return False
    wider = _link_sets(general)
    return all(any(_lies_in(narrow, wide) for wide in wider) for narrow in _link_sets(specific))


def link_satisfies(link: NormalLink, atom: LinkAtom) -> bool:
    """Whether an attribute that is this link satisfies the atom."""
    alone = LinkSet(link.scheme, link.host, False, link.path, Reach.ITSELF)
    return any(_lies_in(alone, wide) for wide in _link_sets(atom))


def _link_sets(atom: LinkAtom) -> list[LinkSet]:
    below = atom.relation is LinkRelation.EXTENDS
    return [_link_set(normal_link(url), below=below) for url in atom.urls]


def _link_set(target: NormalLink, *, below: bool) -> LinkSet:
    if not target.scheme and target.path == "/":
        return LinkSet(None, target.host, below, "/", Reach.ANY)
    reach = Reach.BELOW if below else Reach.ITSELF
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
    if wide.reach is Reach.ANY:
        return True
    if wide.reach is Reach.ITSELF:
        return narrow.reach is Reach.ITSELF and narrow.path == wide.path
    # "At or below" is transitive, so what lies below a path here lies below that path's ancestor.
    return narrow.reach is not Reach.ANY and is_below(narrow.path, wide.path)
