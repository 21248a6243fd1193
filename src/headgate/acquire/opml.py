"""Lists of feeds as OPML 1.0 and 2.0: import, export, and names for the imported feeds.

    <opml version="2.0"><body>
      <outline text="Music">                                    a folder, kept with its feeds
        <outline text="Muse" xmlUrl="https://muse.mu/rss"/>     a feed in the folder Music
      </outline>
    </body></opml>

Exported lists are often broken: a bare '&' in a title, an outline without a URL, the same feed
twice. A list of 500 feeds must not fail for one of them, so bad lines are reported with number and
reason, and the others are imported.

Entities are removed before parsing (document_text.py), nothing is loaded, and libxml2's limits on
depth and size apply. Elements are freed as soon as they are read.

Names are made from titles: valid in the language, and unique.

    'Muse: the news!'     MuseTheNews
    '24 heures'           Feed24Heures      a name begins with a letter
    'from'                FromFeed          a keyword is not a name
    'Muse' once more      Muse2
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from unicodedata import normalize
from urllib.parse import urlsplit

from lxml import etree

from headgate.acquire.document_text import decode_text, repair_references, without_prolog
from headgate.acquire.feed_entries import FeedProblems
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.acquire.plain_text import clean_text, web_link
from headgate.model.errors import FeedError, printable

TITLE_LENGTH_MAX = 500
PARSER_ERRORS_MAX = 50
FOLDER_LENGTH_MAX, FOLDERS_MAX = 200, 20
"""As the language has them; a test compares them."""


@dataclass(frozen=True, slots=True)
class OpmlFeed:
    """A feed of a list: its title, URL and folders, the outermost first."""

    title: str
    url: str
    folders: tuple[str, ...] = ()
    name: str = field(default="", compare=False)
    """A valid, unique name to register it under."""


@dataclass(frozen=True, slots=True)
class BadLine:
    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Opml:
    """The feeds of a list, and the lines that could not be used."""

    feeds: tuple[OpmlFeed, ...]
    bad_lines: tuple[BadLine, ...] = ()


def read_opml(
    body: bytes, *, taken: Collection[str] = (), limits: IntakeLimits = DEFAULT_LIMITS
) -> Opml:
    """Read the feeds of a list; their names are unique and none of `taken`."""
    if len(body) > limits.body_bytes_max:
        return Opml((), (BadLine(1, f"it has more than {limits.body_bytes_max:,} bytes"),))
    problems = FeedProblems(limits.problems_max)
    text = decode_text(body, "", problems)
    try:
        outlines = without_prolog(text, problems)
    except FeedError as error:
        return Opml((), (BadLine(1, str(error)),))
    lines_before = text.count("\n", 0, len(text) - len(outlines))
    reader = _Reader(FeedNamer(taken), limits, lines_before=lines_before)
    _read_outlines(repair_references(outlines).encode("utf-8"), reader)
    for problem in problems.all():
        reader.refuse(1 - lines_before, str(problem))
    return reader.result()


def _read_outlines(document: bytes, reader: _Reader) -> None:
    events = etree.iterparse(
        io.BytesIO(document),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for event, element in events:
            if event == "start":
                reader.start(element)
            else:
                reader.end(element)
    except etree.XMLSyntaxError as error:
        reader.refuse(error.lineno or 1, f"it is no XML from here on: {error.msg}")
    for entry in list(events.error_log)[:PARSER_ERRORS_MAX]:
        reader.refuse(entry.line, f"it is no well-formed XML: {entry.message}")


class _Reader:
    def __init__(self, names: FeedNamer, limits: IntakeLimits, *, lines_before: int) -> None:
        self._names = names
        self._lines_before = lines_before
        self._limits = limits
        self._folders: list[str | None] = []
        self._feeds: list[OpmlFeed] = []
        self._urls: set[str] = set()
        self._bad: list[BadLine] = []
        self._outlines = 0

    def start(self, element: etree._Element) -> None:
        if not _is_outline(element):
            return
        self._outlines += 1
        line = element.sourceline or 1
        if len(element.attrib) > self._limits.xml.attributes_max:
            # lxml searches all of them for each one.
            self.refuse(line, f"it has more than {self._limits.xml.attributes_max} attributes")
            self._folders.append(None)
            return
        attributes = {str(name).lower(): clean_text(str(value)) for name, value in element.items()}
        title = (attributes.get("text") or attributes.get("title") or "")[:TITLE_LENGTH_MAX]
        url = attributes.get("xmlurl", "")
        if url or attributes.get("type", "").lower() in ("rss", "atom"):
            self._feed(line, title, url)
            self._folders.append(None)
        else:
            self._folders.append(title or None)

    def _feed(self, line: int, title: str, url: str) -> None:
        full = web_link(url) if len(url) <= self._limits.url_length_max else None
        if not url:
            self.refuse(line, f"'{title[:60]}' has no URL")
        elif full is None:
            self.refuse(line, f"'{url[:60]}' is not an http or https link")
        elif full in self._urls:
            self.refuse(line, f"'{url[:60]}' is in the list already")
        elif len(self._feeds) >= self._limits.outlines_max:
            self.refuse(line, f"a list has at most {self._limits.outlines_max:,} feeds")
        else:
            name = self._names.make(title, full)
            self._urls.add(full)
            folders = tuple(each[:FOLDER_LENGTH_MAX] for each in self._folders if each)
            folders = folders[:FOLDERS_MAX]
            self._feeds.append(OpmlFeed(title or _host(full), full, folders, name))

    def end(self, element: etree._Element) -> None:
        if _is_outline(element) and self._folders:
            self._folders.pop()
        element.clear()
        while element.getprevious() is not None:
            parent = element.getparent()
            if parent is None:
                break
            del parent[0]

    def refuse(self, line: int, reason: str) -> None:
        if len(self._bad) < self._limits.outlines_max:
            self._bad.append(BadLine(line + self._lines_before, printable(reason)[:300]))

    def result(self) -> Opml:
        if not self._outlines:
            self.refuse(1 - self._lines_before, "it is not OPML: it has no outline")
        elif not self._feeds and not self._bad:
            self.refuse(1 - self._lines_before, "no outline of it names a feed")
        return Opml(tuple(self._feeds), tuple(sorted(self._bad, key=lambda each: each.line)))


def _is_outline(element: etree._Element) -> bool:
    tag = element.tag
    return isinstance(tag, str) and tag.rpartition("}")[2].lower() == "outline"


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def write_opml(feeds: Iterable[OpmlFeed], *, title: str = "Headgate") -> bytes:
    """The list as OPML 2.0; feeds of a folder are together, folders in order of first use."""
    root = etree.Element("opml", version="2.0")
    head = etree.SubElement(root, "head")
    etree.SubElement(head, "title").text = clean_text(title)
    folders: dict[tuple[str, ...], etree._Element] = {(): etree.SubElement(root, "body")}
    for feed in feeds:
        parent = _folder(folders, feed.folders)
        title_text = clean_text(feed.title)
        etree.SubElement(
            parent, "outline", type="rss", text=title_text, title=title_text, xmlUrl=feed.url
        )
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)


def _folder(
    folders: dict[tuple[str, ...], etree._Element], path: tuple[str, ...]
) -> etree._Element:
    """The outline of a folder; it and its parents are created if needed."""
    for depth in range(1, len(path) + 1):
        part = path[:depth]
        if part not in folders:
            name = clean_text(part[-1])
            folders[part] = etree.SubElement(folders[part[:-1]], "outline", text=name)
    return folders[path]


# --- names ----------------------------------------------------------------------------------------

LENGTH_MAX = 60

_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d]")

# The keywords of the grammar, in lower case; a test compares them with the grammar.
_RESERVED_NAMES = """
    register create advertise subscribe unsubscribe renew drop show explain feed stream table
    documents operator from as apply where join last on with match cost selectivity and or not
    between in is present contains phrase similar starts matches references extends window true
    false to output every for at site timestamp link bytes xml changes keep
"""
RESERVED = frozenset(_RESERVED_NAMES.split())


class FeedNamer:
    """Makes unique names. Constant time per name, even if all feeds have the same title."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def make(self, title: str, url: str) -> str:
        """A new name from the title or, if that has no letters, from the URL's host.

        >>> FeedNamer({"MuseTheNews"}).make("Muse: the news!", "https://muse.mu/rss")
        'MuseTheNews2'
        """
        plain = plain_name(title, url)
        name, number = plain, self._numbers.get(plain, 1)
        while name in self._taken:
            number += 1
            name = f"{plain}{number}"
        self._numbers[plain] = number
        self._taken.add(name)
        return name


def plain_name(title: str, url: str) -> str:
    """A name that is valid in the language, but may not be unique."""
    plain = _camel_case(title) or _camel_case(_host_of(url)) or "Feed"
    if not _LETTER.match(plain):
        plain = f"Feed{plain}"
    plain = plain[:LENGTH_MAX]
    return f"{plain}Feed" if plain.lower() in RESERVED else plain


def _camel_case(text: str) -> str:
    words = _WORD.findall(normalize("NFC", text[:500]))
    return "".join(word[0].upper() + word[1:] for word in words)


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
