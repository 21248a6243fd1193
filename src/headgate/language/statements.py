"""The statements of the language ([RoSeS §3.1], docs/language.md), as frozen data.

    statement            what it does
    RegisterFeed         a source from an RSS, Atom or JSON Feed on the web
    MaterializeFeed      a source from a feed, its items transformed by a stylesheet
    RegisterStream       a source from JSON (or other) events
    RegisterTable        a source from the changes of a table
    RegisterDocuments    a source from XML documents
    RegisterOperator     a user's function that filters may call
    Advertise            what a source promises to publish
    CreateFeed           a feed: a query over sources and other feeds
    Subscribe, Renew, Unsubscribe
    Drop, Show, Explain

A name in a statement may be a `Name`, which has a position. Positions are not compared, so
`parse(unparse(statement)) == statement`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headgate.model.duration import Duration, WindowSize
from headgate.model.filters import Filter
from headgate.model.schema import Attribute
from headgate.model.tree_pattern import PatternNode
from headgate.model.values import Type


class Format(StrEnum):
    """How a source's items are written."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    KAFKA = "kafka"
    NATS = "nats"
    POST = "post"
    XML = "xml"


class ValueFormat(StrEnum):
    """How the values of messages are written, if not as JSON."""

    AVRO = "avro"
    PROTOBUF = "protobuf"


class Framing(StrEnum):
    """Whether a schema registry's prefix is before each value."""

    FRAMED = "framed"
    PLAIN = "plain"


class OutputKind(StrEnum):
    MAIL = "mail"
    FILE = "file"
    WEBHOOK = "webhook"
    CLOUDEVENTS = "cloudevents"
    KAFKA = "kafka"
    CONSOLE = "console"

    @property
    def is_call(self) -> bool:
        """Whether a URL is called, with a signature."""
        return self in (OutputKind.WEBHOOK, OutputKind.CLOUDEVENTS)


class NameKind(StrEnum):
    """What a name can stand for; `drop` names one of these."""

    FEED = "feed"
    STREAM = "stream"
    TABLE = "table"
    DOCUMENTS = "documents"
    OPERATOR = "operator"


class Listing(StrEnum):
    """What `show` can list."""

    SOURCES = "sources"
    FEEDS = "feeds"
    SUBSCRIPTIONS = "subscriptions"
    OPERATORS = "operators"
    ADVERTISEMENTS = "advertisements"
    SNAPSHOTS = "snapshots"


# --- sources, operators, advertisements -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegisterFeed:
    """`register feed http://muse.mu/rss/news as MuseNews (price float) in folder 'Music', 'Rock';`

    The folders, the outermost first, are those of a list of feeds (OPML); they have no effect.
    """

    name: str
    url: str
    attributes: tuple[Attribute, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MaterializeFeed:
    """`register feed MusePhotoStream apply 'IncludePhotos.xsl' as MuseWithPhotos;`"""

    name: str
    feed: str
    stylesheet: str


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """`avro 'click.avsc' framed` or `protobuf 'shop.desc' message 'shop.Click'`: the schema of the
    values of messages, a file of the base folder.

    `message` is the Protobuf message. Without `framing`, each Avro value shows whether it has a
    prefix (kafka_avro.py).
    """

    format: ValueFormat
    path: str
    message: str = ""
    framing: Framing | None = None

    def __post_init__(self) -> None:
        assert not (self.message and self.framing), "only Avro values have a framing"


@dataclass(frozen=True, slots=True)
class RegisterStream:
    name: str
    format: Format
    path: str
    attributes: tuple[Attribute, ...]
    values: ValueSchema | None = None


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """`register table Stocks (Symbol text key, PER float, op text) from json 'stocks/*.json'
    changes in op keep 30 days;`

    `changes` is the attribute that says what happened to a row (tables/row_changes.py); without it
    each row replaces the row with the same key. A row is kept for `keep` after its time.
    """

    name: str
    format: Format
    path: str
    attributes: tuple[Attribute, ...]
    changes: str | None = None
    keep: Duration | None = None
    values: ValueSchema | None = None


@dataclass(frozen=True, slots=True)
class RegisterDocuments:
    name: str
    format: Format
    path: str


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class RegisterOperator:
    """`register operator locIn(area text) cost 40 selectivity 0.1 from 'city.operators:loc_in';`

    The cost is relative to that of other operators; cost and selectivity are learned if not given.
    """

    name: str
    parameters: tuple[Parameter, ...]
    target: str
    cost: float | None = None
    selectivity: float | None = None


@dataclass(frozen=True, slots=True)
class Advertise:
    source: str
    filter: Filter


# --- feeds ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A source or feed in a from or join clause: `EventAnnounces as $ca`."""

    name: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """`src3 | ... | src20` in a union, or `src3 | ... | srcN` for every such source there is."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Group:
    """A union: `(FriendsFacebookStream | EventAnnounces as $ca) as $r`."""

    members: tuple[GroupMember, ...]
    variable: str | None = None


FromClause = StreamRef | Group
GroupMember = StreamRef | Group | StreamRange


@dataclass(frozen=True, slots=True)
class WindowJoin:
    """`join last 3 months on (A as $a | B) with $main[title similar window.title]`."""

    window: WindowSize
    secondary: FromClause
    primary: str
    predicate: Filter


@dataclass(frozen=True, slots=True)
class TableJoin:
    """`join Reviews as $r on Symbol`: an equijoin with one more table."""

    table: StreamRef
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """`$r[description contains 'concert']`; without a variable it is on the whole from clause."""

    variable: str | None
    filter: Filter


@dataclass(frozen=True, slots=True)
class CreateFeed:
    name: str
    from_clause: FromClause
    pattern: PatternNode | None = None
    joins: tuple[WindowJoin, ...] | tuple[TableJoin, ...] = ()
    where: tuple[Condition, ...] = ()


# --- subscriptions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output:
    kind: OutputKind
    target: str = ""


@dataclass(frozen=True, slots=True)
class Subscribe:
    feed: str
    output: Output
    stylesheet: str | None = None
    period: Duration | None = None
    validity: Duration | None = None
    site: str | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    ticket: str = field(repr=False)
    validity: Duration | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    ticket: str = field(repr=False)


# --- the rest -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drop:
    kind: NameKind
    name: str


@dataclass(frozen=True, slots=True)
class Show:
    listing: Listing


@dataclass(frozen=True, slots=True)
class Explain:
    feed: str


RegisterSource = RegisterFeed | MaterializeFeed | RegisterStream | RegisterTable | RegisterDocuments
Statement = (
    RegisterSource
    | RegisterOperator
    | Advertise
    | CreateFeed
    | Subscribe
    | Renew
    | Unsubscribe
    | Drop
    | Show
    | Explain
)
