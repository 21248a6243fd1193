"""Which XML is accepted as a value: well-formed, within limits, and complete in itself.

A document type may be named, but nothing may depend on it, as it is never loaded:

    <!DOCTYPE a SYSTEM "a.dtd"><a>R&amp;B &#233;</a>      accepted; only the element is kept
    <!DOCTYPE a [<!ENTITY e "x">]><a b="1"/>              rejected: it declares an entity
    <!DOCTYPE a SYSTEM "a.dtd"><a b="&e;"/>               rejected: it refers to one

Without the second rule a parser would drop the reference in silence, or keep it as text that no
later parser reads.

The limits keep the cost of patterns linear. An element's attributes are found one after the other
by lxml, and so are the namespaces in scope of an attribute with a prefix. They are checked on the
serialised element, by one pass over its tags: counting signs before the parser runs bounds the
memory of the tree (about 150 bytes per tag, 400 per attribute), and the rest is known after it.

Cost: parsing at about 60 MB/s, and 0.6 µs per tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from headgate.model.errors import InvalidValue
from headgate.model.text import safe_parser, without_declaration


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """What one XML value may cost."""

    bytes_max: int = 10_000_000
    elements_max: int = 150_000
    nesting_max: int = 250
    """libxml2 itself refuses more than 256."""
    attributes_max: int = 200
    """Of one element, its namespace declarations included."""
    namespaces_max: int = 200
    """Namespace declarations of an element and of those around it."""


XML_LIMITS = XmlLimits()

_PARSER = safe_parser()
"""One for all: to make one takes longer than to parse a short text. lxml lets one thread use it."""
_REFERENCE = re.compile(r"&(?!(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_TAG = re.compile(r"""<[^<>"']*+(?:(?:"[^"]*+"|'[^']*+')[^<>"']*+)*+>""")
_VALUE = re.compile(r"""="[^"]*+"|='[^']*+'""")
# What is no tag: its beginning, and what ends it.
_OTHERS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))


def checked_xml(document: str | bytes, limits: XmlLimits = XML_LIMITS) -> str:
    """The root element as text; `InvalidValue` with the reason if the document is not accepted."""
    if isinstance(document, str):
        document = without_declaration(document).encode("utf-8", "surrogatepass")
    if len(document) > limits.bytes_max:
        raise InvalidValue(f"the document has more than {limits.bytes_max:,} bytes")
    # Each element has at most two tags; comments and references are rarely as many.
    if document.count(b"<") > 2 * limits.elements_max:
        raise InvalidValue(f"the document has more than {limits.elements_max:,} elements")
    if document.count(b'="') + document.count(b"='") > 2 * limits.elements_max:
        raise InvalidValue(f"the document has more than {2 * limits.elements_max:,} attributes")
    try:
        root = etree.fromstring(document, _PARSER)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InvalidValue(f"no well-formed XML: {error}") from None
    _check_entities(root, document)
    text = etree.tostring(root, encoding="unicode", with_tail=False)
    _check_tags(text, limits)
    return text


def xml_problem(document: str) -> str | None:
    """Why a text is not accepted as XML; None if it is.

    >>> xml_problem("<a>R&amp;B</a>")
    >>> xml_problem('<!DOCTYPE a [<!ENTITY e "x">]><a/>')
    'the document declares an entity; entities are not resolved'
    """
    try:
        checked_xml(document)
    except InvalidValue as error:
        return str(error)
    return None


def _check_entities(root: etree._Element, document: bytes) -> None:
    about = root.getroottree().docinfo
    if not about.doctype and about.internalDTD is None:
        return  # the parser refuses what is not declared
    if about.internalDTD is not None and any(True for _ in about.internalDTD.iterentities()):
        raise InvalidValue("the document declares an entity; entities are not resolved")
    text = document.decode(about.encoding or "utf-8", "replace")
    if any(_REFERENCE.search(piece) for piece in _without_others(text)):
        raise InvalidValue("the document refers to an entity; entities are not resolved")


def _without_others(text: str) -> list[str]:
    """The pieces between comments, CDATA sections and processing instructions."""
    pieces, start, position = [], 0, text.find("<")
    while position >= 0:
        end = _end_of_other(text, position)
        if end:
            pieces.append(text[start:position])
            start = end
        position = text.find("<", end or position + 1)
    return [*pieces, text[start:]]


def _end_of_other(text: str, start: int) -> int:
    """Where the comment, section or instruction ends that begins here; 0 if it is none."""
    if text[start + 1 : start + 2] not in ("!", "?"):
        return 0
    for opening, closing in _OTHERS:
        if text.startswith(opening, start):
            end = text.find(closing, start + len(opening))
            return len(text) if end < 0 else end + len(closing)
    return 0


def _check_tags(text: str, limits: XmlLimits) -> None:
    """One pass over the tags of a well-formed element."""
    elements, position = 0, 0
    in_scope = [0]  # namespace declarations, for each open element
    while (position := text.find("<", position)) >= 0:
        if end := _end_of_other(text, position):
            position = end
            continue
        tag = _TAG.match(text, position)
        assert tag is not None, "the element was serialised by the parser"
        position = tag.end()
        if text[tag.start() + 1] == "/":
            in_scope.pop()
            continue
        elements += 1
        in_scope.append(in_scope[-1] + _namespaces(tag[0], limits))
        if in_scope[-1] > limits.namespaces_max:
            raise InvalidValue(f"more than {limits.namespaces_max:,} namespaces are in scope")
        if len(in_scope) > limits.nesting_max + 1:
            raise InvalidValue(f"the document is nested more than {limits.nesting_max:,} deep")
        if text[position - 2] == "/":
            in_scope.pop()
    if elements > limits.elements_max:
        raise InvalidValue(f"the document has more than {limits.elements_max:,} elements")


def _namespaces(tag: str, limits: XmlLimits) -> int:
    """The number of namespaces that a tag declares; an error if it has too many attributes."""
    if tag.count("=") > limits.attributes_max and len(_VALUE.findall(tag)) > limits.attributes_max:
        raise InvalidValue(f"an element has more than {limits.attributes_max:,} attributes")
    return tag.count(" xmlns") if " xmlns" in tag else 0
