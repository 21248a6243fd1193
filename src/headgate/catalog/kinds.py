"""What a name can stand for."""

from __future__ import annotations

from enum import StrEnum

from headgate.language.statements import (
    CreateFeed,
    MaterializeFeed,
    NameKind,
    RegisterDocuments,
    RegisterFeed,
    RegisterOperator,
    RegisterSource,
    RegisterStream,
    RegisterTable,
)

DefiningStatement = RegisterSource | RegisterOperator | CreateFeed
"""A statement that gives a name to something. All names live in one space."""


class DefinitionKind(StrEnum):
    """What a name stands for."""

    RSS = "rss"
    MATERIALIZED = "materialized"
    STREAM = "stream"
    TABLE = "table"
    DOCUMENTS = "documents"
    FEED = "feed"
    OPERATOR = "operator"

    @property
    def noun(self) -> str:
        return self.value if self in (DefinitionKind.FEED, DefinitionKind.OPERATOR) else "source"

    @property
    def drop_kind(self) -> NameKind:
        """How `drop` calls it."""
        return (
            NameKind.FEED
            if self in (DefinitionKind.RSS, DefinitionKind.MATERIALIZED)
            else NameKind(self.value)
        )

    @property
    def described(self) -> str:
        return _DESCRIPTIONS.get(self, f"a {self.value}")


_DESCRIPTIONS = {
    DefinitionKind.RSS: "a registered feed",
    DefinitionKind.MATERIALIZED: "a registered feed",
    DefinitionKind.DOCUMENTS: "a source of documents",
    DefinitionKind.OPERATOR: "an operator",
}
SOURCE_KINDS = (
    DefinitionKind.RSS,
    DefinitionKind.MATERIALIZED,
    DefinitionKind.STREAM,
    DefinitionKind.TABLE,
    DefinitionKind.DOCUMENTS,
)

_KINDS: dict[type[DefiningStatement], DefinitionKind] = {
    RegisterFeed: DefinitionKind.RSS,
    MaterializeFeed: DefinitionKind.MATERIALIZED,
    RegisterStream: DefinitionKind.STREAM,
    RegisterTable: DefinitionKind.TABLE,
    RegisterDocuments: DefinitionKind.DOCUMENTS,
    CreateFeed: DefinitionKind.FEED,
    RegisterOperator: DefinitionKind.OPERATOR,
}


def kind_of(statement: DefiningStatement) -> DefinitionKind:
    return _KINDS[type(statement)]
