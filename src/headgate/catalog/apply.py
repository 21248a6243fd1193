"""Apply a script: every statement, or none.

Feeds may be written in any order. `order` decides in which order the statements are applied:

    drop X               a drop acts where it stands: it cuts the script into segments
    ───────
    create A from B      within a segment a definition comes before what is built on it,
    create B from C      otherwise the script's order is kept: here B, A, then the subscription
    subscribe to A

If the definitions of a segment are built on each other in a cycle, there is no such order, and the
error prints the cycle: `feed cycle: A → B → A`. The cost is that of sorting.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from headgate.catalog.definitions import DefiningStatement
from headgate.catalog.dependencies import names_in_ranges, names_used
from headgate.catalog.limits import check_quotas
from headgate.catalog.register import advertise, drop, register
from headgate.catalog.rights import check_rights
from headgate.catalog.subscribe import fetch_confirmed, renew, subscribe, unsubscribe
from headgate.catalog.transaction import Outcome, Transaction
from headgate.language.check import check
from headgate.language.rename import rename_definitions
from headgate.language.statements import (
    Advertise,
    CreateFeed,
    Drop,
    Explain,
    Renew,
    Show,
    Statement,
    Subscribe,
    Unsubscribe,
)
from headgate.model.errors import FeedCycle, HeadgateError


def apply(transaction: Transaction, statements: Sequence[Statement]) -> list[Outcome]:
    """The outcomes, in the script's order. An error has the `statement_number` of its statement."""
    statements = _with_usual_names(transaction, statements)
    transaction.definitions.fetch(_names(statements))
    fetch_confirmed(transaction, statements)
    outcomes: dict[int, Outcome] = {}
    for index in order(statements):
        try:
            outcomes[index] = _apply_one(transaction, statements[index])
        except HeadgateError as error:
            if error.statement_number is None:
                error.statement_number = index + 1
            raise
    check_quotas(transaction)
    transaction.finish(changed=any(outcome.changed for outcome in outcomes.values()))
    return [outcomes[index] for index in range(len(statements))]


def find_errors(
    transaction: Transaction, statements: Sequence[Statement], *, missing: Collection[str] = ()
) -> list[HeadgateError]:
    """All errors of a script, in its order; the transaction must be undone. What is built on a
    wrong statement, or on one of the `missing` names, is not checked: its error would be another
    one's."""
    statements = _with_usual_names(transaction, statements)
    transaction.definitions.fetch(_names(statements))
    wrong = set(missing)
    errors: list[HeadgateError] = []
    try:
        for index in order(statements):
            statement = statements[index]
            try:
                if not wrong.isdisjoint(names_used(statement)):
                    wrong.add(getattr(statement, "name", ""))
                else:
                    _apply_one(transaction, statement)
            except HeadgateError as error:
                error.statement_number = error.statement_number or index + 1
                errors.append(error)
                wrong.add(getattr(statement, "name", ""))
    except HeadgateError as error:
        errors.append(error)  # a cycle: there is no order
    return sorted(errors, key=lambda each: each.statement_number or 0)


def _with_usual_names(
    transaction: Transaction, statements: Sequence[Statement]
) -> Sequence[Statement]:
    """A tenant may write its own name before one of its definitions; errors and outcomes do not."""
    view = transaction.view

    def usual(statement: Statement) -> Statement:
        if not any("." in name for name in _names([statement])):
            return statement
        return rename_definitions(statement, view.usual)

    return [usual(statement) for statement in statements]


def _names(statements: Iterable[Statement]) -> Iterable[str]:
    for statement in statements:
        name = getattr(statement, "name", None)
        if name is not None:
            yield name
        yield from names_used(statement)


def _apply_one(transaction: Transaction, statement: Statement) -> Outcome:
    check_rights(transaction, statement)
    match statement:
        case Subscribe():
            return subscribe(transaction, statement)
        case Renew():
            return renew(transaction, statement)
        case Unsubscribe():
            return unsubscribe(transaction, statement)
        case Advertise():
            return advertise(transaction, statement)
        case Drop():
            return drop(transaction, statement)
        case Show() | Explain():
            check(statement, transaction.definitions)
            return Outcome(statement)
    return register(transaction, statement)


# --- order ---------------------------------------------------------------------------------------

_DEFINITIONS = get_args(DefiningStatement)
_SHOWN_MAX = 20


def order(statements: Sequence[Statement]) -> Iterator[int]:
    """The indices of the statements, in the order in which to apply them."""
    segment: list[int] = []
    for index, statement in enumerate(statements):
        if isinstance(statement, Drop):
            yield from _order_segment(statements, segment)
            yield index
            segment = []
        else:
            segment.append(index)
    yield from _order_segment(statements, segment)


def _order_segment(statements: Sequence[Statement], segment: list[int]) -> Iterator[int]:
    defining = {
        index: statement
        for index in segment
        if isinstance(statement := statements[index], _DEFINITIONS)
    }
    yield from _order_definitions(defining)
    yield from (index for index in segment if index not in defining)


def _order_definitions(defining: dict[int, DefiningStatement]) -> Iterator[int]:
    """A topological order; the heap of ready definitions keeps the script's order where it can."""
    sorter = TopologicalSorter(_needs(defining))
    try:
        sorter.prepare()
    except CycleError as error:
        raise _feed_cycle(error.args[1], defining) from None
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    while ready:
        index = heapq.heappop(ready)
        yield index
        sorter.done(index)
        for next_index in sorter.get_ready():
            heapq.heappush(ready, next_index)


def _needs(defining: dict[int, DefiningStatement]) -> dict[int, set[int]]:
    """For each definition, the others that must come before it."""
    first: dict[str, int] = {}
    for index, statement in defining.items():
        first.setdefault(statement.name, index)
    # A range with an open end takes the sources that exist; it does not wait for feeds.
    sources = {each.name for each in defining.values() if not isinstance(each, CreateFeed)}
    needs: dict[int, set[int]] = {}
    for index, statement in defining.items():
        needs[index] = {first[name] for name in names_used(statement) if name in first}
        if isinstance(statement, CreateFeed):
            in_ranges = names_in_ranges(statement, sources)
            needs[index].update(first[name] for name in in_ranges if name in first)
        # The second definition of a name is the one that is wrong, so it must not come first.
        if first[statement.name] != index:
            needs[index].add(first[statement.name])
    return needs


def _feed_cycle(cycle: list[int], defining: dict[int, DefiningStatement]) -> FeedCycle:
    """Each of the cycle is needed by the next; the message begins with the first statement."""
    circle = cycle[:0:-1]
    start = circle.index(min(circle))
    shown = circle[start:] + circle[: start + 1]
    names = [defining[index].name for index in shown]
    if len(names) > _SHOWN_MAX:
        names[_SHOWN_MAX // 2 : -_SHOWN_MAX // 2] = [f"… {len(names) - _SHOWN_MAX:,} more …"]
    error = FeedCycle(f"feed cycle: {' → '.join(names)}; a feed cannot be defined through itself")
    error.statement_number = shown[0] + 1
    return error
