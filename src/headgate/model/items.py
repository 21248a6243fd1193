"""Items: one published thing each, and the annotations that joins have added to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from headgate.model.errors import InvalidValue
from headgate.model.values import Value


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one join found for an item: (j, I) in [RoSeS §3.2]."""

    join: str
    items: frozenset[Item]


@dataclass(frozen=True, slots=True)
class Item:
    """An element (t, i, a) of a stream; the same one if source, id, time and annotations are.

    The attributes are not compared: a source publishes an id once, with one content.
    """

    id: str
    source: str
    time: datetime
    attributes: Mapping[str, Value] = field(compare=False)
    annotations: frozenset[Annotation] = frozenset()

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise InvalidValue(f"item '{self.id}' has a time without a zone")

    def annotated(self, annotation: Annotation) -> Item:
        return replace(self, annotations=self.annotations | {annotation})
