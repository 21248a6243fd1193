"""A program that changes: adding or removing one subscription does not compile a million again.

    main     1,000,000 subscriptions, compiled or mapped from a file    removed ones are marked
    tier 2         960 added since                                      … in the tiers, too
    tier 1          41 added since
    tier 0           3 added since                                      compiled for the next batch

The tiers work as in a log-structured merge tree. A new subscription goes to tier 0. A tier that is
full is merged into the next one, which holds many times as many and is compiled for the next batch:
each subscription is compiled a few times before it reaches the main program, and a batch passes
through few programs. *Compaction* puts all subscriptions into a new main program, while batches go
on with the old one. A subscription *lives* if it was added and not removed.

Invariants. After any history of changes, a batch matches what a program compiled of the living
subscriptions would match. A subscription that was added before a batch is seen by it, and one that
was removed is not. A view never changes: what is added later is in the next view.

Cost: adding costs a dictionary entry, and its share of compiling the tiers; removing costs a binary
search, and for the next batch a copy of the names of one program. Matching costs a pass over each
program: the rows of a small one are cheap (0.3 µs per item for 10,000 subscriptions), and removed
subscriptions cost as much as living ones, which is what `gain` estimates.

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
from headgate.match.bit_rows import Ints, Longs
from headgate.match.matcher import BatchMatches, LabelledProgram, ProgramMatcher, match_programs
from headgate.match.program import Program, compile_program
from headgate.model.errors import NameTaken, UnknownName
from headgate.model.filters import Filter
from headgate.model.schema import Schema

TIER_ROOMS = (8, 64, 1_024, 16_384, 262_144)
"""How many subscriptions a tier has room for; the one behind the last of these takes all others. A
small one is compiled often, a large one makes batches pass through fewer programs."""
NAME_MAX = 2**31 - 1
GAIN_WANTED = 0.2
"""Compaction is worthwhile from this share of the matching time on."""
PASS_COST = 0.05
"""What a pass through a tier costs, as a share of a pass through a large main program."""

Load = Callable[[Sequence[int]], Iterable[Filter]]
"""The filters of subscriptions, in the same order; the catalog knows them."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The living subscriptions at one instant. Immutable, so thread-safe."""

    parts: tuple[LabelledProgram, ...]

    def match(self, batch: Batch) -> BatchMatches:
        """For each item, the names of the subscriptions that it matches."""
        return match_programs(self.parts, batch)

    def count(self, batch: Batch) -> tuple[Ints, Longs]:
        """The names of the living subscriptions, ascending, and how many items match each."""
        names, counts = [], []
        for part in self.parts:
            names.append(part.program.names[~part.dead])
            counts.append(ProgramMatcher(part.program).count(batch).by_subscription()[~part.dead])
        order = np.argsort(np.concatenate(names), kind="stable")
        return np.concatenate(names)[order], np.concatenate(counts)[order]


