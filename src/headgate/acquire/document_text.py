"""From the bytes of a document to text that an XML parser accepts: decode, cut the prolog, repair.

**decode_text** takes the first encoding that fits without an error:

    byte order mark ──► charset of the content type ──► XML declaration ──► UTF-8 ──► windows-1252

Non-ASCII bytes that are valid UTF-8 are UTF-8 whatever single-byte encoding is declared: no text in
another encoding looks like that by chance, and feeds that declare ISO-8859-1 and send UTF-8 are
common. Only encodings of the web are accepted; of Python's others, punycode takes quadratic time.
Characters that XML forbids are removed. What was guessed or removed is recorded as a problem.

**without_prolog** removes declarations, comments and the document type before the root element:

    <?xml …?> <!-- … --> <!DOCTYPE rss [ <!ENTITY a "&b;&b;"> ]>   <rss …
    └───────────────────────── removed ──────────────────────────┘

A document type declares entities, with which a kilobyte becomes a gigabyte, or a local file is
read. Feeds do not need them, but old feeds have document types, so they are removed, not refused.
The patterns are possessive (`*+`), so a prolog of megabytes takes linear time.

**recover_xml** repairs documents that are not well-formed:

    <item><title>R&B</title><media:x/>     ──►     <item><title>R&amp;B</title><media:x/></item>

libxml2's recovering parser does the work. Added here: each entry is repaired by itself, as an entry
never contains another; HTML's named entities become characters; undeclared prefixes are declared.
Rejected: feedparser's own recovering parser, which is slow, and quadratic on hostile texts.
"""

from __future__ import annotations

import codecs
import html.entities
import re

from lxml import etree

