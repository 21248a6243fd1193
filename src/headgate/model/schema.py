"""Schemas: which attributes a source's items have, and of which type."""

from __future__ import annotations

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
