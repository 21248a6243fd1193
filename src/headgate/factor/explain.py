"""The filter plan of a source as text: what is shared, how much passes, what it costs.

    vcb: 3 filters, 1 inserted node; 1.2 of 3 evaluations for each item, 40 %
    expected visits for a batch: prefix 5, vcb 4

    true                               100 %
      title contains 'rock'              9 %
        price > 5                        2 %    → Cheap
        description contains 'live'    0.4 %    → Tonight, Weekend

A line has the clauses that a node adds to its parent, and the share of all items that satisfy the
node. An arrow leads to the subscriptions with this filter. A node without an arrow was inserted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from headgate.factor.factorize import Factorized
from headgate.factor.filter_tree import FilterTree
from headgate.model.filters import Or

INDENT = "  "
DEPTH_SHOWN_MAX = 64


def factor_text(plan: Factorized, clauses: Sequence[str], owners: Sequence[str]) -> str:
    """The plan in lines, given the text of each clause and the name of each filter."""
    lines = list(_lines(plan, clauses, owners))
    width = max(len(text) for text, _, _ in lines)
    shown = [
        f"{text:<{width}}  {share_text(share):>7}" + (f"    → {to}" if to else "")
        for text, share, to in lines
    ]
    return "\n".join([summary_text(plan), expected_text(plan), "", *shown])


def summary_text(plan: Factorized) -> str:
    """`vcb: 3 filters, 1 inserted node; 1.2 of 3 evaluations for each item, 40 %`"""
    tree, total = plan.choice.tree, plan.filters.total_count
    inserted = tree.parent.size - tree.filter_count
    cost = tree.cost()
    share = f", {share_text(cost / total)}" if total else ""
    return (
        f"{plan.choice.method}: {_counted(total, 'filter')}, "
        f"{_counted(inserted, 'inserted node')}; "
        f"{cost:,.3g} of {total:,} evaluations for each item{share}"
    )


def expected_text(plan: Factorized) -> str:
    """The expected cost of each method's plan, or the reason why the method was not run."""
    choice = plan.choice
    costs = (
        f"{name} {choice.not_run[name] if visits is None else format(visits, ',.0f')}"
        for name, visits in choice.expected_visits.items()
    )
    return f"expected visits for a batch: {', '.join(costs)}"


def share_text(share: float) -> str:
    """Two significant digits: `12 %`, `0.41 %`."""
    percent = 100 * share
    if percent >= 10:
        return f"{percent:.0f} %"
    return f"{percent:.2g} %" if percent >= 0.001 else "< 0.001 %"


def _lines(
    plan: Factorized, clauses: Sequence[str], owners: Sequence[str]
) -> Iterator[tuple[str, float, str]]:
    tree, filters = plan.choice.tree, plan.filters
    names_of: defaultdict[int, list[str]] = defaultdict(list)
    for filter_, owner in zip(filters.distinct.tolist(), filters.owners.tolist(), strict=True):
        names_of[filter_].append(owners[owner])
    children: defaultdict[int, list[int]] = defaultdict(list)
    for node, above in enumerate(tree.parent.tolist()):
        children[above].append(node)
    always = ", ".join(owners[at] for at in plan.program.always.tolist())
    yield "true", 1.0, always
    stack = [(node, 1) for node in _ordered(tree, children[-1])]
    while stack:
        node, depth = stack.pop()
        above = tree.parent[node]
        above_clauses = set(tree.predicate(above)) if above >= 0 else set()
        added = [each for each in tree.predicate(node) if each not in above_clauses]
        # A disjunction needs parentheses only if the node adds other clauses too.
        texts = [
            f"({clauses[each]})"
            if len(added) > 1 and isinstance(plan.clauses[each], Or)
            else clauses[each]
            for each in added
        ]
        indent = INDENT * min(depth, DEPTH_SHOWN_MAX)
        yield indent + " and ".join(texts), float(tree.selectivity[node]), ", ".join(names_of[node])
        stack += [(child, depth + 1) for child in _ordered(tree, children[node])]


def _ordered(tree: FilterTree, nodes: list[int]) -> list[int]:
    """Nodes in the order in which they are pushed on the stack. The last one is shown first, so the
    text goes from the most frequent node to the rarest."""
    return sorted(nodes, key=lambda node: (tree.selectivity[node], -node))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
