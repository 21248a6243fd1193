"""Whose items are asked for: those of a source by name, or those of a feed by number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from headgate.catalog.definitions import Definitions
from headgate.catalog.kinds import SOURCE_KINDS, DefinitionKind
from headgate.language.schemas import schemas_of
from headgate.match.item_columns import group_of, may_hold
from headgate.model.errors import UnknownName, did_you_mean
from headgate.plan.why import sources_of
from headgate.store.files import JOINED
from headgate.store.stored_rows import microseconds


@dataclass(frozen=True, slots=True)
class Wanted:
    source: str | None = None
    feed: int | None = None
    schemas: Collection[str] | None = None
    """The names of the schemas (columns.group_of) that the items may have; without, any."""

    @property
    def condition(self) -> str:
        own = '"@source" = $source' if self.source is not None else 'list_contains("@feeds", $feed)'
        return f'{own} AND epoch_us("@arrived") >= $since'

    def parameters(self, since: datetime | None) -> dict[str, object]:
        own = {"source": self.source} if self.source is not None else {"feed": self.feed}
        return {**own, "since": 0 if since is None else microseconds(since)}

    def may_be_in(self, group: str) -> bool:
        """What joins have found is there a second time, with what was joined to it: it is the
        feed's, and no further item of its source."""
        if self.source is not None and group.startswith(JOINED):
            return False
        return self.schemas is None or may_hold(group, self.schemas)


def wanted_of(name: str, definitions: Definitions) -> Wanted:
    """Of a materialised feed those that it has made, as its subscribers get them."""
    entry = definitions.entry(name)
    if entry is None:
        hint = did_you_mean(name, definitions)
        raise UnknownName(f"there is no source or feed '{name}'" + (f"; {hint}" if hint else ""))
    if entry.kind is DefinitionKind.OPERATOR:
        raise UnknownName(f"'{name}' is an operator, not a source or feed")
    if entry.kind in SOURCE_KINDS:
        return Wanted(source=name, schemas=_schemas([name], definitions))
    read = [name, *sources_of(name, definitions)]
    return Wanted(feed=entry.number, schemas=_schemas(read, definitions))


def _schemas(names: Collection[str], definitions: Definitions) -> frozenset[str]:
    return frozenset(group_of(each) for name in names for each in schemas_of(name, definitions))
