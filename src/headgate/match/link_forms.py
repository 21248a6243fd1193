"""Links as bytes in which order and prefixes answer what `model.links` answers by its rules.

A link is taken apart into scheme, host and path (`normal_link`), and put together again so that
its parts cannot run into each other: each ends with 00 00, and a NUL within it becomes 00 01. As
00 00 is less than whatever a longer part has at its place, links sort as their parts do.

Every question that an atom asks is then whether a *form* of the link begins with some bytes
(· ends a part, moc.resu is the host backwards):

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
ancestors, and somebody will send one; here it is one binary search.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.model.atoms import LinkAtom, LinkRelation
from headgate.model.text import NormalLink, normal_link

END = b"\0\0"
FORMS = 3


def _part(text: str) -> bytes:
    """What a part begins with; without an end, longer parts begin with it too."""
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\1")


def _whole(text: str) -> bytes:
    return _part(text) + END


def ordered_link(text: str) -> bytes:
    """Bytes that compare with those of other links as the links do."""
    return b"".join(map(_whole, normal_link(text)))


def forms_of_link(text: str) -> tuple[bytes, bytes, bytes]:
    """The forms of a link that an item has."""
    scheme, host, path = normal_link(text)
    below = _whole(host) + _whole(path)
    return b"s" + _whole(scheme) + below, b"h" + below, b"d" + _whole(host[::-1])


def prefixes_of_atom(atom: LinkAtom) -> Iterator[bytes]:
    """The atom is true of a link exactly if one of its forms begins with one of these."""
    for url in atom.urls:
        wanted = normal_link(url)
        if atom.relation is LinkRelation.EXTENDS:
            yield from _extended(wanted)
        else:
            yield _referenced(wanted)


def _referenced(wanted: NormalLink) -> bytes:
    if wanted.scheme or wanted.path != "/":
        return _site(wanted) + _whole(wanted.path)
    return _site(wanted)


def _extended(wanted: NormalLink) -> Iterator[bytes]:
    if not wanted.scheme and wanted.path == "/":
        backwards = wanted.host[::-1]
        yield b"d" + _whole(backwards)
        yield b"d" + _part(backwards + ".")
        return
    site = _site(wanted)
    yield site + _whole(wanted.path)
    yield site + _part(wanted.path.rstrip("/") + "/")
    yield site + _part(wanted.path + "?")


def _site(wanted: NormalLink) -> bytes:
    if wanted.scheme:
        return b"s" + _whole(wanted.scheme) + _whole(wanted.host)
    return b"h" + _whole(wanted.host)
