"""Lists of web feeds (OPML): import and export, for the command line and the service.

Every feed of a list gets a name that is free, and all are registered in one transaction, without
those that the catalog refuses; of each it is told what became of it. A feed whose URL the tenant
has registered already is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.acquire.opml import BadLine, OpmlFeed, read_opml, write_opml
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.language.parse import parse
from headgate.language.statements import RegisterFeed
from headgate.model.errors import InvalidValue

_PAGE = 1_000


class ImportState(StrEnum):
    REGISTERED = "registered"
    KNOWN = "known"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ImportedFeed:
    feed: OpmlFeed
    state: ImportState
    reason: str = ""
    """Why it was refused."""
    name: str = ""
    """Under which it is registered now."""


@dataclass(frozen=True, slots=True)
class OpmlImport:
    feeds: Sequence[ImportedFeed]
    bad_lines: Sequence[BadLine]

    def count(self, state: ImportState) -> int:
        return sum(each.state is state for each in self.feeds)


def import_opml(
    catalog: TenantCatalog, body: bytes, *, limits: IntakeLimits = DEFAULT_LIMITS
) -> OpmlImport:
    """Register every feed of a list that can be."""
    known = {feed.url: str(feed.name) for feed in _registered(catalog)}
    with catalog.looking_up() as definitions:
        document = read_opml(body, taken=list(definitions), limits=limits)
    new = [feed for feed in document.feeds if feed.url not in known]
    statements = [RegisterFeed(feed.name, feed.url, (), feed.folders) for feed in new]
    reasons = {
        new[error.statement_number - 1].url: str(error)
        for error in catalog.find_errors(statements)
        if error.statement_number is not None
    }
    catalog.apply([each for each in statements if each.url not in reasons])

    def outcome(feed: OpmlFeed) -> ImportedFeed:
        if feed.url in known:
            return ImportedFeed(feed, ImportState.KNOWN, name=known[feed.url])
        if feed.url in reasons:
            return ImportedFeed(feed, ImportState.REFUSED, reasons[feed.url])
        return ImportedFeed(feed, ImportState.REGISTERED, name=feed.name)

    return OpmlImport([outcome(feed) for feed in document.feeds], document.bad_lines)


def register_web_feed(catalog: TenantCatalog, url: str, folders: Sequence[str] = ()) -> str:
    """Register one feed as a list of one would, unless the tenant has its URL; its name."""
    if not url.isprintable():
        raise InvalidValue("this cannot be registered as a web feed: it is no URL")
    written = write_opml([OpmlFeed("", url, tuple(folders))])
    with catalog.looking_up() as definitions:
        document = read_opml(written, taken=list(definitions))
    if not document.feeds:
        reason = document.bad_lines[0].reason if document.bad_lines else "it is no URL"
        raise InvalidValue(f"this cannot be registered as a web feed: {reason}")
    (feed,) = document.feeds
    plain = re.split(r"['\\]", feed.url)[0]  # a statement has the rest in another form
    for entry in catalog.own_definitions_with(DefinitionKind.RSS, plain):
        if _web_feed(entry.definition).url == feed.url:
            return entry.name
    catalog.apply([RegisterFeed(feed.name, feed.url, (), feed.folders)])
    return feed.name


@dataclass(frozen=True, slots=True)
class OpmlExport:
    document: bytes
    count: int
    last: str | None
    """The last name, if there may be more behind it."""


def export_opml(catalog: TenantCatalog, *, after: str = "", limit: int | None = None) -> OpmlExport:
    """The web feeds of the tenant as OPML 2.0, by name."""
    found = list(islice(_registered(catalog, after), limit))
    feeds = [OpmlFeed(str(each.name), each.url, each.folders) for each in found]
    last = str(found[-1].name) if limit is not None and len(found) == limit else None
    return OpmlExport(write_opml(feeds), len(feeds), last)


def _registered(catalog: TenantCatalog, after: str = "") -> Iterator[RegisterFeed]:
    """The web feeds that the tenant has, read from the catalog page by page."""
    view = catalog.view
    while page := catalog.list_definitions([DefinitionKind.RSS], after=after, limit=_PAGE):
        for entry in page:
            if view.owns(view.kept(entry.name)):
                yield _web_feed(entry.definition)
        after = page[-1].name


def _web_feed(definition: str) -> RegisterFeed:
    statement = parse(definition)
    assert isinstance(statement, RegisterFeed), "its kind says so"
    return statement
