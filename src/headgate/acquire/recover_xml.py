"""XML that is almost well-formed, made so: unclosed tags, bare ampersands, unbound prefixes.

    <item><title>R&B</title><media:x/>     ──►     <item><title>R&amp;B</title><media:x/></item>

libxml2's recovering parser is the judge of what was meant. Three things it does not know are done
around it: that an entry never holds another one, so each is repaired by itself; the names of HTML's
entities (`&nbsp;`); and namespaces that nobody has declared. No entity is ever expanded: what a
document declares has been cut off before (prolog.py), and what is not known stays as it is written.

feedparser has a recovering parser of its own, which is not used: it is made of patterns in Python,
slow at best and quadratic on texts that are made for it.
"""

from __future__ import annotations

import html.entities
import re

from lxml import etree

from headgate.model.errors import FeedError

ENTRIES_MAX = 20_000
"""How many entries of a broken document are repaired: each takes about 20 µs."""

_NAMED = re.compile(r"&(\w{1,31});")
_BARE = re.compile(r"&(?!(?:\w{1,31}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_ENTRY_TAG = re.compile(r"<(/?)(?:item|entry)(?=[\s/>])[^<>]*>", re.IGNORECASE)
_KEPT = frozenset({"lt", "gt", "amp", "quot", "apos"})
_PREFIXED = re.compile(rb"[<\s]/?([A-Za-z_][\w.-]{0,63}):[A-Za-z_]")
_DECLARED = re.compile(rb"\sxmlns:([A-Za-z_][\w.-]{0,63})\s*=")
_ROOT_NAME = re.compile(rb"<[^\s/>]+")
_NAMESPACES = {
    b"atom": b"http://www.w3.org/2005/Atom",
    b"content": b"http://purl.org/rss/1.0/modules/content/",
    b"dc": b"http://purl.org/dc/elements/1.1/",
    b"dcterms": b"http://purl.org/dc/terms/",
    b"itunes": b"http://www.itunes.com/DTDs/PodCast-1.0.dtd",
    b"media": b"http://search.yahoo.com/mrss/",
    b"rdf": b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    b"slash": b"http://purl.org/rss/1.0/modules/slash/",
    b"sy": b"http://purl.org/rss/1.0/modules/syndication/",
    b"wfw": b"http://wellformedweb.org/commentAPI/",
}


def recover_xml(text: str, *, tags_max: int) -> bytes:
    """The document as well-formed as it can be made, in UTF-8, without a declaration."""
    if text.count("<") > tags_max:
        raise FeedError("it is no well-formed XML, and has too many tags to be repaired")
    root = _parse(_repair_entries(repair_references(text)))
    if root is None:
        raise FeedError("it is no XML: there is no element in it")
    return _declare_prefixes(etree.tostring(root, encoding="utf-8", with_tail=False))


def repair_references(text: str) -> str:
    """HTML's named characters as themselves, and every '&' that begins no reference as text.

    >>> repair_references("R&B &eacute; &lt; &nobody;")
    'R&amp;B é &lt; &amp;nobody;'
    """
    return _BARE.sub("&amp;", _NAMED.sub(_character, text))


def _repair_entries(text: str) -> str:
    """Each entry repaired by itself, so that one that is broken does not swallow the next."""
    pieces: list[str] = []
    copied, begun = 0, -1
    for tag in _ENTRY_TAG.finditer(text):
        is_end = tag[1] == "/"
        if len(pieces) > 2 * ENTRIES_MAX:
            raise FeedError(f"it is no well-formed XML, and has more than {ENTRIES_MAX:,} entries")
        if begun >= 0:
            end = tag.end() if is_end else tag.start()
            pieces += [text[copied:begun], _repaired(text[begun:end])]
            copied = end
        begun = -1 if is_end or tag[0].endswith("/>") else tag.start()
    if begun >= 0:
        pieces += [text[copied:begun], _repaired(text[begun:])]
        copied = len(text)
    return "".join([*pieces, text[copied:]])


def _repaired(entry: str) -> str:
    root = _parse(entry)
    return "" if root is None else etree.tostring(root, encoding="unicode", with_tail=False)


def _parse(text: str) -> etree._Element | None:
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(text.encode("utf-8"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def _character(found: re.Match[str]) -> str:
    """The character that HTML has a name for; an unknown name is text."""
    name = found[1]
    if name in _KEPT:
        return found[0]
    code = html.entities.name2codepoint.get(name)
    return f"&amp;{name};" if code is None else chr(code)


def _declare_prefixes(document: bytes) -> bytes:
    """Give the root a namespace for each prefix that looks used and is not declared anywhere."""
    begun = _ROOT_NAME.search(document)
    if begun is None:
        return document
    used = {found[1] for found in _PREFIXED.finditer(document)} - {b"xml", b"xmlns"}
    declared = {found[1] for found in _DECLARED.finditer(document)}
    missing = sorted(used - declared)[:100]
    declarations = b"".join(
        b' xmlns:%s="%s"' % (each, _NAMESPACES.get(each, b"urn:undeclared:" + each))
        for each in missing
    )
    return document[: begun.end()] + declarations + document[begun.end() :]
