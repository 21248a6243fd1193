"""`explain`: the plan of a feed as it is written and in normal form, as text and as JSON.

    feed RockConcertStream

    as written: 3 sources, 2 filters, 1 union
      σ [description contains 'concert']
        ∪
          FriendsFacebookStream
          σ [title contains 'rock']
            EventAnnounces
          FollowedTwitterStream

    normalised: 3 sources, 3 filters, 1 union
      ∪
        σ [description contains 'concert']
          FriendsFacebookStream
        …

Where the plan of another feed begins, its name follows the node: `-- RockConcertStream`. The counts
are of distinct nodes: a shared node counts once, as it is executed once. For tables with payloads
there is a third plan, `payload split` (split_payload.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import indent

from headgate.language.schemas import Definitions
from headgate.plan.algebra import Plan, Source, inputs_of
from headgate.plan.normalize import normalize_all
from headgate.plan.plan_text import INDENT, Labels, counts_text, plan_text, plans_json, plans_text
from headgate.plan.split_payload import split_payload
from headgate.plan.translate import compose_all, feed_names, feeds_below


@dataclass(frozen=True, slots=True)
class PlanExplanation:
    """The plans of one or more feeds, as written and in normal form."""

    before: Mapping[str, Plan]
    after: Mapping[str, Plan]
    labels: Labels = field(default_factory=dict, repr=False)
    """Nodes of `before` at which the plan of another feed begins."""
    split: Mapping[str, Plan] = field(default_factory=dict)
    """The plans of feeds over tables with payloads, with the payloads split off."""

    def text(self) -> str:
        """For people: the plans, indented."""
        is_single = len(self.before) == 1
        title = (
            _title(*next(iter(self.before.items()))) if is_single else f"{len(self.before):,} feeds"
        )
        sections = [
            _section("as written", self.before, self.labels, alone=is_single),
            _section("normalised", self.after, {}, alone=is_single),
        ]
        if self.split:
            sections.append(_section("payload split", self.split, {}, alone=is_single))
        return "\n".join([f"{title}\n", *sections])

    def json(self) -> str:
        """For machines: the same, with a number for each distinct node."""
        plans = {"before": plans_json(self.before), "after": plans_json(self.after)}
        if self.split:
            plans["payload_split"] = plans_json(self.split)
        return json.dumps(plans, ensure_ascii=False, indent=2)


def explain(name: str, definitions: Definitions) -> PlanExplanation:
    """The plan of one feed, materialised feed or source."""
    return _explain([name], definitions)


def explain_all(definitions: Definitions) -> PlanExplanation:
    """The plans of all feeds together; shared nodes are bound once for all of them."""
    return _explain(feed_names(definitions), definitions)


def _explain(names: Iterable[str], definitions: Definitions) -> PlanExplanation:
    names = list(names)
    below = feeds_below(names, definitions)
    # All in one call, so that a feed's plan is the very node that its users hold.
    composed = compose_all(dict.fromkeys([*names, *below]), definitions)
    before = {name: composed[name] for name in names}
    labels = {composed[name]: name for name in below if inputs_of(composed[name])}
    after = normalize_all(before)
    splits = {name: split_payload(plan, definitions) for name, plan in after.items()}
    split = {name: each.plan for name, each in splits.items() if each is not None}
    return PlanExplanation(before, after, labels, split)


def _title(name: str, plan: Plan) -> str:
    return f"{'source' if plan == Source(name) else 'feed'} {name}"


def _section(title: str, plans: Mapping[str, Plan], labels: Labels, *, alone: bool) -> str:
    if alone:
        (plan,) = plans.values()
        body = plan_text(plan, labels)
    else:
        body = plans_text(plans, labels)
    return f"{title}: {counts_text(plans.values())}\n{indent(body, INDENT)}\n"
