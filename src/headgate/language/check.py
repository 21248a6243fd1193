"""Check a statement against the definitions that it uses: names, types, variables, targets.

The checked statement has its constants typed and its ranges expanded. The catalog checks that a new
name is free, that there is no cycle, and that nothing in use is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headgate.language.check_feed import check_feed
from headgate.language.names import error_at
from headgate.language.schemas import Definitions, definition_of, schemas_of
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Explain,
    Format,
    MaterializeFeed,
    Output,
    OutputKind,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterStream,
    RegisterTable,
    Statement,
    Subscribe,
    ValueFormat,
    ValueSchema,
)
from headgate.language.type_filter import type_filter
from headgate.model.atoms import Call, Constraint
from headgate.model.errors import alternatives, did_you_mean
from headgate.model.filters import atoms_of
from headgate.model.schema import FEED_SCHEMA, Attribute
from headgate.model.values import Type

NAME_LENGTH_MAX = 200
_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_MAIL = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
_WEB = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_STREAM_FORMATS = (Format.JSON, Format.CSV, Format.PARQUET, Format.KAFKA, Format.NATS, Format.POST)
_FILE_ENDINGS = (".rss", ".atom", ".xml", ".json", ".html", ".htm", ".txt")
_STYLESHEET_ENDINGS = (".csv", ".tsv", ".md", ".ics")
"""Further endings if there is a stylesheet. Others are refused: a web server or a browser may run
such files. deliver/output_file.py has the same list."""


def check(statement: Statement, definitions: Definitions) -> Statement:
    """The statement with everything resolved, or a `LanguageError` that points at what is wrong."""
    match statement:
        case RegisterFeed():
            return _register_feed(statement)
        case MaterializeFeed(name, feed):
            _check_name(name)
            definition_of(feed, definitions)
        case RegisterStream(name, format_) | RegisterTable(name, format_):
            _check_name(name)
            _check_format(name, format_, _STREAM_FORMATS)
            _check_path(name, format_, statement.path)
            _check_values(name, format_, statement.values)
            _check_attributes(statement.attributes)
            if isinstance(statement, RegisterTable):
                _check_table(statement)
        case RegisterDocuments(name, format_):
            _check_name(name)
            _check_format(name, format_, (Format.XML,))
        case RegisterOperator():
            _check_operator(statement)
        case Advertise():
            return _advertise(statement, definitions)
        case CreateFeed(name):
            _check_name(name)
            return check_feed(statement, definitions)
        case Subscribe(feed, output):
            definition_of(feed, definitions)
            _check_output(output, has_stylesheet=bool(statement.stylesheet))
        case Explain(feed):
            definition_of(feed, definitions)
    return statement


def _register_feed(statement: RegisterFeed) -> RegisterFeed:
    name, url = statement.name, statement.url
    _check_name(name)
    if not _WEB.fullmatch(url):
        raise error_at(url, f"'{url}' is not the URL of a feed", hint="it begins with https://")
    for attribute in statement.attributes:
        if FEED_SCHEMA.get(attribute.name) is not None:
            raise error_at(attribute.name, f"every feed has '{attribute.name}' already")
    _check_attributes(statement.attributes)
    return statement


def _check_name(name: str) -> None:
    if len(name) > NAME_LENGTH_MAX:
        raise error_at(name, f"a name has at most {NAME_LENGTH_MAX} characters")
    if not name.isprintable() or not name.strip() or "`" in name:
        raise error_at(name, "a name is made of visible characters")


def _check_attributes(attributes: Sequence[Attribute]) -> None:
    for attribute in attributes:
        _check_name(attribute.name)


def _check_table(table: RegisterTable) -> None:
    name, changes = table.name, table.changes
    if not any(attribute.key for attribute in table.attributes):
        raise error_at(name, f"table '{name}' needs a key", hint="mark it: Symbol text key")
    if changes is None:
        return
    declared = {attribute.name: attribute for attribute in table.attributes}
    if changes not in declared:
        hint = did_you_mean(changes, declared) or f"declare it: ({changes} text, …)"
        raise error_at(changes, f"table '{name}' has no '{changes}'", hint=hint)
    attribute = declared[changes]
    if attribute.type is not Type.TEXT or attribute.key or attribute.payload:
        raise error_at(
            changes,
            f"'{changes}' says what happened to a row: it is a text, and no key or payload",
        )


def _check_format(name: str, format_: Format, allowed: tuple[Format, ...]) -> None:
    if format_ not in allowed:
        raise error_at(
            name, f"'{name}' cannot be read from {format_}: expected {alternatives(allowed)}"
        )


def _check_path(name: str, format_: Format, path: str) -> None:
    if format_ is Format.POST and path:
        raise error_at(name, "posted events have no path: write 'from post'")
    if format_ is not Format.POST and not path:
        raise error_at(name, f"'{name}' needs a path, as in: from {format_} '…'")


def _check_values(name: str, format_: Format, values: ValueSchema | None) -> None:
    if values is None:
        return
    if format_ is not Format.KAFKA:
        raise error_at(
            name, f"only messages of Kafka have values as {values.format}, not {format_}"
        )
    parts = values.path.replace("\\", "/").split("/")
    if values.path.startswith(("/", "\\")) or ".." in parts or not parts[-1]:
        raise error_at(
            name,
            f"'{values.path}' is no file below the base folder",
            hint="name one, such as 'schemas/click.avsc'",
        )
    if values.format is ValueFormat.AVRO and values.message:
        raise error_at(name, "an Avro schema has one type: leave out 'message'")
    if values.format is ValueFormat.PROTOBUF and not values.message:
        hint = f"write: protobuf '{values.path}' message 'package.Message'"
        raise error_at(name, "a Protobuf schema has many messages: name one", hint=hint)


def _check_operator(operator: RegisterOperator) -> None:
    _check_name(operator.name)
    names = [parameter.name for parameter in operator.parameters]
    for name in names:
        if names.count(name) > 1:
            raise error_at(name, f"parameter '{name}' is declared twice")
    if not _TARGET.fullmatch(operator.target):
        raise error_at(
            operator.name,
            f"'{operator.target}' does not name a function",
            hint="it is written as 'package.module:function'",
        )


def _advertise(statement: Advertise, definitions: Definitions) -> Advertise:
    source = statement.source
    if isinstance(definition_of(source, definitions), CreateFeed):
        raise error_at(source, f"'{source}' is a feed; only a source is advertised")
    if any(isinstance(atom, (Call, Constraint)) for atom in atoms_of(statement.filter)):
        raise error_at(source, "an advertisement speaks of attributes, not of operators")
    typed = type_filter(statement.filter, schemas_of(source, definitions), definitions)
    return replace(statement, filter=typed)


def _check_output(output: Output, *, has_stylesheet: bool) -> None:
    kind, target = output.kind, output.target
    if kind is OutputKind.CONSOLE:
        if target:
            raise error_at(target, "output console has no target")
        return
    if not target:
        raise error_at(target, f"output {kind} needs a target in quotes")
    if kind is OutputKind.MAIL and not _MAIL.fullmatch(target):
        raise error_at(target, f"'{target}' is not a mail address")
    if kind.is_call and not _WEB.fullmatch(target):
        raise error_at(
            target, f"'{target}' is not the URL of a webhook", hint="it begins with https://"
        )
    if kind is OutputKind.KAFKA and (not _TOPIC.fullmatch(target) or target in (".", "..")):
        raise error_at(
            target, f"'{target}' is not a topic", hint="use letters, digits, '.', '_' and '-'"
        )
    if kind is OutputKind.FILE:
        _check_file(target, has_stylesheet=has_stylesheet)


def _check_file(target: str, *, has_stylesheet: bool) -> None:
    """A file must lie below the output folder: no absolute path and no '..'."""
    parts = target.replace("\\", "/").split("/")
    if target.startswith(("/", "\\", "~")) or ":" in parts[0] or ".." in parts or not parts[-1]:
        raise error_at(
            target,
            f"'{target}' leaves the output folder",
            hint="name a file below it, such as 'rock/concerts.rss'",
        )
    if not target.isprintable():
        raise error_at(target, f"'{target}' has characters that cannot be printed")
    endings = _FILE_ENDINGS + (_STYLESHEET_ENDINGS if has_stylesheet else ())
    if not target.lower().endswith(endings):
        raise error_at(target, f"'{target}' must end in {alternatives(endings)}")
