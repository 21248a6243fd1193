"""Statements → plans over sources: `translate` one feed, `compose` feeds [RoSeS §3, §4.1].

`translate` makes the plan of one `create feed`:

    from (A as $a | B) as $r  where $a[F] and $r[G]     σ[G](σ[F](A) ∪ B)
    … match P                                           μ[P](…) over the whole from clause
    … join last W on S with $r[J]                       ⋈[J](…, ω[W](S)) over what $r names
    from S as $s join R as $r on K where $s[F]          ⋈ₙ[K](σ[F](S), R)

A condition stands directly over what its variable names, below the joins on the same variable.
Conditions on a join's secondary group stand below its window. A join whose variable names an inner
group or member joins only that; several joins on one variable stack in the order written. Other
feeds stay references (`FeedRef`).

`compose` replaces each reference by the plan of that feed:

    p2 = σ[F](s1 ∪ s2)
    p3 = σ[G](p2 ∪ s3)    becomes    σ[G](σ[F](s1 ∪ s2) ∪ s3)

A feed that is used twice is composed once, and both users hold the same node. So the result is a
graph whose size is that of the statements. Composition ends at sources and at materialised feeds,
which are sources of their own; the plan *of* a materialised feed is τ over its feed's plan.

PlanError: a name does not exist, a feed is defined through itself (the cycle is named), or feeds
are nested deeper than FEED_DEPTH_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from headgate.language.schemas import Definitions, row_schema
from headgate.language.statements import (
    CreateFeed,
    FromClause,
    Group,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterStream,
    RegisterTable,
    StreamRange,
    StreamRef,
    TableJoin,
    WindowJoin,
)
from headgate.model.errors import PlanError, did_you_mean
from headgate.plan import algebra
from headgate.plan.algebra import FeedRef, Plan, Side, Transform, bottom_up, rebuild
from headgate.plan.variable_scopes import conjoin_renamed

FEED_DEPTH_MAX = 128
"""How many feeds may lie over each other."""


def translate(feed: CreateFeed, definitions: Definitions) -> Plan:
    """The feed's plan over sources and references to other feeds."""
    return _Translation(feed, definitions).plan()


def reference(name: str, definitions: Definitions) -> Plan:
    """A source or feed by its name. A materialised feed is a source: composition stops there."""
    match definitions.get(name):
        case CreateFeed():
            return algebra.FeedRef(str(name))
        case (
            RegisterFeed()
            | MaterializeFeed()
            | RegisterStream()
            | RegisterTable()
            | RegisterDocuments()
        ):
            return _source(str(name))
    hint = did_you_mean(name, definitions)
    raise PlanError(f"there is no source or feed '{name}'" + (f"; {hint}" if hint else ""))


@lru_cache(maxsize=65_536)
def _source(name: str) -> algebra.Source:
    # One node for one source: what is identical need not be compared.
    return algebra.Source(name)


@dataclass(frozen=True, slots=True)
class _Translation:
    feed: CreateFeed
    definitions: Definitions

    def plan(self) -> Plan:
        if any(isinstance(join, TableJoin) for join in self.feed.joins):
            return self._tables()
        clause = self.feed.from_clause
        plan = self._filtered(self._without_conditions(clause), {clause.variable, None})
        if self.feed.pattern is not None:
            plan = algebra.Match(f"{self.feed.name}#match", self.feed.pattern, plan)
        # A join over everything names the whole clause, or a variable that no inner part has.
        inner = set(_variables(clause)) - {clause.variable}
        everything = {join.primary for join in self._window_joins()} - inner
        return self._joined(plan, everything)

    def _tables(self) -> Plan:
        """Conditions on a table stand below the join; those without a variable, over its result."""
        joins = [join for join in self.feed.joins if isinstance(join, TableJoin)]
        tables = [self.feed.from_clause, *(join.table for join in joins)]
        joined = algebra.NaturalJoin(
            on=tuple(dict.fromkeys(str(name) for join in joins for name in join.on)),
            sides=tuple(self._side(table) for table in tables),
            inputs=tuple(self._clause(table) for table in tables),
        )
        return self._filtered(joined, {None})

    def _side(self, table: FromClause) -> Side:
        if not isinstance(table, StreamRef):
            raise PlanError(f"feed '{self.feed.name}' joins a union as a table; name it as a feed")
        names = row_schema(table.name, self.definitions).names
        return Side(str(table.name), tuple(map(str, names)))

    def _clause(self, clause: FromClause) -> Plan:
        """A member or group with the conditions and joins on its variable."""
        plan = self._without_conditions(clause)
        if clause.variable is None:
            return plan
        return self._joined(self._filtered(plan, {clause.variable}), {clause.variable})

    def _without_conditions(self, clause: FromClause) -> Plan:
        if isinstance(clause, StreamRef):
            return reference(clause.name, self.definitions)
        members = []
        for member in clause.members:
            assert not isinstance(member, StreamRange), "ranges are expanded before planning"
            members.append(self._clause(member))
        return members[0] if len(members) == 1 else algebra.Union(tuple(members))

    def _filtered(self, plan: Plan, variables: set[str | None]) -> Plan:
        filters = [each.filter for each in self.feed.where if each.variable in variables]
        return algebra.Filter(conjoin_renamed(filters), plan) if filters else plan

    def _joined(self, plan: Plan, primaries: set[str]) -> Plan:
        for number, join in enumerate(self._window_joins(), start=1):
            if join.primary in primaries:
                window = algebra.Window(join.window, self._clause(join.secondary))
                plan = algebra.Join(f"{self.feed.name}#{number}", join.predicate, plan, window)
        return plan

    def _window_joins(self) -> list[WindowJoin]:
        return [join for join in self.feed.joins if isinstance(join, WindowJoin)]


