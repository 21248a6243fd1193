"""The smallest edit of statements after which a feed has an item: `smallest_edit`.

    create feed Cheap from Tickets where price < 100;       the item's price is 120
    create feed Cheap from Tickets where price <= 120;

A condition that fails may be one of a feed that this one is built on; then that statement is
edited, too. Each condition that the item meets on its way is widened (model/widen.py), and the
edited statements are planned and asked again (why.py): an edit that does not admit the item is no
edit.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.language.schemas import Definitions, stream_refs
from headgate.language.statements import (
    Condition,
    CreateFeed,
    FromClause,
    Group,
    Statement,
    StreamRange,
)
from headgate.model.filters import TRUE
from headgate.model.items import Item
from headgate.model.widen import ConditionChange, widen
from headgate.plan.why import sources_of, why

DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class EditedFeed:
    before: CreateFeed
    after: CreateFeed
    changes: tuple[ConditionChange, ...]


def smallest_edit(feed: str, item: Item, definitions: Definitions) -> list[EditedFeed]:
    """The statements to be edited, the feed's own first; none if the feed has the item, or no edit
    of conditions admits it."""
    if why(feed, item, definitions).answer is not False:
        return []
    edits = list(_edits(feed, item, definitions, depth=0))
    edited: dict[str, Statement] = {str(each.after.name): each.after for each in edits}
    with_them = ChainMap(edited, definitions)  # type: ignore[arg-type]
    return edits if why(feed, item, with_them).answer else []


def _edits(feed: str, item: Item, definitions: Definitions, *, depth: int) -> Iterator[EditedFeed]:
    statement = definitions.get(feed)
    if not isinstance(statement, CreateFeed) or depth > DEPTH_MAX:
        return
    where: list[Condition] = []
    changes: list[ConditionChange] = []
    for condition in statement.where:
        meets = _meets(condition, statement.from_clause, item.source, definitions)
        wider = widen(condition.filter, item) if meets else None
        if wider is None:
            where.append(condition)
            continue
        changes += wider.changes
        if wider.filter != TRUE:
            where.append(replace(condition, filter=wider.filter))
    if changes:
        yield EditedFeed(statement, replace(statement, where=tuple(where)), tuple(changes))
    for ref in stream_refs(statement.from_clause):
        name = str(ref.name)
        if isinstance(definitions.get(name), CreateFeed):
            below = sources_of(name, definitions)
            if item.source in below and why(name, item, definitions).answer is False:
                yield from _edits(name, item, definitions, depth=depth + 1)


def _meets(condition: Condition, clause: FromClause, source: str, definitions: Definitions) -> bool:
    """Whether items of the source have to satisfy the condition."""
    named = clause if condition.variable is None else _named(clause, condition.variable)
    return named is not None and any(
        source in sources_of(str(ref.name), definitions) for ref in stream_refs(named)
    )


def _named(clause: FromClause, variable: str) -> FromClause | None:
    """The part of a from clause that a variable names."""
    if clause.variable == variable:
        return clause
    if isinstance(clause, Group):
        for member in clause.members:
            if not isinstance(member, StreamRange):
                found = _named(member, variable)
                if found is not None:
                    return found
    return None