class LivingProgram:
    """The subscriptions on one source as they are added and removed. Thread-safe: matching does not
    wait for changes, nor changes for matching or compaction."""

    def __init__(self, schema: Schema, main: Program | None = None) -> None:
        self._schema = schema
        self._lock = threading.RLock()
        self._main = _MarkedProgram(compile_program([], schema) if main is None else main)
        self._sealed: list[_Tier] = []
        """Tiers that a compaction is putting into a new main program: nothing is added to them."""
        self._tiers: list[_Tier] = []
        self._removed_meanwhile: list[int] = []
        """Subscriptions removed from the main program or a sealed tier since a compaction began."""

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
        """Add a subscription; the next batch sees it."""
        self.add_many({name: filter_})

    def add_many(self, filters: Mapping[int, Filter]) -> None:
        """Add subscriptions, all of them or none; the next batch sees them."""
        with self._lock:
            for name in filters:
                assert 0 <= name <= NAME_MAX, f"a subscription's number is from 0 to {NAME_MAX:,}"
                if name in self:
                    raise NameTaken(f"subscription {name} lives already; remove it first")
            if not self._tiers:
                self._tiers.append(_Tier())
            self._tiers[0].merge(filters)
            self._make_room()

    def remove(self, name: int) -> None:
        """Remove a subscription; the next batch does not see it."""
        with self._lock:
            tier = next((each for each in self._all_tiers() if name in each.filters), None)
            if tier is None and name not in self._main:
                raise UnknownName(f"there is no subscription {name}")
            (self._main if tier is None else tier).remove(name)
            if tier not in self._tiers:
                self._removed_meanwhile.append(name)

    def view(self) -> View:
        """The subscriptions that live now. Those added since the last view are compiled here."""
        with self._lock:
            tiers = [tier for tier in self._all_tiers() if tier.filters]
            marked = [self._main, *(tier.marked(self._schema) for tier in tiers)]
            return View(tuple(program.labelled() for program in marked))

    def match(self, batch: Batch) -> BatchMatches:
        """For each item, the names of the living subscriptions that it matches."""
        return self.view().match(batch)

    def gain(self) -> float:
        """The share of the matching time that compaction would save, as an estimate: a pass for
        each tier, and what the dead cost. Compact where it is above GAIN_WANTED."""
        with self._lock:
            dead = 1 - self._main.living_count / max(self._main.program.subscription_count, 1)
            return dead + PASS_COST * sum(1 for tier in self._all_tiers() if tier.filters)

    def compact(self, load: Load) -> Program:
        """Put all living subscriptions into one new main program, which is returned.

        It takes as long as compiling takes, and is meant for a thread of its own. Changes made
        meanwhile are kept. `load` gives the filters of the subscriptions in the main program. If it
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
            self._main, self._sealed = _MarkedProgram(compiled), []
            for name in self._removed_meanwhile:
                self._main.remove(name)
        return compiled

    def _all_tiers(self) -> list[_Tier]:
        return self._tiers + self._sealed

    def _make_room(self) -> None:
        """Merge every tier that is too full into the next."""
        for at, room in enumerate(TIER_ROOMS):
            if len(self._tiers[at].filters) <= room:
                return
            if at + 1 == len(self._tiers):
                self._tiers.append(_Tier())
            self._tiers[at + 1].merge(self._tiers[at].filters)
            self._tiers[at] = _Tier()


def _compile(filters: Mapping[int, Filter], schema: Schema) -> Program:
    names = sorted(filters)
    return compile_program([filters[name] for name in names], schema, names=names)


class _MarkedProgram:
    """A program and which of its subscriptions have been removed. The names are copied if one has
    been removed since they were last given out, so that a view that has them never changes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.living_count = program.subscription_count
        self._dead = np.zeros(program.subscription_count, bool)
        self._labelled: LabelledProgram | None = None

    def __contains__(self, name: int) -> bool:
        names, at = self.program.names, self._place(name)
        return at < names.size and bool(names[at] == name) and not self._dead[at]

    def _place(self, name: int) -> int:
        # A Python int would make NumPy copy all names as 64-bit integers first.
        return int(np.searchsorted(self.program.names, np.int32(name)))

    def remove(self, name: int) -> None:
        self._dead[self._place(name)] = True
        self.living_count -= 1
        self._labelled = None

    def living_names(self) -> Ints:
        return self.program.names[~self._dead]

    def labelled(self) -> LabelledProgram:
        if self._labelled is None:
            program, subscriptions = self.program, self.program.forest.subscriptions
            names = program.names[subscriptions]
            dead = self._dead.copy()
            at_ends = np.where(dead[subscriptions], np.int32(-1), names)
            always = program.always[~dead[program.always]]
            self._labelled = LabelledProgram(program, dead, at_ends, program.names[always])
        return self._labelled


@dataclass(slots=True, eq=False)
class _Tier:
    """Subscriptions that were added one by one, compiled when a view needs them."""

    filters: dict[int, Filter] = field(default_factory=dict)
    _marked: _MarkedProgram | None = None

    def merge(self, more: Mapping[int, Filter]) -> None:
        self.filters.update(more)
        self._marked = None

    def remove(self, name: int) -> None:
        del self.filters[name]
        if self._marked is not None:
            self._marked.remove(name)

    def marked(self, schema: Schema) -> _MarkedProgram:
        if self._marked is None:
            self._marked = _MarkedProgram(_compile(self.filters, schema))
        return self._marked
