"""The clause table: subscriptions × predicates as flat arrays, the graph of [Operators §5.1].

The paper keeps the graph in two hash tables, one for each direction. Here `OperatorSubscriptions`
keeps it once, append-only, as subscriptions come and go, and a `ClauseTable` is an immutable copy
for the batches of one snapshot:

    subscription   0           1                     clause_start   0     2     5   6
    clause         0           1           2         predicates     4  7  4  1  3   2
                                                     wants          T  T  T  T  F   T
    literal        0  1        2  3  4     5         test_start     the tests of each literal

Subscription 1 can be satisfied in two ways. The reverse direction, from predicates to clauses,
differs from item to item, because it holds only clauses whose guards are satisfied
(item_evaluations.py).

Cost: adding a subscription is linear in its size, removing one in its clauses. `table()` takes a
few NumPy passes, 10 ms for 80,000 subscriptions. Removed clauses are compacted away when they are
more than half.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.model.atoms import Call, Variable
from headgate.model.errors import InvalidValue
from headgate.model.filters import Filter
from headgate.operators.orders.clauses import FALSE, KNOWN, Clause, clauses_of
from headgate.operators.orders.predicates import RELATIONS, PredicateIndex

Bytes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ClauseTable:
    """An immutable copy of all clauses. The field names are those of the snapshot file."""

    calls: tuple[Call, ...]  # [predicate]
    subscriptions: Ints  # [owner]: the subscription numbers, ascending
    keys: Ints  # [clause]: numbers that never change, ascending
    guards: tuple[Filter, ...]  # [clause]
    joints: tuple[Filter, ...]  # the distinct joint constraints
    owner: Ints  # [clause]: an index of `subscriptions`
    joint: Ints  # [clause]: an index of `joints`, or -1
    clause_start: Ints  # [clause + 1]: the first literal of each clause
    predicates: Ints  # [literal]: an index of `calls`
    wants: Bytes  # [literal]: the required answer, FALSE, TRUE or KNOWN
    test_start: Ints  # [literal + 1]: the first value test of each literal
    test_columns: Bytes  # [test]
    test_relations: Bytes  # [test]: an index of predicates.RELATIONS
    test_constants: Floats  # [test]

    @property
    def clause_count(self) -> int:
        return self.owner.size

    @property
    def lengths(self) -> Ints:
        return np.diff(self.clause_start)

    def popularity(self) -> Ints:
        """[predicate]: in how many clauses it occurs."""
        return np.bincount(self.predicates, minlength=len(self.calls)).astype(np.int32)


class OperatorSubscriptions:
    """The filters with operators of one source, by subscription number, as they come and go.

    Predicate numbers never change.
    """

    def __init__(self) -> None:
        self.predicates = PredicateIndex()
        self._clauses_of: dict[int, range] = {}
        self._joint_numbers: dict[Filter, int] = {}
        self._dead = 0
        self._clear()

    def _clear(self) -> None:
        self._guards: list[Filter] = []
        self._alive = array("b")
        self._names, self._keys, self._joints = array("i"), array("i"), array("i")
        self._lengths, self._predicates, self._wants = array("i"), array("i"), array("b")
        self._test_counts, self._columns, self._relations = array("i"), array("b"), array("b")
        self._constants = array("d")
        self._next_key = 0

    def __len__(self) -> int:
        return len(self._clauses_of)

    def __contains__(self, name: int) -> bool:
        return name in self._clauses_of

    def add(self, name: int, *branches: Filter) -> None:
        """Add a subscription to the union of the branches; each branch has its own variables."""
        if name in self._clauses_of:
            raise InvalidValue(f"subscription {name} is there already; remove it first")
        clauses = dict.fromkeys(clause for each in branches for clause in clauses_of(each))
        first = len(self._names)
        for clause in clauses:
            self._append(name, clause)
        self._clauses_of[name] = range(first, len(self._names))

    def remove(self, name: int) -> None:
        if name not in self._clauses_of:
            raise InvalidValue(f"there is no subscription {name}")
        for clause in self._clauses_of.pop(name):
            self._alive[clause] = 0
            self._dead += 1

    def table(self) -> ClauseTable:
        """The present clauses; those of a subscription are consecutive, in order of insertion."""
        alive = np.array(self._alive, np.bool_)
        lengths = np.array(self._lengths, np.int32)
        literal_alive = np.repeat(alive, lengths)
        test_counts = np.array(self._test_counts, np.int32)
        test_alive = np.repeat(literal_alive, test_counts)
        subscriptions, owner = np.unique(
            np.array(self._names, np.int32)[alive], return_inverse=True
        )
        table = ClauseTable(
            calls=tuple(self.predicates.calls),
            subscriptions=subscriptions,
            keys=np.array(self._keys, np.int32)[alive],
            guards=tuple(self._guards[at] for at in np.flatnonzero(alive).tolist()),
            joints=tuple(self._joint_numbers),
            owner=owner.astype(np.int32),
            joint=np.array(self._joints, np.int32)[alive],
            clause_start=_starts(lengths[alive]),
            predicates=np.array(self._predicates, np.int32)[literal_alive],
            wants=np.array(self._wants, np.int8)[literal_alive],
            test_start=_starts(test_counts[literal_alive]),
            test_columns=np.array(self._columns, np.int8)[test_alive],
            test_relations=np.array(self._relations, np.int8)[test_alive],
            test_constants=np.array(self._constants, np.float64)[test_alive],
        )
        if self._dead > len(self._names) // 2:
            self._keep_only(table)
        return table

    def _append(self, name: int, clause: Clause) -> None:
        joint = -1
        if clause.joint is not None:
            joint = self._joint_numbers.setdefault(clause.joint, len(self._joint_numbers))
        self._guards.append(clause.guard)
        self._alive.append(1)
        self._names.append(name)
        self._keys.append(self._next_key)
        self._next_key += 1
        self._joints.append(joint)
        self._lengths.append(len(clause.literals))
        for literal in clause.literals:
            self._predicates.append(self.predicates.number(literal.predicate))
            self._wants.append(literal.required)
            self._test_counts.append(len(literal.tests))
            for test in literal.tests:
                self._columns.append(test.column)
                self._relations.append(test.relation)
                self._constants.append(test.constant)

    def _keep_only(self, table: ClauseTable) -> None:
        """Compact: keep only the clauses of this table."""
        next_key = self._next_key
        self._clear()
        self._next_key, self._dead = next_key, 0
        names = table.subscriptions[table.owner].tolist()
        self._guards = list(table.guards)
        self._alive = array("b", [1] * len(names))
        self._names, self._keys = array("i", names), array("i", table.keys.tolist())
        self._joints = array("i", table.joint.tolist())
        self._lengths = array("i", table.lengths.tolist())
        self._predicates = array("i", table.predicates.tolist())
        self._wants = array("b", table.wants.tolist())
        self._test_counts = array("i", np.diff(table.test_start).tolist())
        self._columns = array("b", table.test_columns.tolist())
        self._relations = array("b", table.test_relations.tolist())
        self._constants = array("d", table.test_constants.tolist())
        for name in self._clauses_of:
            self._clauses_of[name] = range(0)
        for place, name in enumerate(names):
            places = self._clauses_of[name]
            self._clauses_of[name] = range(places.start if places else place, place + 1)


def _starts(lengths: Ints) -> Ints:
    starts = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=starts[1:])
    return starts


def check_clause_table(table: ClauseTable) -> None:
    """Raise an error if a table read from a file has an index out of bounds.

    Kernels do not check (match/bounds.py says why): they would access foreign memory.
    """
    clauses, calls = table.owner.size, len(table.calls)
    check_indices("subscriptions", table.subscriptions, 2**31)
    refuse_unless(
        bool((np.diff(table.subscriptions) > 0).all()), "subscriptions", "they do not ascend"
    )
    check_indices("keys", table.keys, 2**31, length=clauses)
    check_indices("owner", table.owner, table.subscriptions.size)
    check_indices("joint", table.joint, len(table.joints), least=-1, length=clauses)
    literals = table.predicates.size
    check_starts("clause_start", table.clause_start, literals, parts=clauses)
    check_indices("predicates", table.predicates, calls)
    check_indices("wants", table.wants.astype(np.int32), KNOWN + 1, least=FALSE, length=literals)
    check_starts("test_start", table.test_start, table.test_columns.size, parts=literals)
    tests = table.test_columns.size
    relations = table.test_relations.astype(np.int32)
    check_indices("test_relations", relations, len(RELATIONS), length=tests)
    refuse_unless(table.test_constants.size == tests, "test_constants", "there are not as many")
    _check_columns(table)


def _check_columns(table: ClauseTable) -> None:
    """A test looks at a variable that its predicate has."""
    counts = np.array(
        [sum(isinstance(each, Variable) for each in call.arguments) for call in table.calls],
        np.int32,
    )
    literal = np.repeat(np.arange(table.predicates.size), np.diff(table.test_start))
    column_counts = counts[table.predicates[literal]] if literal.size else counts[:0]
    columns = table.test_columns
    within = bool(((columns >= 0) & (columns < column_counts)).all())
    refuse_unless(within, "test_columns", "there is no such variable")
