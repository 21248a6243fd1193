"""Why an item is in a feed, or why not: the feed's normalised plan, judged for one item.

    feed RockConcertStream, an item of EventAnnounces: no match

    no    EventAnnounces
          no    description contains 'concert'    description is 'An evening of songs'
          yes   title contains 'rock'             title is 'Rock night'
    2 other branches read other sources

Law: `yes` or `no` at the top is what the naive executor says of the item alone. `open` is what the
item alone cannot tell: a join depends on its window, a table join on the other tables, and an
operator on what it answers; the parts above it are open only where that matters (Kleene's logic).
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
"""None: the item alone cannot tell."""
VALUE_SHOWN_MAX = 60
BRANCHES_SHOWN_MAX = 20
_TOLD = {True: "yes", False: "no", None: "open"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds of an item, what it was asked, and what that was made of."""

    answer: Answer
    text: str
    note: str = ""
    parts: tuple[Verdict, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Each line and what is noted on it."""
        yield f"{'      ' * depth}{_TOLD[self.answer]:<6}{self.text}", self.note
        for part in self.parts:
            yield from part.lines(depth + 1)

    def as_json(self) -> Mapping[str, object]:
        told: dict[str, object] = {"answer": _TOLD[self.answer], "asked": self.text}
        if self.note:
            told["note"] = self.note
        if self.parts:
            told["parts"] = [part.as_json() for part in self.parts]
        return told


@dataclass(frozen=True, slots=True)
class Why:
    """The verdicts of all branches of a feed that read the item's source."""

    feed: str
    source: str
    branches: tuple[Verdict, ...]
    other_branches: int
    windows: tuple[str, ...]
    """The joins whose windows the item enters."""

    @property
    def answer(self) -> Answer:
        return _any(branch.answer for branch in self.branches)

    def text(self) -> str:
        told = {True: "match", False: "no match", None: "open, as the item alone cannot tell"}
        title = f"feed {self.feed}, an item of {self.source}: {told[self.answer]}"
        # What speaks for the item first: a feed may have thousands of branches.
        shown = sorted(self.branches, key=lambda each: [True, None, False].index(each.answer))
        lines = [line for each in shown[:BRANCHES_SHOWN_MAX] for line in each.lines()]
        width = max((len(line) for line, note in lines if note), default=0)
        body = [f"{line:<{width}}    {note}".rstrip() for line, note in lines]
        return "\n".join([title, "", *body, *self._rest(len(shown))])

    def _rest(self, count: int) -> Iterator[str]:
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
            "answer": _TOLD[self.answer],
            "branches": [each.as_json() for each in self.branches],
            "other_branches": self.other_branches,
            "windows": list(self.windows),
        }


def why(feed: str, item: Item, definitions: Definitions) -> Why:
    """Why the item is in the feed, or why not."""
    plan = normalize(compose(feed, definitions))
    top = plan.input if isinstance(plan, algebra.Transform) else plan
    branches = top.inputs if isinstance(top, algebra.Union) else (top,)
    own = [branch for branch in branches if item.source in _read_by(branch)]
    joins = [node for node in algebra.bottom_up([plan]) if isinstance(node, algebra.Join)]
    windows = (join.id for join in joins if _enters(join.window, item))
    return Why(
        feed,
        item.source,
        tuple(_judge(branch, item) for branch in own),
        len(branches) - len(own),
        tuple(dict.fromkeys(windows)),
    )


def sources_of(feed: str, definitions: Definitions) -> list[str]:
    """The sources that a feed reads, those of windows included."""
    nodes = algebra.bottom_up([compose(feed, definitions)])
    return sorted({node.name for node in nodes if isinstance(node, algebra.Source)})


def _read_by(branch: algebra.Plan) -> set[str]:
    """The sources whose items a branch outputs; a window's are not among them."""
    match branch:
        case algebra.Source(name):
            return {name}
        case algebra.Join(_, _, primary, _):
            return _read_by(primary)
    return {name for each in algebra.inputs_of(branch) for name in _read_by(each)}


def _enters(window: algebra.Window, item: Item) -> bool:
    inner = window.input
    branches = inner.inputs if isinstance(inner, algebra.Union) else (inner,)
    return any(
        item.source in _read_by(branch) and _judge(branch, item).answer is not False
        for branch in branches
    )


def _judge(branch: algebra.Plan, item: Item) -> Verdict:
    match branch:
        case algebra.Source(name):
            return Verdict(item.source == name, name)
        case algebra.Filter(filter_, algebra.NaturalJoin() as join):
            below, note = _judge(join, item), "depends on the other tables"
            parts = tuple(Verdict(None, unparse_filter(each), note) for each in conjuncts(filter_))
            return Verdict(below.answer, below.text, below.note, below.parts + parts)
        case algebra.Filter(filter_, input_):
            below = _judge(input_, item)
            parts = tuple(judge_filter(each, item) for each in conjuncts(filter_))
            answer = _all([below.answer, *(part.answer for part in parts)])
            return Verdict(answer, below.text, below.note, below.parts + parts)
        case algebra.Match(_, pattern, input_):
            below = _judge(input_, item)
            document = item.attributes.get("document", "")
            embeds = isinstance(document, str) and matches_pattern(pattern, document)
            part = Verdict(embeds, sign(branch))
            answer = _all([below.answer, embeds])
            return Verdict(answer, below.text, below.note, (*below.parts, part))
        case algebra.Join(_, _, primary, _):
            below = _judge(primary, item)
            part = Verdict(None, sign(branch), "depends on what is in the window")
            answer = _all([below.answer, None])
            return Verdict(answer, below.text, below.note, (*below.parts, part))
    assert isinstance(branch, algebra.NaturalJoin), f"{branch} is not in normal form"
    sides = [each for each in branch.inputs if item.source in _read_by(each)]
    parts = tuple(_judge(each, item) for each in sides)
    answer = _all([_any(part.answer for part in parts), None])
    return Verdict(answer, sign(branch), "depends on the other tables", parts)


def judge_filter(filter_: Filter, item: Item) -> Verdict:
    """The filter, and all that it is made of."""
    match filter_:
        case And(inner):
            parts = tuple(judge_filter(each, item) for each in inner)
            return Verdict(_all(part.answer for part in parts), "all of", parts=parts)
        case Or(inner):
            parts = tuple(judge_filter(each, item) for each in inner)
            return Verdict(_any(part.answer for part in parts), "one of", parts=parts)
        case Not(inner):
            part = judge_filter(inner, item)
            return Verdict(None if part.answer is None else not part.answer, "not", parts=(part,))
    return _judge_atom(filter_, item)


def _judge_atom(atom: Atom, item: Item) -> Verdict:
    text = unparse_filter(atom)
    match atom:
        case Call() | Constraint():
            return Verdict(None, text, "depends on what the operator answers")
        case Comparison(_, _, WindowAttribute()) | Similar(_, WindowAttribute()):
            return Verdict(None, text, "depends on what is in the window")
    name = atom.attribute
    note = "" if name is None else f"{name} is {_shown(item.attributes.get(name))}"
    return Verdict(matches(atom, item), text, note)


def _shown(value: Value | None) -> str:
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


def _all(answers: Iterable[Answer]) -> Answer:
    found = set(answers)
    return False if False in found else None if None in found else True


def _any(answers: Iterable[Answer]) -> Answer:
    found = set(answers)
    return True if True in found else None if None in found else False
