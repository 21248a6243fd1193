"""Schemas: the attributes of a source's items and their types; the names in a join of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from headgate.model.errors import InvalidValue
from headgate.model.values import Type


@dataclass(frozen=True, slots=True)
class Attribute:
    """A typed attribute. A key identifies a row; a payload is carried but never compared."""

    name: str
    type: Type
    key: bool = False
    payload: bool = False

    def __post_init__(self) -> None:
        if self.key and self.payload:
            raise InvalidValue(
                f"attribute '{self.name}' cannot be key and payload at once", subject=self.name
            )


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a source's items. An item may lack any of them, and has no others."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for attribute in self.attributes:
            if attribute.name in seen:
                raise InvalidValue(
                    f"attribute '{attribute.name}' is declared twice", subject=attribute.name
                )
            seen.add(attribute.name)

    def get(self, name: str) -> Attribute | None:
        return next((each for each in self.attributes if each.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.attributes)


FEED_SCHEMA = Schema(
    (
        Attribute("title", Type.TEXT),
        Attribute("description", Type.TEXT),
        Attribute("content", Type.TEXT),
        Attribute("link", Type.LINK),
        Attribute("author", Type.TEXT),
        Attribute("category", Type.TEXT),
        Attribute("published", Type.TIMESTAMP),
        Attribute("updated", Type.TIMESTAMP),
        Attribute("guid", Type.TEXT),
        Attribute("language", Type.TEXT),
        Attribute("comments", Type.LINK),
        Attribute("enclosure", Type.LINK),
    )
)
"""What RSS, Atom and JSON Feed items have in common; `register feed` may declare further ones."""

DOCUMENT_SCHEMA = Schema((Attribute("document", Type.XML), Attribute("name", Type.TEXT)))
"""An XML document and the name it came under."""


# --- the attributes of a natural join ------------------------------------------------------------

TableNames = tuple[str, Sequence[str]]
"""The name of a table and the names of its attributes."""


def joined_names(tables: Iterable[TableNames], on: Collection[str]) -> list[dict[str, str]]:
    """For each table, the name that each of its attributes has in the result.

    A join attribute keeps its name; its value is that of the first table that has it. Another
    attribute keeps its name unless several tables have it. Then each is called
    '<table>_<attribute>', so that no value is lost and no name depends on the order of the tables.

    >>> joined_names([("S", ["k", "a", "d"]), ("R", ["k", "d"])], on=["k"])
    [{'k': 'k', 'a': 'a', 'd': 'S_d'}, {'k': 'k', 'd': 'R_d'}]
    """
    tables = list(tables)
    times = Counter(attribute for _, attributes in tables for attribute in attributes)
    return [
        {each: each if each in on or times[each] == 1 else f"{table}_{each}" for each in attributes}
        for table, attributes in tables
    ]
