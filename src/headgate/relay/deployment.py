"""Which relay computes, receives and forwards what: a configuration, cut by site ([Delta §2.2]).

A view has a home, the site whose subscribers get it. It is computed there, or at the site of one of
the views that it reads (network/physical_plans.py). From that follows what is sent where:

    v5 from v2 ⋈ v3, computed at v2's home        n3 ──v3──► n2 ──v5──► n5

    computed here       from views that are here, or from the document at the source's site
    received            from one other site: the home, or the site that computes the view
    sent                to its home, and from there to all sites that compute something from it

A view goes from one site to another once, however many views are computed from it there.

Invariant: at every site a view has exactly one origin, and what is sent and what is received are
the same triples (view, from, to). Views have no cycle; sites may send to each other in both
directions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headgate.model.atoms import Relation
from headgate.model.errors import HeadgateError, RelayError, did_you_mean
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.network.configuration import SOURCE, Configuration
from headgate.network.configuration_problem import Ints
from headgate.network.explain_network import ViewLabel
from headgate.network.physical_plans import AT_VIEW


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RelayView:
    """A view at its home. One that reads nothing is evaluated by the source."""

    name: str
    site: str
    pattern: PatternNode
    reads: tuple[int, ...] = ()
    computed_at: str = ""
    """A site; the view's own, if none is named."""

    def __str__(self) -> str:
        return str(ViewLabel(self.name, self.site))


@dataclass(slots=True)
class LocalView:
    """What one site has to do with a view."""

    number: int
    reads: tuple[int, ...] = ()
    """What it is computed from here."""
    supplier: str = ""
    """The site that sends it here; none, if it is computed here."""
    readers: list[str] = field(default_factory=list)
    used_by: list[int] = field(default_factory=list)
    """The views that are computed from it here."""
    is_home: bool = False

    @property
    def confirmations(self) -> int:
        """How many must have used it before it is no longer needed."""
        return len(self.readers) + len(self.used_by) + self.is_home


@dataclass(frozen=True, slots=True)
class SitePart:
    site: str
    views: dict[int, LocalView]

    @property
    def suppliers(self) -> list[str]:
        return sorted({each.supplier for each in self.views.values() if each.supplier})

    @property
    def readers(self) -> list[str]:
        return sorted({site for each in self.views.values() for site in each.readers})


@dataclass(frozen=True)
class Deployment:
    network: str
    source: str
    addresses: Mapping[str, Address]
    views: tuple[RelayView, ...]

    def __post_init__(self) -> None:
        _check(self)

    def computed_at(self, number: int) -> str:
        view = self.views[number]
        return (view.computed_at or view.site) if view.reads else self.source

    @cached_property
    def parts(self) -> dict[str, SitePart]:
        """What each site has to do."""
        parts = {site: SitePart(site, {}) for site in self.addresses}
        for number, view in enumerate(self.views):
            place = self.computed_at(number)
            _local(parts, place, number).reads = view.reads
            _send(parts, number, place, view.site)
            parts[view.site].views[number].is_home = True
        for number, view in enumerate(self.views):
            place = self.computed_at(number)
            for member in view.reads:
                if member not in parts[place].views:
                    _send(parts, member, self.views[member].site, place)
                parts[place].views[member].used_by.append(number)
        return parts

    @cached_property
    def plan_id(self) -> str:
        """Relays talk to each other only if they have the same plan."""
        views = [
            (each.name, each.site, json_of_pattern(each.pattern), each.reads, each.computed_at)
            for each in self.views
        ]
        told = json.dumps([self.network, self.source, sorted(self.addresses), views])
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def _local(parts: Mapping[str, SitePart], site: str, number: int) -> LocalView:
    return parts[site].views.setdefault(number, LocalView(number))


def _send(parts: Mapping[str, SitePart], number: int, start: str, end: str) -> None:
    if start != end:
        parts[start].views[number].readers.append(end)
        _local(parts, end, number).supplier = start


