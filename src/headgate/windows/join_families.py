"""Joins that are evaluated together: the families of all plans, and how buckets split them.

    feed   primary                   join                        family
    F1     σ[title ∋ 'muse'](News)   title = window.title        3f0c…   one lookup per item,
    F2     σ[title ∋ 'rock'](News)     ω last 3 months (Photos)  3f0c…   one output with both feeds
    F3     News                      title ~ window.title  …     a51b…

Joins with the same window and predicate are a *family*. An item has the same partners in all of
them, so it is looked up once; which feeds have the output follows from the leaves (σ on a source)
that the item matches. For that, an annotation carries the id of the family, which is made from the
window and the predicate: the j of the entry (j, I) in [RoSeS §3.2] names the join that found I, and
joins of several feeds with the same window and predicate are the same join on other primary items.

A feed is in families if all its joins are on leaves, with windows of time over leaves. All other
feeds (nested joins, patterns, `last n items`) are *general*: JoinStage (stage.py) evaluates them.
A feed is never in both, so that JoinStage sees all its outputs and drops repetitions.

**Buckets.** Results do not depend on their number; a primary item is decided in one of them.

    window                                 window items              primary items
    every family has the same single       in the bucket of their    in the bucket of their value
    equality on it                         value
    anything else                          in all buckets            by position
    general feeds                          all in one bucket

A missing value equals nothing, so an item without a value is in no bucket. `bucket_of_value` is
the same in all processes, and equal values (1 and 1.0; 'Rock' and 'rock ') have the same bucket.

Rejected: several equalities of one predicate as a key (one of them is selective enough, the others
are tested); a window that is split for some of its families and replicated for others (held twice).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from zlib import crc32

from headgate.language.unparse import unparse_filter
from headgate.match.batch import microseconds
from headgate.model.duration import Duration
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import Join, Plan, Union, Window, rebuild
from headgate.plan.plan_text import plan_text
from headgate.windows.access_path import Access, EqualTo, choose_access
from headgate.windows.graph import branches_above_leaves, leaf_of, reason_unsupported
from headgate.windows.value_indexes import Key

GENERAL_BUCKET = 0


class FamilyKey(NamedTuple):
    window: Window
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class WindowRoute:
    """How the items of a window and the primary items of its families come to buckets."""

    window_attribute: str | None
    """The bucket of an item of the window is that of this value; None: it is in all buckets."""
    reason: str


@dataclass(slots=True)
class SplitPlans:
    """All plans of feeds, by the number of the feed, as families and general ones."""

    families: dict[FamilyKey, dict[tuple[str, Predicate], list[int]]] = field(default_factory=dict)
    """For each family its leaves (source and filter) with the feeds that read them."""
    general: dict[int, Plan] = field(default_factory=dict)
    unsupported: dict[int, str] = field(default_factory=dict)


def split_plans(plans: Mapping[int, Plan]) -> SplitPlans:
    """From normalised plans, with the ids that `with_family_ids` gives."""
    split = SplitPlans()
    for feed, plan in plans.items():
        branches = branches_above_leaves(plan)
        reason = reason_unsupported(branches)
        if reason:
            split.unsupported[feed] = reason
        elif all(is_in_family(branch) for branch in branches):
            _add_to_families(split, feed, branches)
        else:
            split.general[feed] = plan
    return split


def _add_to_families(split: SplitPlans, feed: int, branches: Iterable[Plan]) -> None:
    for branch in branches:
        assert isinstance(branch, Join)
        leaf = leaf_of(branch.primary)
        assert leaf is not None
        leaves = split.families.setdefault(FamilyKey(branch.window, branch.predicate), {})
        feeds = leaves.setdefault(leaf, [])
        if feed not in feeds[-1:]:
            feeds.append(feed)


def is_in_family(branch: Plan) -> bool:
    """Whether it joins a leaf with a window of time over leaves."""
    return (
        isinstance(branch, Join)
        and leaf_of(branch.primary) is not None
        and isinstance(branch.window.size, Duration)
        and all(leaf_of(each) is not None for each in window_inputs(branch.window))
    )


def window_inputs(window: Window) -> Sequence[Plan]:
    return window.input.inputs if isinstance(window.input, Union) else (window.input,)


# --- ids ------------------------------------------------------------------------------------------


class FamilyIds:
    """The ids of families; each text is made once, however many joins have it."""

    def __init__(self) -> None:
        self._ids: dict[FamilyKey, str] = {}
        self._window_texts: dict[Window, str] = {}

    def of(self, key: FamilyKey) -> str:
        """Twelve hexadecimal digits, the same in every process."""
        if key not in self._ids:
            if key.window not in self._window_texts:
                self._window_texts[key.window] = plan_text(key.window)
            text = f"{unparse_filter(key.predicate)}\n{self._window_texts[key.window]}"
            self._ids[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return self._ids[key]

    def window_id(self, window: Window) -> str:
        text = self._window_texts.setdefault(window, plan_text(window))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def plan_id(self, plan: Plan) -> str:
        """What distinguishes the joins of a plan; leaves on top of it are not joined."""
        texts = sorted(map(self._branch_text, branches_above_leaves(plan)))
        return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def _branch_text(self, branch: Plan) -> str:
        if isinstance(branch, Join) and (leaf := leaf_of(branch.primary)) is not None:
            key = FamilyKey(branch.window, branch.predicate)
            return f"{self.of(key)} {leaf[0]} {unparse_filter(leaf[1])}"
        return plan_text(branch)

    def with_family_ids(self, plan: Plan) -> Plan:
        """The plan in which each join has the id of its family, joins in windows included."""

        def change(node: Plan) -> Plan:
            if not isinstance(node, Join):
                return node
            id_ = self.of(FamilyKey(node.window, node.predicate))
            return Join(id_, node.predicate, node.primary, node.window)

        return rebuild(plan, change)


# --- buckets --------------------------------------------------------------------------------------


def equality_of(access: Access) -> EqualTo | None:
    """The one equality that finds the candidates, if that is how they are found."""
    path = access.paths[0]
    return path if len(access.paths) == 1 and isinstance(path, EqualTo) else None


def route_windows(families: Iterable[FamilyKey]) -> dict[Window, WindowRoute]:
    """How each window is split, from all families that use it."""
    attributes: dict[Window, set[str | None]] = {}
    for key in families:
        equality = equality_of(choose_access(key.predicate))
        attributes.setdefault(key.window, set()).add(
            None if equality is None else equality.window_attribute
        )
    return {window: _route(names) for window, names in attributes.items()}


def _route(names: set[str | None]) -> WindowRoute:
    if None in names:
        reason = "primary items are split, as a join on it has no single equality"
        return WindowRoute(None, reason)
    if len(names) > 1:
        reason = "primary items are split, as its joins are on several attributes"
        return WindowRoute(None, reason)
    (name,) = names
    return WindowRoute(name, f"split by the value of {name}")


def bucket_of_value(key: Key | None, buckets: int) -> int:
    """The bucket of a value (value_indexes.key_of); −1 for a missing one.

    >>> from headgate.model.values import Kind
    >>> bucket_of_value((Kind.NUMBER, 1), 7) == bucket_of_value((Kind.NUMBER, 1.0), 7)
    True
    """
    if key is None:
        return -1
    value = key[1]
    match value:
        case str():
            number = crc32(value.encode("utf-8", "surrogatepass"))
        case bytes():
            number = crc32(value)
        case datetime():
            number = microseconds(value)
        case tuple():
            number = crc32("\0".join(value).encode("utf-8", "surrogatepass"))
        case _:
            number = hash(value)  # of numbers: equal for equal ones, and the same everywhere
    return _spread(number) % buckets


def _spread(number: int) -> int:
    """Neighbouring numbers are in different buckets, also if all are multiples of something."""
    return (number * 0x9E3779B97F4A7C15 & 0xFFFF_FFFF_FFFF_FFFF) >> 40
