"""The text of a document whose bytes may say one encoding, mean another, and break both.

What is believed, in this order:

    byte order mark ──► charset of the content type ──► XML declaration ──► UTF-8 ──► windows-1252

- The first that fits without an error is taken. Where it is not the one that was declared, or where
  bytes had to be replaced, that is a problem of the document, and no more.
- Bytes that are not all ASCII and yet are right UTF-8 are UTF-8, whatever single-byte encoding is
  declared: no text in another encoding looks like that by chance, and feeds that say ISO-8859-1
  and mean UTF-8 are common.
- Only encodings of the web are known. Python has others, and among them punycode takes quadratic
  time; `unicode_escape` and its kin are no encodings of documents at all.

Characters that XML does not allow are left out, so that one stray byte does not cost the feed.
"""

from __future__ import annotations

import codecs
import re

from headgate.acquire.parsed import Problems

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

# Some names stand for more than they say: what calls itself Latin-1 is windows-1252, and so on.
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


def decode_text(body: bytes, content_type: str, problems: Problems) -> str:
    """The document's text, without a byte order mark and without characters that XML forbids."""
    text = _decode(body, content_type, problems).removeprefix("\ufeff")
    cleaned = _NOT_XML.sub("", text)
    if len(cleaned) != len(text):
        problems.add(f"{len(text) - len(cleaned):,} characters that no feed may have are left out")
    return cleaned


def _decode(body: bytes, content_type: str, problems: Problems) -> str:
    declared = _declared(body, content_type, problems)
    candidates = [*declared, "utf-8", "cp1252"]
    if candidates[0] != "utf-8" and _SINGLE_BYTE.fullmatch(candidates[0]) and not body.isascii():
        candidates.insert(0, "utf-8")
    for each in candidates:
        try:
            text = body.decode(each)
        except UnicodeDecodeError:
            continue
        if declared and each != declared[0] and not body.isascii():
            problems.add(f"it is declared as {declared[0]}, but it is {each}")
        return text
    first = declared[0] if declared else "utf-8"
    problems.add(f"some bytes are no {first}; they are replaced")
    return body.decode(first, "replace")


def _declared(body: bytes, content_type: str, problems: Problems) -> list[str]:
    """The encodings that are declared, the most trustworthy first, under Python's names."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return [name]
    for beginning, name in _UNMARKED:
        if body.startswith(beginning):
            return [name]
    by_server = _CHARSET.search(content_type)
    by_document = _DECLARED.match(body[:300])
    said = [by_server[1]] if by_server else []
    said += [by_document[1].decode("ascii", "replace")] if by_document else []
    known: list[str] = []
    for each in said:
        encoding = known_encoding(each)
        if encoding is None:
            problems.add(f"its encoding '{each}' is not known")
        elif encoding not in known:
            known.append(encoding)
    return known


def known_encoding(label: str) -> str | None:
    """Python's name for an encoding of the web, or nothing.

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
