"""Living with change: a million are not compiled anew when one comes or goes (DESIGN.md §5.5).

    main     1,000,000 subscriptions, compiled or mapped from a file    the dead are marked in it
    tier 2         960 that came since                                  … and in the tiers
    tier 1          41 that came since
    tier 0           3 that came since                                  compiled for the next batch

What comes goes to the youngest tier. A tier that is full is poured into the next, which holds many
times as many and is compiled anew for the next batch: each subscription is compiled some times
before it reaches the main program, and a batch passes through few programs. *Compaction* puts
all that live into a new main program, while batches go on with the old one.

Laws. What a batch matches is what a program compiled of the living subscriptions would match,
at any moment of any history. A subscription that was added before a batch is seen by it, and one
that was removed is not. A view never changes: what is added later is in the next one.

Cost: adding costs a dictionary entry, and its share of compiling the tiers; removing costs a binary
search, and the next batch a copy of the names of one program. Matching costs a pass over
each program: the rows of a small one are cheap (0.3 µs per item for 10,000 subscriptions), and the
dead cost as much as the living, which is what `gain` estimates.

Rejected: adding nodes to the forest in place, since readers would need locks and its depth-first
order would be lost; one second program, as compiling 10,000 filters for each that is added takes
100 ms; tiers that double, as a batch would pass through a dozen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.match.batch import Batch
from headgate.match.kernels import Ints, Longs
from headgate.match.matcher import Matches, Part, ProgramMatcher, match_parts
from headgate.match.program import Program, compile_program
from headgate.model.errors import NameTaken, UnknownName
from headgate.model.filters import Filter
from headgate.model.schema import Schema

TIER_ROOMS = (8, 64, 1_024, 16_384, 262_144)
"""How many subscriptions a tier has room for; the one behind the last of these takes all others. A
small one is compiled often, a large one makes batches pass through fewer programs."""
NAME_MAX = 2**31 - 1
GAIN_WANTED = 0.2
"""Compaction is worth its while from this share of the matching time on."""
PASS_COST = 0.05
"""What a batch's way through a tier costs, as a share of its way through a large main program."""

Load = Callable[[Sequence[int]], Iterable[Filter]]
"""The filters of subscriptions, in the same order; the catalog knows them."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What lived at one moment. It never changes; all threads may use it."""

    parts: tuple[Part, ...]

    def match(self, batch: Batch) -> Matches:
        """For each item, the names of the subscriptions that it matches."""
        return match_parts(self.parts, batch)

    def count(self, batch: Batch) -> tuple[Ints, Longs]:
        """The names of the living subscriptions, ascending, and how many items match each."""
        names, counts = [], []
        for part in self.parts:
            names.append(part.program.names[~part.dead])
            counts.append(ProgramMatcher(part.program).count(batch).by_subscription()[~part.dead])
        order = np.argsort(np.concatenate(names), kind="stable")
        return np.concatenate(names)[order], np.concatenate(counts)[order]


