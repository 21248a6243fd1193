"""Views over XMark documents, as a generator in the way of YFilter's makes them ([Delta §5.1]).

A query is a random walk down the DTD: each step goes to a child, or with some probability to
something deeper by `//`; branches grow from its nodes in the same way. Which child is taken is
skewed (the n-th of an element's children has weight 1 / n^skew), as interests are. Value predicates
compare a text or an attribute with a constant of its list; return nodes have {val}, or {cont} if
they contain elements.

The paper prints what its 100,000 unique views are like (Table 2): 6.13 nodes, 0.72 predicates and
2.52 return nodes for each, and 94.8 % of them can be rewritten from others. YFilter's own settings
are not printed; UNIQUE is set so that ours come close to these four figures. POPULAR is for §5.5,
where each document matches almost all views: they ask only for what the DTD says is there.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from bench.workloads.canonical_pattern import canonical
from bench.workloads.xmark import ATTRIBUTE_VALUES, DTD, attributes_of, children_of
from headgate.model.atoms import Relation
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate

INNER = [name for name, element in DTD.items() if element.children or element.attributes]


@dataclass(frozen=True, slots=True)
class Shape:
    """How queries are drawn. `nodes` are the least, the most and the most frequent number."""

    nodes: tuple[float, float, float]
    from_root: float
    descendant: float
    deeper_steps_max: int
    on_the_path: float
    skew: float
    predicate: float
    returns: float
    always_there: bool = False


UNIQUE = Shape((1.75, 12.3, 5.8), 0.25, 0.2, 3, 0.5, 0.3, 0.37, 0.41)
POPULAR = Shape((1, 8, 2), 0.2, 0.25, 3, 0.5, 0.3, 0.0, 0.5, always_there=True)


def unique_views(count: int, *, seed: int = 1, shape: Shape = UNIQUE) -> list[PatternNode]:
    """Views of which no two are the same pattern."""
    random, found = Random(seed), dict[PatternNode, None]()
    while len(found) < count:
        found[canonical(view(random, shape))] = None
    return list(found)


def popular_views(count: int, *, unique: float = 0.3, seed: int = 1) -> list[PatternNode]:
    """Views of which some are popular: so many of them are unique (§5.5)."""
    random = Random(seed)
    chosen = unique_views(int(count * unique), seed=seed, shape=POPULAR)
    # Each occurs at least once; the rest is drawn with Zipf's weights.
    weights = list(accumulate(1 / rank for rank in range(1, len(chosen) + 1)))
    views = chosen + random.choices(chosen, cum_weights=weights, k=count - len(chosen))
    random.shuffle(views)
    return views


def view(random: Random, shape: Shape) -> PatternNode:
    """One query."""
    return _Query(random, shape).grow().tree(0)


class _Query:
    """A tree that grows: for each node its label, axis and children."""

    def __init__(self, random: Random, shape: Shape) -> None:
        self.random, self.shape = random, shape
        self.labels: list[str] = []
        self.axes: list[Axis] = []
        self.children: list[list[int]] = []
        self.inner: list[int] = []

    def grow(self) -> _Query:
        random, shape = self.random, self.shape
        size = int(random.triangular(*shape.nodes))
        if random.random() < shape.from_root:
            self._add("site", Axis.CHILD)
        elif shape.always_there:
            self._add(_deeper("site", random, shape, steps=random.randint(1, 5)), Axis.DESCENDANT)
        else:
            self._add(random.choice(INNER), Axis.DESCENDANT)
        tries = 0
        while self.inner and len(self.labels) < size and tries < 3 * size:
            tries += 1
            on_the_path = random.random() < shape.on_the_path
            self._step(self.inner[-1] if on_the_path else random.choice(self.inner))
        return self

    def _add(self, label: str, axis: Axis) -> int:
        number = len(self.labels)
        self.labels.append(label)
        self.axes.append(axis)
        self.children.append([])
        if _below(label, self.shape)[0]:
            self.inner.append(number)
        return number

    def _step(self, at: int) -> None:
        """One more node below a node, unless it has the same child already."""
        shape = self.shape
        axis = Axis.DESCENDANT if self.random.random() < shape.descendant else Axis.CHILD
        steps = 1 if axis is Axis.CHILD else self.random.randint(1, shape.deeper_steps_max)
        child = _deeper(self.labels[at], self.random, shape, steps=steps)
        if not any(self.labels[each] == child for each in self.children[at]):
            self.children[at].append(self._add(child, axis))

    def tree(self, at: int) -> PatternNode:
        return PatternNode(
            self.labels[at],
            self.axes[at],
            marks=self._marks(self.labels[at]),
            predicates=self._predicates(self.labels[at]),
            children=tuple(self.tree(each) for each in self.children[at]),
        )

    def _marks(self, label: str) -> frozenset[Mark]:
        if self.random.random() >= self.shape.returns:
            return frozenset()
        is_leaf = label.startswith("@") or not DTD[label].children
        return frozenset([Mark.VAL if is_leaf else Mark.CONT])

    def _predicates(self, label: str) -> tuple[ValuePredicate, ...]:
        values = _values(label)
        if not values or self.random.random() >= self.shape.predicate:
            return ()
        return (ValuePredicate(Relation.EQUAL, self.random.choice(values)),)


@cache
def _below(label: str, shape: Shape) -> tuple[list[str], list[float]]:
    """What may stand directly below, with cumulative weights."""
    if label.startswith("@"):
        return [], []
    below = [*children_of(label), *(("@" + each, often) for each, often in attributes_of(label))]
    names = [each for each, often in below if not shape.always_there or often in ("", "+")]
    return names, list(accumulate(1 / rank**shape.skew for rank in range(1, len(names) + 1)))


def _deeper(label: str, random: Random, shape: Shape, *, steps: int) -> str:
    """A label that many steps below, or less where the DTD ends."""
    for _ in range(steps):
        below, weights = _below(label, shape)
        if not below:
            return label
        label = below[bisect(weights, random.random() * weights[-1], hi=len(below) - 1)]
    return label


@cache
def _values(label: str) -> tuple[str, ...]:
    return ATTRIBUTE_VALUES[label[1:]] if label.startswith("@") else DTD[label].values
