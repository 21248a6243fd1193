"""The schemes of [Select-Joins, Table 1], by their names there.

    name          sends                        to whom
    Enum-J        join results                 each affected subscription by itself
    Rel-Sel       every new tuple              all who select it; clients hold what may join later
    Ref-J         every join result            all whose ranges contain it
    Ref-J+        join results someone wants   the same
    Enum-SJ       semijoin results             each affected subscription by itself
    Ref-SJ-Sub    semijoin results             the skyline of the affected ranges
    Ref-SJ-Tup    the same                     the joining tuples
    Ref-SJ-Clu    the same                     the joining tuples next to an anchor
    Ref-SJ-Clu+   the same                     runs of joining tuples; the default

All are exact: a client's content is the join, whichever is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.tables.change_kernels import JOINS, NEEDED_JOINS, SEMIJOINS, Scheme
from headgate.tables.describe_kernels import CLU, CLU_PLUS, EVERYONE, SUB, TUP


class SchemeName(StrEnum):
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
class Form:
    """How a scheme is made: what its messages hold, and whether they go to one subscription
    each."""

    kernel: Scheme
    is_unicast: bool = False
    keeps_unjoined: bool = False


FORMS = {
    SchemeName.ENUM_J: Form(Scheme(NEEDED_JOINS, CLU_PLUS), is_unicast=True),
    SchemeName.REL_SEL: Form(Scheme(SEMIJOINS, EVERYONE), keeps_unjoined=True),
    SchemeName.REF_J: Form(Scheme(JOINS, TUP)),
    SchemeName.REF_J_PLUS: Form(Scheme(NEEDED_JOINS, CLU_PLUS)),
    SchemeName.ENUM_SJ: Form(Scheme(SEMIJOINS, CLU_PLUS), is_unicast=True),
    SchemeName.REF_SJ_SUB: Form(Scheme(SEMIJOINS, SUB)),
    SchemeName.REF_SJ_TUP: Form(Scheme(SEMIJOINS, TUP)),
    SchemeName.REF_SJ_CLU: Form(Scheme(SEMIJOINS, CLU)),
    SchemeName.REF_SJ_CLU_PLUS: Form(Scheme(SEMIJOINS, CLU_PLUS)),
}
