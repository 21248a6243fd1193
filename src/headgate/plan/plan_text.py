"""Plans as text and as JSON.

As text, each node has a line, and its inputs stand below it, further to the right:

    r0 := σ [title contains 'rock']      a node that is used more than once is bound first
      EventAnnounces
    σ [description contains 'concert']
      ∪
        r0
        FollowedTwitterStream            sources are named where they are used

As JSON, each distinct node has a number; inputs come before the nodes that use them:

    {"feeds": {"RockConcertStream": 3},
     "counts": {"sources": 2, "filters": 1, "unions": 1},
     "nodes": [{"id": 0, "op": "source", "name": "EventAnnounces", "inputs": []}, …]}

Cost: linear in the number of distinct nodes. A plan is walked as a graph; as a tree it can be
exponentially larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from headgate.language.unparse import unparse_filter, unparse_pattern
from headgate.plan.algebra import (
    EMPTY,
    FeedRef,
    Filter,
    Join,
    Match,
    NaturalJoin,
    Node,
    Plan,
    Source,
    Transform,
    Union,
    Window,
    bottom_up,
    inputs_of,
)

INDENT = "  "
Labels = Mapping[Plan, str]

_WORDS: dict[type[Node], tuple[str, str]] = {
    Source: ("source", "sources"),
    FeedRef: ("reference", "references"),
    Filter: ("filter", "filters"),
    Match: ("match", "matches"),
    Window: ("window", "windows"),
    Join: ("join", "joins"),
    NaturalJoin: ("table join", "table joins"),
    Union: ("union", "unions"),
    Transform: ("transformation", "transformations"),
}


def plan_text(plan: Plan, labels: Labels | None = None) -> str:
    """One plan. A label is written behind the node that it is for."""
    return "\n".join(_Writer([plan], labels or {}).lines_of_all())


def plans_text(plans: Mapping[str, Plan], labels: Labels | None = None) -> str:
    """Several plans by name; what they share is bound once, before all of them."""
    writer = _Writer(plans.values(), labels or {})
    lines = list(writer.bindings())
    for name, plan in plans.items():
        lines += [name, *(INDENT + line for line in writer.use(plan))]
    return "\n".join(lines)


def counts_of(plans: Iterable[Plan]) -> dict[str, int]:
    """How many distinct nodes of each kind there are, in the order of the levels."""
    kinds: list[type[Node]] = [type(node) for node in bottom_up(plans) if node != EMPTY]
    counts = Counter(kinds)
    return {words[1]: counts[kind] for kind, words in _WORDS.items() if counts[kind]}


def counts_text(plans: Iterable[Plan]) -> str:
    """`3 sources, 2 filters, 1 join`"""
    singular = {many: one for one, many in _WORDS.values()}
    counts = counts_of(plans).items()
    return ", ".join(f"{n:,} {singular[words] if n == 1 else words}" for words, n in counts) or "∅"


def sign(plan: Plan) -> str:
    """What a node is, without its inputs."""
    match plan:
        case Source(name):
            return name
        case FeedRef(name):
            return f"feed {name}"
        case Filter(filter_):
            return f"σ [{unparse_filter(filter_)}]"
        case Union(inputs):
            return "∪" if inputs else "∅"
        case Window(size):
            return f"ω last {size}"
        case Join(id_, predicate):
            return f"⋈ {id_} [{unparse_filter(predicate)}]"
        case Match(_, pattern):
            return f"μ {unparse_pattern(pattern)}"
        case NaturalJoin(on):
            return f"⋈ₙ on {', '.join(on)}"
        case Transform(stylesheet):
            return f"τ '{stylesheet}'"


class _Writer:
    """Writes plans that share their parts."""

    def __init__(self, plans: Iterable[Plan], labels: Labels) -> None:
        self.plans = list(plans)
        self.labels = labels
        self.nodes = bottom_up(self.plans)
        uses = Counter(each for node in self.nodes for each in inputs_of(node))
        uses.update(self.plans)
        shared = (node for node in self.nodes if uses[node] > 1 and inputs_of(node))
        self.names = {node: f"r{number}" for number, node in enumerate(shared)}

    def lines_of_all(self) -> Iterator[str]:
        yield from self.bindings()
        for plan in self.plans:
            yield from self.use(plan)

    def bindings(self) -> Iterator[str]:
        for node, name in self.names.items():
            first, *lines = self._define(node, labelled=True)
            yield f"{name} := {first}"
            yield from lines

    def use(self, plan: Plan) -> list[str]:
        """The lines for a plan where it is used: its name if it is bound."""
        return [self.names[plan]] if plan in self.names else self._define(plan, labelled=False)

    def _define(self, plan: Plan, *, labelled: bool) -> list[str]:
        """A node and all below it. The stack takes the place of recursion: plans may be deep."""
        lines: list[str] = []
        stack = [(plan, 0)]
        while stack:
            node, depth = stack.pop()
            if node in self.names and depth > 0:
                lines.append(INDENT * depth + self.names[node])
                continue
            has_label = node in self.labels and (labelled or depth > 0)
            label = f"  -- {self.labels[node]}" if has_label else ""
            lines.append(INDENT * depth + sign(node) + label)
            stack.extend((each, depth + 1) for each in reversed(inputs_of(node)))
        return lines


# --- JSON ----------------------------------------------------------------------------------------

Json = dict[str, object]


def plans_json(plans: Mapping[str, Plan]) -> Json:
    nodes = bottom_up(plans.values())
    ids = {node: number for number, node in enumerate(nodes)}
    return {
        "feeds": {name: ids[plan] for name, plan in plans.items()},
        "counts": counts_of(plans.values()),
        "nodes": [
            {"id": ids[node], **_fields(node), "inputs": [ids[each] for each in inputs_of(node)]}
            for node in nodes
        ],
    }


def _fields(node: Plan) -> Json:
    match node:
        case Source(name):
            return {"op": "source", "name": name}
        case FeedRef(name):
            return {"op": "reference", "name": name}
        case Filter(filter_):
            return {"op": "filter", "filter": unparse_filter(filter_)}
        case Union():
            return {"op": "union"}
        case Window(size):
            return {"op": "window", "last": str(size)}
        case Join(id_, predicate):
            return {"op": "join", "join": id_, "with": unparse_filter(predicate)}
        case Match(id_, pattern):
            return {"op": "match", "match": id_, "pattern": unparse_pattern(pattern)}
        case NaturalJoin(on, sides):
            return {"op": "table join", "on": list(on), "tables": [side.name for side in sides]}
        case Transform(stylesheet):
            return {"op": "transform", "stylesheet": stylesheet}
