"""Why an item is in a feed, or why not: each part of the feed's normalised plan for one item.

    feed RockConcertStream, an item of EventAnnounces: no match

    no    EventAnnounces
          no    description contains 'concert'    description is 'An evening of songs'
          yes   title contains 'rock'             title is 'Rock night'
    2 other branches read other sources

Invariant: a `yes` or `no` at the top is the answer of the naive executor for this item alone.
`open` means that the item alone does not decide it: a join depends on its window, a table join on
the other tables, an operator on its answer. A part above an open one is open only where that
matters (Kleene's three-valued logic).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.language.schemas import Definitions
from headgate.language.unparse import unparse_filter
from headgate.model.atoms import Atom, Call, Comparison, Constraint, Similar, WindowAttribute
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, Not, Or, conjuncts
from headgate.model.items import Item
from headgate.model.tree_pattern import matches_pattern
from headgate.model.values import Value, is_missing
from headgate.plan import algebra
from headgate.plan.normalize import normalize
from headgate.plan.plan_text import sign
from headgate.plan.translate import compose

Answer = bool | None
"""None: open, as the item alone does not decide it."""
VALUE_SHOWN_MAX = 60
BRANCHES_SHOWN_MAX = 20
_ANSWER_TEXT = {True: "yes", False: "no", None: "open"}


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """The answer to one condition for an item, with a note and the results of its parts."""

    answer: Answer
    condition: str
    note: str = ""
    parts: tuple[ConditionResult, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Each line with its note."""
        yield f"{'      ' * depth}{_ANSWER_TEXT[self.answer]:<6}{self.condition}", self.note
        for part in self.parts:
            yield from part.lines(depth + 1)

    def as_json(self) -> Mapping[str, object]:
        result: dict[str, object] = {
            "answer": _ANSWER_TEXT[self.answer],
            "condition": self.condition,
        }
        if self.note:
            result["note"] = self.note
        if self.parts:
            result["parts"] = [part.as_json() for part in self.parts]
        return result


@dataclass(frozen=True, slots=True)
class Why:
    """The results of all branches of a feed that read the item's source."""

    feed: str
    source: str
    branches: tuple[ConditionResult, ...]
    other_branches: int
    windows: tuple[str, ...]
    """The joins whose windows the item enters."""

    @property
    def answer(self) -> Answer:
        return _any_true(branch.answer for branch in self.branches)

    def text(self) -> str:
        answers = {True: "match", False: "no match", None: "open, as the item alone cannot tell"}
        title = f"feed {self.feed}, an item of {self.source}: {answers[self.answer]}"
        # Matching branches first: a feed may have thousands.
        ranked = sorted(self.branches, key=lambda each: [True, None, False].index(each.answer))
        lines = [line for each in ranked[:BRANCHES_SHOWN_MAX] for line in each.lines()]
        width = max((len(line) for line, note in lines if note), default=0)
        body = [f"{line:<{width}}    {note}".rstrip() for line, note in lines]
        return "\n".join([title, "", *body, *self._notes(len(ranked))])

    def _notes(self, count: int) -> Iterator[str]:
        if count > BRANCHES_SHOWN_MAX:
            yield f"… and {count - BRANCHES_SHOWN_MAX:,} more branches"
        if self.other_branches == 1:
            yield "1 other branch reads other sources"
        elif self.other_branches:
            yield f"{self.other_branches:,} other branches read other sources"
        for window in self.windows:
            yield f"it enters the window of {window}"

    def as_json(self) -> Mapping[str, object]:
        return {
            "feed": self.feed,
            "source": self.source,
            "answer": _ANSWER_TEXT[self.answer],
            "branches": [each.as_json() for each in self.branches],
            "other_branches": self.other_branches,
            "windows": list(self.windows),
        }


def why(feed: str, item: Item, definitions: Definitions) -> Why:
    """Why the item is in the feed, or why not."""
    plan = normalize(compose(feed, definitions))
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    branches = top.inputs if isinstance(top, algebra.Union) else (top,)
    reading = [branch for branch in branches if item.source in _sources_read_by(branch)]
    joins = [node for node in algebra.bottom_up([plan]) if isinstance(node, algebra.Join)]
    windows = (join.id for join in joins if _may_enter(join.window, item))
    return Why(
        feed,
        item.source,
        tuple(_explain(branch, item) for branch in reading),
        len(branches) - len(reading),
        tuple(dict.fromkeys(windows)),
    )