from headgate.acquire.feed_entries import FeedProblems
from headgate.model.errors import FeedError
from headgate.model.text import safe_parser

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UNMARKED = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"), (b"{\0", "utf-16-le"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_DECLARED = re.compile(rb"^\s{0,9}<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Encodings that the web treats as a superset: Latin-1 as windows-1252, and so on.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
_SINGLE_BYTE = re.compile(r"(?:iso8859-\d+|cp(?:125[0-8]|874|866)|koi8-[ru]|mac-roman|ascii)")
_OTHER_NAMES = """
    utf-8 utf-16 utf-16-le utf-16-be utf-32 gb18030 gbk gb2312 big5 big5hkscs euc_jp iso2022_jp
    shift_jis cp932 euc_kr cp949
"""
_OTHERS = frozenset(_OTHER_NAMES.split())


def decode_text(body: bytes, content_type: str, problems: FeedProblems) -> str:
    """The document's text, without a byte order mark and without characters that XML forbids."""
    text = _decode(body, content_type, problems).removeprefix("\ufeff")
    cleaned = _NOT_XML.sub("", text)
    if len(cleaned) != len(text):
        problems.add(f"{len(text) - len(cleaned):,} characters that XML forbids are left out")
    return cleaned


def _decode(body: bytes, content_type: str, problems: FeedProblems) -> str:
    declared = _declared(body, content_type, problems)
    candidates = [*declared, "utf-8", "cp1252"]
    if candidates[0] != "utf-8" and _SINGLE_BYTE.fullmatch(candidates[0]) and not body.isascii():
        candidates.insert(0, "utf-8")
    for encoding in candidates:
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        if declared and encoding != declared[0] and not body.isascii():
            problems.add(f"it is declared as {declared[0]}, but it is {encoding}")
        return text
    first = declared[0] if declared else "utf-8"
    problems.add(f"some bytes are not {first}; they are replaced")
    return body.decode(first, "replace")


def _declared(body: bytes, content_type: str, problems: FeedProblems) -> list[str]:
    """The encodings that are declared, the most trustworthy first, under Python's names."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return [name]
    for beginning, name in _UNMARKED:
        if body.startswith(beginning):
            return [name]
    by_server = _CHARSET.search(content_type)
    by_document = _DECLARED.match(body[:300])
    labels = [by_server[1]] if by_server else []
    labels += [by_document[1].decode("ascii", "replace")] if by_document else []
    encodings: list[str] = []
    for label in labels:
        encoding = known_encoding(label)
        if encoding is None:
            problems.add(f"its encoding '{label}' is unknown")
        elif encoding not in encodings:
            encodings.append(encoding)
    return encodings


def known_encoding(label: str) -> str | None:
    """Python's name for an encoding of the web; None if it is unknown.

    >>> known_encoding("Latin-1"), known_encoding("punycode")
    ('cp1252', None)
    """
    try:
        name = codecs.lookup(label.replace("windows-", "cp")).name
    except (LookupError, UnicodeError, ValueError):
        return None
    if name in _OTHERS or _SINGLE_BYTE.fullmatch(name):
        return _WIDER.get(name, name)
    return None


# --- the prolog -----------------------------------------------------------------------------------

_MISCELLANY = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_DOCTYPE = re.compile(
    r"""<!DOCTYPE
        (?: [^\[>"'] | "[^"]*+" | '[^']*+' )*+
        ( \[ (?: [^\]"'<] | "[^"]*+" | '[^']*+' | <!--.*?--> | <\?.*?\?> | < )*+ \] \s*+ )?
        >""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)


def without_prolog(text: str, problems: FeedProblems) -> str:
    """The document from its root element on."""
    start = _skip(text, 0)
    if text[start : start + 9].upper() == "<!DOCTYPE":
        doctype = _DOCTYPE.match(text, start)
        if doctype is None:
            raise FeedError("its document type declaration cannot be read")
        if doctype[1] and "!ENTITY" in doctype[1].upper():
            problems.add("the entities that it declares are not used")
        start = _skip(text, doctype.end())
    return text[start:]


def _skip(text: str, start: int) -> int:
    match = _MISCELLANY.match(text, start)
    assert match is not None, "the pattern matches an empty text too"
    return match.end()


# --- recovery -------------------------------------------------------------------------------------

ENTRIES_MAX = 20_000
"""The most entries of a broken document that are repaired; each takes about 20 µs."""

_NAMED = re.compile(r"&(\w{1,31});")
_BARE = re.compile(r"&(?!(?:\w{1,31}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_ENTRY_TAG = re.compile(r"<(/?)(?:item|entry)(?=[\s/>])[^<>]*>", re.IGNORECASE)
_KEPT = frozenset({"lt", "gt", "amp", "quot", "apos"})
_PREFIXED = re.compile(rb"[<\s]/?([A-Za-z_][\w.-]{0,63}):[A-Za-z_]")
_DECLARED_PREFIX = re.compile(rb"\sxmlns:([A-Za-z_][\w.-]{0,63})\s*=")
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
    if text.count("<") > tags_max or text.count("&") > tags_max:
        raise FeedError("it is no well-formed XML, and has too many tags to be repaired")
    root = _parse(_repair_entries(repair_references(text)))
    if root is None:
        raise FeedError("it is no XML: there is no element in it")
    return _declare_prefixes(etree.tostring(root, encoding="utf-8", with_tail=False))


def repair_references(text: str) -> str:
    """Replace HTML's named entities by characters, and escape every '&' that begins no reference.

    >>> repair_references("R&B &eacute; &lt; &nobody;")
    'R&amp;B é &lt; &amp;nobody;'
    """
    return _BARE.sub("&amp;", _NAMED.sub(_character, text))


def _repair_entries(text: str) -> str:
    """Repair each entry by itself, so that a broken one does not swallow the next."""
    pieces: list[str] = []
    copied, entry_start = 0, -1
    for tag in _ENTRY_TAG.finditer(text):
        is_end = tag[1] == "/"
        if len(pieces) > 2 * ENTRIES_MAX:
            raise FeedError(f"it is no well-formed XML, and has more than {ENTRIES_MAX:,} entries")
        if entry_start >= 0:
            end = tag.end() if is_end else tag.start()
            pieces += [text[copied:entry_start], _repaired(text[entry_start:end])]
            copied = end
        entry_start = -1 if is_end or tag[0].endswith("/>") else tag.start()
    if entry_start >= 0:
        pieces += [text[copied:entry_start], _repaired(text[entry_start:])]
        copied = len(text)
    return "".join([*pieces, text[copied:]])


def _repaired(entry: str) -> str:
    root = _parse(entry)
    return "" if root is None else etree.tostring(root, encoding="unicode", with_tail=False)


def _parse(text: str) -> etree._Element | None:
    try:
        return etree.fromstring(text.encode("utf-8"), safe_parser(recover=True, only_elements=True))
    except (etree.XMLSyntaxError, ValueError):
        return None


def _character(reference: re.Match[str]) -> str:
    """The character of an HTML entity; an unknown name is kept as text."""
    name = reference[1]
    if name in _KEPT:
        return reference[0]
    code = html.entities.name2codepoint.get(name)
    return f"&amp;{name};" if code is None else chr(code)


def _declare_prefixes(document: bytes) -> bytes:
    """Declare a namespace at the root for each prefix that is used but not declared."""
    root = _ROOT_NAME.search(document)
    if root is None:
        return document
    used = {found[1] for found in _PREFIXED.finditer(document)} - {b"xml", b"xmlns"}
    declared = {found[1] for found in _DECLARED_PREFIX.finditer(document)}
    missing = sorted(used - declared)[:100]
    declarations = b"".join(
        b' xmlns:%s="%s"' % (prefix, _NAMESPACES.get(prefix, b"urn:undeclared:" + prefix))
        for prefix in missing
    )
    return document[: root.end()] + declarations + document[root.end() :]
