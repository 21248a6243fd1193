"""The filter plan of a source as text: what is shared, how much passes, what it costs.

    vcb: 3 filters, 1 inserted node; 1.2 of 3 evaluations for each item, 40 %
    expected visits for a batch: prefix 5, vcb 4

    true                               100 %
      title contains 'rock'              9 %
        price > 5                        2 %    → Cheap
        description contains 'live'    0.4 %    → Tonight, Weekend

A line has the clauses that a node adds to those above it, and the share of all items that satisfy
the node. An arrow leads to those who asked for it. What nobody asked for was inserted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from headgate.factor.factor_tree import FactorTree
from headgate.factor.factorize import Factorized
from headgate.model.filters import Or

INDENT = "  "
DEPTH_SHOWN_MAX = 64


def factor_text(found: Factorized, clauses: Sequence[str], owners: Sequence[str]) -> str:
    """The plan in lines, given the text of each clause and the name of each filter."""
    lines = list(_lines(found, clauses, owners))
    width = max(len(text) for text, _, _ in lines)
    shown = [
        f"{text:<{width}}  {share_text(share):>7}" + (f"    → {to}" if to else "")
        for text, share, to in lines
    ]
    return "\n".join([summary_text(found), expected_text(found), "", *shown])


def summary_text(found: Factorized) -> str:
    """`vcb: 3 filters, 1 inserted node; 1.2 of 3 evaluations for each item, 40 %`"""
    tree, asked = found.choice.tree, found.given.asked_count
    inserted = tree.parent.size - tree.filter_count
    cost = tree.cost()
    share = f", {share_text(cost / asked)}" if asked else ""
    return (
        f"{found.choice.algorithm}: {_counted(asked, 'filter')}, "
        f"{_counted(inserted, 'inserted node')}; "
        f"{cost:,.3g} of {asked:,} evaluations for each item{share}"
    )


def expected_text(found: Factorized) -> str:
    """What each algorithm's plan was expected to cost."""
    told = (
        f"{name} {'no time' if visits is None else format(visits, ',.0f')}"
        for name, visits in found.choice.expected.items()
    )
    return f"expected visits for a batch: {', '.join(told)}"


def share_text(share: float) -> str:
    """Two digits, whatever the size: `12 %`, `0.41 %`."""
    percent = 100 * share
    if percent >= 10:
        return f"{percent:.0f} %"
    return f"{percent:.2g} %" if percent >= 0.001 else "< 0.001 %"


def _lines(
    found: Factorized, clauses: Sequence[str], owners: Sequence[str]
) -> Iterator[tuple[str, float, str]]:
    tree, given = found.choice.tree, found.given
    asked_by: defaultdict[int, list[str]] = defaultdict(list)
    for filter_, owner in zip(given.distinct.tolist(), given.owners.tolist(), strict=True):
        asked_by[filter_].append(owners[owner])
    children: defaultdict[int, list[int]] = defaultdict(list)
    for node, above in enumerate(tree.parent.tolist()):
        children[above].append(node)
    always = ", ".join(owners[at] for at in found.program.always.tolist())
    yield "true", 1.0, always
    stack = [(node, 1) for node in _ordered(tree, children[-1])]
    while stack:
        node, depth = stack.pop()
        above = tree.parent[node]
        known = set(tree.predicate(above)) if above >= 0 else set()
        added = [each for each in tree.predicate(node) if each not in known]
        # A disjunction needs its parentheses only beside others.
        own = [
            f"({clauses[each]})"
            if len(added) > 1 and isinstance(found.clauses[each], Or)
            else clauses[each]
            for each in added
        ]
        indent = INDENT * min(depth, DEPTH_SHOWN_MAX)
        yield indent + " and ".join(own), float(tree.selectivity[node]), ", ".join(asked_by[node])
        stack += [(child, depth + 1) for child in _ordered(tree, children[node])]


def _ordered(tree: FactorTree, nodes: list[int]) -> list[int]:
    """The last one is shown first: from the most frequent to the rarest, then as they came."""
    return sorted(nodes, key=lambda node: (tree.selectivity[node], -node))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
