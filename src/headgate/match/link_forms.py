"""Links as bytes, so that byte order and prefixes decide link atoms as model/text.py defines them.

A link is split into scheme, host and path (`normal_link`), and encoded so that its parts cannot be
confused: each part ends with 00 00, and a NUL within it becomes 00 01. As 00 00 is less than
whatever a longer part has at its place, encoded links sort as their parts do.

An atom is true if a *form* of the link begins with certain bytes (· ends a part,
um.esum.pohs is the host backwards):

    form      of https://shop.muse.mu/a/b?q      answers
    s…        https·shop.muse.mu·/a/b?q·         targets with a scheme
    h…        shop.muse.mu·/a/b?q·               targets without one
    d…        um.esum.pohs·                      below a bare host: subdomains too

    references https://m/a     s https·m·/a·         references m        h m·
    references m/a             h m·/a·               extends m           d m·   d m.
    extends https://m/a/       s https·m·/a/·        (the same path)
                               s https·m·/a/         (paths below it)
                               s https·m·/a/?        (the same page, with a query)

Rejected: hash tables on hosts and on all ancestors of a path. A path of 10,000 slashes has 10,000
ancestors, and a sender may choose one; here it is one binary search.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.model.atoms import LinkAtom, LinkRelation
from headgate.model.text import NormalLink, normal_link

END = b"\0\0"
FORMS = 3


def _part(text: str) -> bytes:
    """The encoded beginning of a part; without an end, longer parts begin with it too."""
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\1")


def _ended_part(text: str) -> bytes:
    return _part(text) + END


def ordered_link(text: str) -> bytes:
    """Bytes that compare with those of other links as the links do."""
    return b"".join(map(_ended_part, normal_link(text)))


def forms_of_link(text: str) -> tuple[bytes, bytes, bytes]:
    """The forms of a link that an item has."""
    scheme, host, path = normal_link(text)
    below = _ended_part(host) + _ended_part(path)
    return b"s" + _ended_part(scheme) + below, b"h" + below, b"d" + _ended_part(host[::-1])


def prefixes_of_atom(atom: LinkAtom) -> Iterator[bytes]:
    """The atom is true of a link exactly if one of its forms begins with one of these."""
    for url in atom.urls:
        target = normal_link(url)
        if atom.relation is LinkRelation.EXTENDS:
            yield from _prefixes_of_extends(target)
        else:
            yield _prefix_of_references(target)


def _prefix_of_references(target: NormalLink) -> bytes:
    if target.scheme or target.path != "/":
        return _site(target) + _ended_part(target.path)
    return _site(target)


def _prefixes_of_extends(target: NormalLink) -> Iterator[bytes]:
    if not target.scheme and target.path == "/":
        backwards = target.host[::-1]
        yield b"d" + _ended_part(backwards)
        yield b"d" + _part(backwards + ".")
        return
    site = _site(target)
    yield site + _ended_part(target.path)
    yield site + _part(target.path.rstrip("/") + "/")
    yield site + _part(target.path + "?")


def _site(target: NormalLink) -> bytes:
    if target.scheme:
        return b"s" + _ended_part(target.scheme) + _ended_part(target.host)
    return b"h" + _ended_part(target.host)
