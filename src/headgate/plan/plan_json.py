"""Plans as data for JSON: every distinct node once, with a number, inputs before their users.

{"feeds": {"RockConcertStream": 3},
 "counts": {"sources": 2, "filters": 1, "unions": 1},
 "nodes": [{"id": 0, "op": "source", "name": "EventAnnounces", "inputs": []}, …]}
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.language.unparse import unparse_filter, unparse_pattern
from headgate.plan.algebra import (
    FeedRef,
    Filter,
    Join,
    Match,
    Plan,
    Source,
    TableJoin,
    Transform,
    Union,
    Window,
    bottom_up,
    inputs_of,
)
from headgate.plan.plan_text import counts_of

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
        case TableJoin(on, sides):
            return {"op": "table join", "on": list(on), "tables": [side.name for side in sides]}
        case Transform(stylesheet):
            return {"op": "transform", "stylesheet": stylesheet}