class LivingProgram:
    """The subscriptions on one source as they come and go. All methods may be called by any thread;
    matching does not wait for changes, nor changes for matching or compaction."""

    def __init__(self, schema: Schema, main: Program | None = None) -> None:
        self._schema = schema
        self._lock = threading.RLock()
        self._main = _Marked(compile_program([], schema) if main is None else main)
        self._sealed: list[_Tier] = []
        """Tiers that a compaction is putting into a new main program: nothing comes to them."""
        self._tiers: list[_Tier] = []
        self._removed_meanwhile: list[int] = []
        """What was removed from the main program or a sealed tier since a compaction began."""

    def __len__(self) -> int:
        with self._lock:
            return self._main.living_count + sum(len(tier.filters) for tier in self._all_tiers())

    def __contains__(self, name: int) -> bool:
        with self._lock:
            return name in self._main or any(name in tier.filters for tier in self._all_tiers())

    def names(self) -> Ints:
        """The numbers of the living subscriptions, ascending."""
        with self._lock:
            recent = [name for tier in self._all_tiers() for name in tier.filters]
            return np.sort(np.concatenate([self._main.living_names(), np.array(recent, np.int32)]))

    def add(self, name: int, filter_: Filter) -> None:
        """A subscription that the next batch will see."""
        self.add_many({name: filter_})

    def add_many(self, filters: Mapping[int, Filter]) -> None:
        """Subscriptions that the next batch will see, all of them or none."""
        with self._lock:
            for name in filters:
                assert 0 <= name <= NAME_MAX, f"a subscription's number is from 0 to {NAME_MAX:,}"
                if name in self:
                    raise NameTaken(f"subscription {name} lives already; remove it first")
            if not self._tiers:
                self._tiers.append(_Tier())
            self._tiers[0].pour(filters)
            self._make_room()

    def remove(self, name: int) -> None:
        """A subscription that the next batch will not see."""
        with self._lock:
            tier = next((each for each in self._all_tiers() if name in each.filters), None)
            if tier is None and name not in self._main:
                raise UnknownName(f"there is no subscription {name}")
            (self._main if tier is None else tier).remove(name)
            if tier not in self._tiers:
                self._removed_meanwhile.append(name)

    def view(self) -> View:
        """What lives now. What was added since the last view is compiled here."""
        with self._lock:
            tiers = [tier for tier in self._all_tiers() if tier.filters]
            marked = [self._main, *(tier.marked(self._schema) for tier in tiers)]
            return View(tuple(each.part() for each in marked))

    def match(self, batch: Batch) -> Matches:
        """For each item, the names of the living subscriptions that it matches."""
        return self.view().match(batch)

    def gain(self) -> float:
        """The share of the matching time that compaction would save, as an estimate: a pass for
        each tier, and what the dead cost. Compact where it is above GAIN_WANTED."""
        with self._lock:
            dead = 1 - self._main.living_count / max(self._main.program.subscription_count, 1)
            return dead + PASS_COST * sum(1 for tier in self._all_tiers() if tier.filters)

    def compact(self, load: Load) -> Program:
        """All that live in one new main program, which is returned: it can be written to a file.

        It takes as long as compiling takes, and is meant for a thread of its own. What comes and
        goes meanwhile is not lost. `load` gives the filters of what is in the main program. If it
        fails, everything stays as it was.
        """
        with self._lock:
            assert not self._sealed, "one compaction at a time"
            self._sealed, self._tiers = self._tiers or [_Tier()], []
            self._removed_meanwhile = []
            recent = {name: each for tier in self._sealed for name, each in tier.filters.items()}
            kept = self._main.living_names().tolist()
        try:
            compiled = _compile(dict(zip(kept, load(kept), strict=True)) | recent, self._schema)
        except BaseException:
            with self._lock:
                self._tiers, self._sealed = self._tiers + self._sealed, []
            raise
        with self._lock:
            self._main, self._sealed = _Marked(compiled), []
            for name in self._removed_meanwhile:
                self._main.remove(name)
        return compiled

    def _all_tiers(self) -> list[_Tier]:
        return self._tiers + self._sealed

    def _make_room(self) -> None:
        """Every tier that is too full is poured into the next."""
        for at, room in enumerate(TIER_ROOMS):
            if len(self._tiers[at].filters) <= room:
                return
            if at + 1 == len(self._tiers):
                self._tiers.append(_Tier())
            self._tiers[at + 1].pour(self._tiers[at].filters)
            self._tiers[at] = _Tier()


def _compile(filters: Mapping[int, Filter], schema: Schema) -> Program:
    names = sorted(filters)
    return compile_program([filters[name] for name in names], schema, names=names)


class _Marked:
    """A program in which subscriptions die: the bitmap of the dead. The names are copied when one
    has died since they were last taken, so that a view that has them keeps what it had."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.living_count = program.subscription_count
        self._dead = np.zeros(program.subscription_count, bool)
        self._part: Part | None = None

    def __contains__(self, name: int) -> bool:
        names, at = self.program.names, self._place(name)
        return at < names.size and bool(names[at] == name) and not self._dead[at]

    def _place(self, name: int) -> int:
        # A Python int would make NumPy copy all names as 64-bit integers first.
        return int(np.searchsorted(self.program.names, np.int32(name)))

    def remove(self, name: int) -> None:
        self._dead[self._place(name)] = True
        self.living_count -= 1
        self._part = None

    def living_names(self) -> Ints:
        return self.program.names[~self._dead]

    def part(self) -> Part:
        if self._part is None:
            program, subscriptions = self.program, self.program.forest.subscriptions
            names = program.names[subscriptions]
            dead = self._dead.copy()
            at_ends = np.where(dead[subscriptions], np.int32(-1), names)
            always = program.always[~dead[program.always]]
            self._part = Part(program, dead, at_ends, program.names[always])
        return self._part


@dataclass(slots=True, eq=False)
class _Tier:
    """Subscriptions that came one by one, compiled when they are asked for."""

    filters: dict[int, Filter] = field(default_factory=dict)
    _marked: _Marked | None = None

    def pour(self, more: Mapping[int, Filter]) -> None:
        self.filters.update(more)
        self._marked = None

    def remove(self, name: int) -> None:
        del self.filters[name]
        if self._marked is not None:
            self._marked.remove(name)

    def marked(self, schema: Schema) -> _Marked:
        if self._marked is None:
            self._marked = _Marked(_compile(self.filters, schema))
        return self._marked