def _check(deployment: Deployment) -> None:
    sites, views = deployment.addresses, deployment.views
    if deployment.source not in sites:
        raise RelayError(f"the source '{deployment.source}' is not among the sites")
    if not views:
        raise RelayError("there are no views")
    known: set[tuple[str, str]] = set()
    for number, view in enumerate(views):
        for site in (view.site, deployment.computed_at(number)):
            if site not in sites:
                hint = did_you_mean(site, sites)
                raise RelayError(
                    f"view {view} needs site '{site}', which is not among the sites"
                    + (f": {hint}" if hint else "")
                )
        if (view.name, view.site) in known:
            raise RelayError(f"there are two views {view}")
        known.add((view.name, view.site))
        if not all(0 <= each < len(views) for each in view.reads):
            raise RelayError(f"view {view} reads a view that is not among 0 … {len(views) - 1}")
        if len(set(view.reads)) < len(view.reads):
            raise RelayError(f"view {view} reads a view twice")
    _check_acyclic(views)


def _check_acyclic(views: Sequence[RelayView]) -> None:
    missing = [len(view.reads) for view in views]
    readers: list[list[int]] = [[] for _ in views]
    for number, view in enumerate(views):
        for member in view.reads:
            readers[member].append(number)
    fed = [number for number, count in enumerate(missing) if not count]
    for number in fed:  # grows while it is walked
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                fed.append(reader)
    if len(fed) < len(views):
        stuck = next(view for view, count in zip(views, missing, strict=True) if count)
        raise RelayError(f"view {stuck} is not fed from the source: there is a cycle")


def deployment_of(
    configuration: Configuration,
    patterns: Mapping[int, PatternNode],
    labels: Sequence[ViewLabel],
    *,
    join_at: Ints,
    addresses: Mapping[str, Address],
    network: str = "headgate",
    source: str = "source",
) -> Deployment:
    """A planned configuration as what relays run: of these views, which read no others."""
    rewritings = configuration.problem.rewritings
    number = {view: at for at, view in enumerate(patterns)}
    views = []
    for view, pattern in patterns.items():
        r, label, members = int(configuration.choice[view]), labels[view], list[int]()
        place = ""
        if r != SOURCE:
            members = rewritings.members[slice(*rewritings.member_start[r : r + 2])].tolist()
            if join_at[r] != AT_VIEW:
                place = labels[members[int(join_at[r])]].site
        reads = tuple(number[each] for each in members)
        views.append(RelayView(label.name, label.site, pattern, reads, place))
    return Deployment(network, source, addresses, tuple(views))


# Tree patterns as JSON: ["item", "//", ["val"], [["=", "ACME"]], [ … children … ]]

DEPTH_MAX = 64
MARKS = tuple(Mark)

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def json_of_pattern(node: PatternNode) -> Json:
    marks: list[Json] = [mark.value for mark in MARKS if mark in node.marks]
    predicates: list[Json] = []
    for each in node.predicates:
        assert isinstance(each.value, str | int | float), "a node is compared with text or number"
        predicates.append([each.relation.value, each.value])
    children = [json_of_pattern(child) for child in node.children]
    return [node.label, node.axis.value, marks, predicates, children]


def pattern_of_json(found: Json, *, depth: int = 0) -> PatternNode:
    if depth > DEPTH_MAX:
        raise RelayError(f"a pattern is more than {DEPTH_MAX} nodes deep")
    match found:
        case [str(label), str(axis), list(marks), list(predicates), list(children)]:
            try:
                return PatternNode(
                    label,
                    Axis(axis),
                    marks=frozenset(Mark(str(mark)) for mark in marks),
                    predicates=tuple(map(_predicate, predicates)),
                    children=tuple(pattern_of_json(each, depth=depth + 1) for each in children),
                )
            except RelayError:
                raise
            except (ValueError, HeadgateError) as error:
                raise RelayError(f"the pattern's node '{label}': {error}") from None
    raise RelayError("a pattern's node is label, axis, marks, predicates and children")


def _predicate(found: Json) -> ValuePredicate:
    match found:
        case [str(relation), str() | int() | float() as value]:
            return ValuePredicate(Relation(relation), value)
    raise RelayError("a predicate is a relation and a text or number")