def sources_of(feed: str, definitions: Definitions) -> list[str]:
    """The sources that a feed reads, those of windows included."""
    nodes = algebra.bottom_up([compose(feed, definitions)])
    return sorted({node.name for node in nodes if isinstance(node, algebra.Source)})


def _sources_read_by(branch: algebra.Plan) -> set[str]:
    """The sources whose items a branch outputs, without those of windows."""
    match branch:
        case algebra.Source(name):
            return {name}
        case algebra.Join(_, _, primary, _):
            return _sources_read_by(primary)
    return {name for each in algebra.inputs_of(branch) for name in _sources_read_by(each)}


def _may_enter(window: algebra.Window, item: Item) -> bool:
    inner = window.input
    branches = inner.inputs if isinstance(inner, algebra.Union) else (inner,)
    return any(
        item.source in _sources_read_by(branch) and _explain(branch, item).answer is not False
        for branch in branches
    )


def _explain(branch: algebra.Plan, item: Item) -> ConditionResult:
    match branch:
        case algebra.Source(name):
            return ConditionResult(item.source == name, name)
        case algebra.Filter(filter_, algebra.NaturalJoin() as join):
            below, note = _explain(join, item), "depends on the other tables"
            parts = tuple(
                ConditionResult(None, unparse_filter(each), note) for each in conjuncts(filter_)
            )
            return ConditionResult(below.answer, below.condition, below.note, below.parts + parts)
        case algebra.Filter(filter_, input_):
            below = _explain(input_, item)
            parts = tuple(explain_filter(each, item) for each in conjuncts(filter_))
            answer = _all_true([below.answer, *(part.answer for part in parts)])
            return ConditionResult(answer, below.condition, below.note, below.parts + parts)
        case algebra.Match(_, pattern, input_):
            below = _explain(input_, item)
            document = item.attributes.get("document", "")
            embeds = isinstance(document, str) and matches_pattern(pattern, document)
            part = ConditionResult(embeds, sign(branch))
            answer = _all_true([below.answer, embeds])
            return ConditionResult(answer, below.condition, below.note, (*below.parts, part))
        case algebra.Join(_, _, primary, _):
            below = _explain(primary, item)
            part = ConditionResult(None, sign(branch), "depends on what is in the window")
            answer = _all_true([below.answer, None])
            return ConditionResult(answer, below.condition, below.note, (*below.parts, part))
    assert isinstance(branch, algebra.NaturalJoin), f"{branch} is not in normal form"
    sides = [each for each in branch.inputs if item.source in _sources_read_by(each)]
    parts = tuple(_explain(each, item) for each in sides)
    answer = _all_true([_any_true(part.answer for part in parts), None])
    return ConditionResult(answer, sign(branch), "depends on the other tables", parts)


def explain_filter(filter_: Filter, item: Item) -> ConditionResult:
    """The result of the filter and of each of its parts."""
    match filter_:
        case And(filters):
            parts = tuple(explain_filter(each, item) for each in filters)
            return ConditionResult(_all_true(part.answer for part in parts), "all of", parts=parts)
        case Or(filters):
            parts = tuple(explain_filter(each, item) for each in filters)
            return ConditionResult(_any_true(part.answer for part in parts), "one of", parts=parts)
        case Not(negated):
            part = explain_filter(negated, item)
            return ConditionResult(
                None if part.answer is None else not part.answer, "not", parts=(part,)
            )
    return _explain_atom(filter_, item)


def _explain_atom(atom: Atom, item: Item) -> ConditionResult:
    text = unparse_filter(atom)
    match atom:
        case Call() | Constraint():
            return ConditionResult(None, text, "depends on what the operator answers")
        case Comparison(_, _, WindowAttribute()) | Similar(_, WindowAttribute()):
            return ConditionResult(None, text, "depends on what is in the window")
    name = atom.attribute
    note = "" if name is None else f"{name} is {_value_text(item.attributes.get(name))}"
    return ConditionResult(matches(atom, item), text, note)


def _value_text(value: Value | None) -> str:
    if value is None or is_missing(value):
        return "missing"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    text = " ".join(value.split())
    return f"'{text}'" if len(text) <= VALUE_SHOWN_MAX else f"'{text[: VALUE_SHOWN_MAX - 1]}…'"


def _all_true(answers: Iterable[Answer]) -> Answer:
    distinct = set(answers)
    return False if False in distinct else None if None in distinct else True


def _any_true(answers: Iterable[Answer]) -> Answer:
    distinct = set(answers)
    return True if True in distinct else None if None in distinct else False
