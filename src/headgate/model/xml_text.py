"""The text of an XML value: what `contains` and comparisons see of a document."""

from __future__ import annotations

import re

from lxml import etree

_DECLARATION = re.compile(r"^\s*<\?xml\s[^>]*\?>")


def safe_parser() -> etree.XMLParser:
    """A parser that resolves no entities, loads nothing and refuses huge trees."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )


def xml_text(document: str) -> str:
    """The text between the tags; a text that is no XML is taken as it is.

    >>> xml_text("<p>Rock <b>concert</b></p>")
    'Rock concert'
    """
    root = parse_xml(document)
    return document if root is None else etree.tostring(root, method="text", encoding="unicode")


def parse_xml(document: str) -> etree._Element | None:
    """The root element, or nothing where the text is no well-formed XML."""
    try:
        # A text is decoded already: what its declaration says of an encoding no longer holds.
        return etree.fromstring(_DECLARATION.sub("", document, count=1).encode(), safe_parser())
    except (etree.XMLSyntaxError, ValueError):
        return None
