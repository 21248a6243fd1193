"""`src1 | ... | src20` and `src1 | ... | srcN`: names with a number, written out.

With a number at its end, the range is all names from the first number to the last, and each must
exist. With a letter in the place of the number (`srcN`), it is every such name that is registered
when the statement is applied, from the first number on. [RoSeS §6] writes its queries like this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from headgate.language.names import Name, error_at, position_of
from headgate.language.statements import FromClause, GroupMember, StreamRange, StreamRef

RANGE_MAX = 10_000
_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.DOTALL)


def expand_ranges(clause: FromClause, known: Iterable[str]) -> FromClause:
    """The clause with every range written out."""
    if isinstance(clause, StreamRef):
        return clause
    members: list[GroupMember] = []
    for member in clause.members:
        if isinstance(member, StreamRange):
            members += [StreamRef(name) for name in _names(member, known)]
        else:
            members.append(expand_ranges(member, known))
    return replace(clause, members=tuple(members))


def _names(range_: StreamRange, known: Iterable[str]) -> list[str]:
    first = _NUMBERED.fullmatch(range_.first)
    if first is None:
        raise error_at(range_.first, f"'{range_.first}' before '...' does not end in a number")
    prefix, lowest = first[1], int(first[2])
    last = _NUMBERED.fullmatch(range_.last)
    if last is not None and last[1] == prefix:
        numbers: Sequence[int] = range(lowest, int(last[2]) + 1)
    elif range_.last[:-1] == prefix:
        found = (_NUMBERED.fullmatch(name) for name in known)
        numbers = sorted({int(m[2]) for m in found if m and m[1] == prefix} - set(range(lowest)))
    else:
        raise error_at(range_.last, f"'{range_.last}' does not continue '{range_.first}'")
    if not numbers:
        raise error_at(range_.last, f"there is nothing from '{range_.first}' to '{range_.last}'")
    if len(numbers) > RANGE_MAX:
        raise error_at(range_.last, f"a range has at most {RANGE_MAX:,} names")
    return [Name(f"{prefix}{number}", position_of(range_.first)) for number in numbers]