def _variables(clause: FromClause | StreamRange) -> Iterator[str]:
    """The variables of a clause and of everything within it."""
    if isinstance(clause, StreamRange):
        return
    if clause.variable is not None:
        yield clause.variable
    if isinstance(clause, Group):
        for member in clause.members:
            yield from _variables(member)


# --- composition ---------------------------------------------------------------------------------


def compose(name: str, definitions: Definitions) -> Plan:
    """The plan of a source or feed over sources only."""
    return compose_all([name], definitions)[name]


def compose_all(names: Iterable[str], definitions: Definitions) -> dict[str, Plan]:
    """The plans of all of these names; what they have in common is the same node."""
    roots = {name: _root(name, definitions) for name in names}
    composed: dict[str, Plan] = {}
    translated = _translate_below(roots.values(), definitions)

    def replace(node: Plan) -> Plan:
        return composed[node.name] if isinstance(node, FeedRef) else node

    for name in _sorted_by_use(translated):
        composed[name] = rebuild(translated[name], replace)
    return {name: rebuild(roots[name], replace) for name in roots}


def feed_names(definitions: Definitions) -> list[str]:
    """The feeds and materialised feeds among what is defined."""
    kinds = (CreateFeed, MaterializeFeed)
    return [name for name, each in definitions.items() if isinstance(each, kinds)]


def feeds_below(names: Iterable[str], definitions: Definitions) -> list[str]:
    """The feeds that are used in the plans of these names, themselves included."""
    return list(_translate_below([_root(name, definitions) for name in names], definitions))


def _root(name: str, definitions: Definitions) -> Plan:
    statement = definitions.get(name)
    if isinstance(statement, MaterializeFeed):
        return Transform(statement.stylesheet, reference(statement.feed, definitions))
    return reference(name, definitions)


def _translate_below(roots: Iterable[Plan], definitions: Definitions) -> dict[str, Plan]:
    """Every feed that is used below the roots, translated but not yet composed."""
    translated: dict[str, Plan] = {}
    waiting = [feed for root in roots for feed in _feeds_in(root)]
    while waiting:
        name = waiting.pop()
        statement = definitions[name]
        if name not in translated and isinstance(statement, CreateFeed):
            translated[name] = translate(statement, definitions)
            waiting += _feeds_in(translated[name])
    return translated


def _feeds_in(plan: Plan) -> list[str]:
    return [node.name for node in bottom_up([plan]) if isinstance(node, FeedRef)]


def _sorted_by_use(translated: dict[str, Plan]) -> list[str]:
    """The feeds so that each comes after those that it uses."""
    used = {name: _feeds_in(plan) for name, plan in translated.items()}
    try:
        order = list(TopologicalSorter(used).static_order())
    except CycleError as error:
        cycle = " → ".join(reversed(error.args[1]))
        raise PlanError(f"a feed is defined through itself: {cycle}") from None
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[each] for each in used[name]), default=0)
        if depth[name] > FEED_DEPTH_MAX:
            raise PlanError(
                f"feed '{name}' lies over more than {FEED_DEPTH_MAX} levels of feeds; "
                "materialise one of them with 'register feed … apply … as …'"
            )
    return order
