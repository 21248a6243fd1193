"""The stream algebra ([RoSeS §3.2]), extended by tree patterns and table joins.

    sign          node        output
    s             Source      the items of a source
    f             FeedRef     the items of a feed, by name; composition replaces it
    σ[F](s)       Filter      the items of s that satisfy F
    ∪(s, …)       Union       the items of all inputs; without inputs it is the empty plan ∅
    ω[size](s)    Window      for each time t the items of s that are valid at t
    ⋈ id[P](s,ω)  Join        the items of s that satisfy P with some item of the window, annotated
    μ[pattern](s) Match       the items of s whose document embeds the tree pattern
    ⋈ₙ[on](s, …)  NaturalJoin   the natural join of tables ([Select-Joins §2.2])
    τ[xsl](s)     Transform   the items of s, transformed; only on top of a plan

All but ⋈ₙ and τ are conservative: they neither make items nor change attributes. That is why
filters commute with them.

A join keeps its id wherever a rewrite moves it, because the id names the annotation entry that it
makes. Plans are values: two plans are equal if they have the same structure. Plans that share parts
are graphs, and walking one as a tree can take exponential time. So each node computes its hash
once, when it is made, and all walks use `bottom_up`, which visits each distinct node once without
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headgate.model.duration import WindowSize
from headgate.model.filters import Filter as Predicate
from headgate.model.tree_pattern import PatternNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """What all nodes share: equality by structure, with the hash kept."""

    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, *self._parts())))

    def _parts(self) -> tuple[object, ...]:
        names: tuple[str, ...] = type(self).__match_args__
        return tuple(getattr(self, name) for name in names)

    def __repr__(self) -> str:
        """The node without its inputs: a graph written as a tree can be exponentially long."""
        shown = (part if isinstance(part, str) else "…" for part in self._parts())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node) or type(self) is not type(other):
            return False
        return self._hash == other._hash and self._parts() == other._parts()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Source(Node):
    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FeedRef(Node):
    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Filter(Node):
    filter: Predicate
    input: Plan


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Union(Node):
    inputs: tuple[Plan, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window(Node):
    size: WindowSize
    input: Plan


PARTNERS_MAX = 100
"""How many items of the window a joined item is annotated with: the latest ones, then by source and
id. Without a limit, `with $a[x != window.x]` would write the whole window behind each item."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Join(Node):
    id: str
    predicate: Predicate
    primary: Plan
    window: Window


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match(Node):
    id: str
    pattern: PatternNode
    input: Plan


@dataclass(frozen=True, slots=True)
class Side:
    """What a table join knows of one input: its name and the attributes that it declares."""

    name: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NaturalJoin(Node):
    """The natural join on the attributes `on`; the result is named by `joined_names`."""

    on: tuple[str, ...]
    sides: tuple[Side, ...]
    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.sides) == len(self.inputs), "one side for each input"
        Node.__post_init__(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Transform(Node):
    stylesheet: str
    input: Plan


Plan = Source | FeedRef | Filter | Union | Window | Join | Match | NaturalJoin | Transform

EMPTY = Union(())
"""∅: the plan that never outputs anything."""


def inputs_of(plan: Plan) -> tuple[Plan, ...]:
    match plan:
        case Source() | FeedRef():
            return ()
        case Union() | NaturalJoin():
            return plan.inputs
        case Join():
            return plan.primary, plan.window
        case _:
            return (plan.input,)


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same operator over other inputs; the node itself if the inputs are the same nodes."""
    if all(new is old for new, old in zip(inputs, inputs_of(plan), strict=True)):
        return plan
    match plan:
        case Source() | FeedRef():
            return plan
        case Filter():
            return Filter(plan.filter, inputs[0])
        case Union():
            return Union(inputs)
        case Window():
            return Window(plan.size, inputs[0])
        case Join():
            primary, window = inputs
            assert isinstance(window, Window), "a join has a window on its right"
            return Join(plan.id, plan.predicate, primary, window)
        case Match():
            return Match(plan.id, plan.pattern, inputs[0])
        case NaturalJoin():
            return NaturalJoin(plan.on, plan.sides, inputs)
        case Transform():
            return Transform(plan.stylesheet, inputs[0])


def bottom_up(plans: Iterable[Plan]) -> list[Plan]:
    """Every distinct node below the plans, inputs before those that use them, left to right."""
    done: dict[Plan, None] = {}
    stack: list[tuple[Plan, bool]] = [(plan, False) for plan in reversed(list(plans))]
    while stack:
        node, inputs_done = stack.pop()
        if node in done:
            continue
        if inputs_done:
            done[node] = None
        else:
            stack.append((node, True))
            stack.extend((each, False) for each in reversed(inputs_of(node)) if each not in done)
    return list(done)


def rebuild(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with every node changed, inputs first; equal nodes are changed once."""
    changed: dict[Plan, Plan] = {}
    for node in bottom_up([plan]):
        changed[node] = change(with_inputs(node, tuple(changed[each] for each in inputs_of(node))))
    return changed[plan]
