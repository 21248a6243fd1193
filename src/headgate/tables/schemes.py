"""The nine schemes of [Select-Joins, Table 1] by name: what a server sends, and to which region.

    name          a message carries               addressed to
    Enum-J        new join results                each affected subscription by itself
    Rel-Sel       every new tuple                 all subscriptions that select the tuple
    Ref-J         every new join result           all subscriptions that select both tuples
    Ref-J+        join results that any           the same
                  subscription selects
    Enum-SJ       new tuples of the semijoins     each affected subscription by itself
    Ref-SJ-Sub    the same                        region: skyline of the affected ranges
    Ref-SJ-Tup    the same                        region: the joining tuples
    Ref-SJ-Clu    the same                        region: the joining tuples next to an anchor
    Ref-SJ-Clu+   the same                        region: runs of joining tuples; the default

All nine are exact: each client ends up with its join. They differ in bytes and in time.

A run (pipeline/table_join_stage.py) can use the four Ref-SJ schemes, `RUN_SCHEMES`. They differ
only in the region of a message, so message files and clients are the same for all of them. The
other five are for comparison and run in `headgate bench joins` only. Enum-J and Enum-SJ address
every subscription by itself, and message files have no place for addresses. Ref-J and Ref-J+ send
pairs of rows, and a message file has one row per message. Rel-Sel needs clients that also keep rows
without a partner, and it has no form for joins of more than two tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.model.errors import InvalidValue, did_you_mean
from headgate.tables.change_messages import JOINS, NEEDED_JOINS, SEMIJOINS, SchemeCode
from headgate.tables.skylines import CLU, CLU_PLUS, EVERYONE, SUB, TUP


class JoinScheme(StrEnum):
    """A scheme, spelled as in the paper."""

    ENUM_J = "Enum-J"
    REL_SEL = "Rel-Sel"
    REF_J = "Ref-J"
    REF_J_PLUS = "Ref-J+"
    ENUM_SJ = "Enum-SJ"
    REF_SJ_SUB = "Ref-SJ-Sub"
    REF_SJ_TUP = "Ref-SJ-Tup"
    REF_SJ_CLU = "Ref-SJ-Clu"
    REF_SJ_CLU_PLUS = "Ref-SJ-Clu+"


@dataclass(frozen=True, slots=True)
class SchemeTraits:
    """What a scheme sends.

    `code` is the scheme as kernels take it. With `is_unicast` a message goes to one subscription
    and has no region. With `keeps_unjoined` clients also hold rows that join with nothing yet.
    """

    code: SchemeCode
    is_unicast: bool = False
    keeps_unjoined: bool = False


SCHEMES = {
    JoinScheme.ENUM_J: SchemeTraits(SchemeCode(NEEDED_JOINS, CLU_PLUS), is_unicast=True),
    JoinScheme.REL_SEL: SchemeTraits(SchemeCode(SEMIJOINS, EVERYONE), keeps_unjoined=True),
    JoinScheme.REF_J: SchemeTraits(SchemeCode(JOINS, TUP)),
    JoinScheme.REF_J_PLUS: SchemeTraits(SchemeCode(NEEDED_JOINS, CLU_PLUS)),
    JoinScheme.ENUM_SJ: SchemeTraits(SchemeCode(SEMIJOINS, CLU_PLUS), is_unicast=True),
    JoinScheme.REF_SJ_SUB: SchemeTraits(SchemeCode(SEMIJOINS, SUB)),
    JoinScheme.REF_SJ_TUP: SchemeTraits(SchemeCode(SEMIJOINS, TUP)),
    JoinScheme.REF_SJ_CLU: SchemeTraits(SchemeCode(SEMIJOINS, CLU)),
    JoinScheme.REF_SJ_CLU_PLUS: SchemeTraits(SchemeCode(SEMIJOINS, CLU_PLUS)),
}

RUN_SCHEMES = (
    JoinScheme.REF_SJ_SUB,
    JoinScheme.REF_SJ_TUP,
    JoinScheme.REF_SJ_CLU,
    JoinScheme.REF_SJ_CLU_PLUS,
)
"""The schemes that `headgate run --join-scheme` accepts."""
DEFAULT_SCHEME = JoinScheme.REF_SJ_CLU_PLUS


def find_scheme(name: str) -> JoinScheme:
    """The scheme of this name, in any case; `ref-sj-` may be left out.

    >>> find_scheme("rel-sel"), find_scheme("Clu+")
    (<JoinScheme.REL_SEL: 'Rel-Sel'>, <JoinScheme.REF_SJ_CLU_PLUS: 'Ref-SJ-Clu+'>)
    """
    by_name = {scheme.lower(): scheme for scheme in JoinScheme}
    by_name |= {scheme.lower().removeprefix("ref-sj-"): scheme for scheme in RUN_SCHEMES}
    match = by_name.get(name.strip().lower())
    if match is None:
        expected = f"expected {', '.join(each.lower() for each in JoinScheme)}"
        raise InvalidValue(
            f"there is no join scheme '{name}': {did_you_mean(name, by_name) or expected}"
        )
    return match


def find_run_scheme(name: str) -> JoinScheme:
    """As `find_scheme`, but only the schemes that a run can use."""
    scheme = find_scheme(name)
    if scheme not in RUN_SCHEMES:
        expected = ", ".join(each.lower() for each in RUN_SCHEMES)
        raise InvalidValue(
            f"a run cannot use the join scheme {scheme.lower()}: expected {expected}"
        )
    return scheme
