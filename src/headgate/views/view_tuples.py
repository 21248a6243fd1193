"""The tuples of a view for one document: one for each embedding of its pattern ([Delta §4.1]).

A tuple has the identifier of every node of the pattern, in preorder, and the marked texts. Texts
are stored by identifier and not by tuple, since a node may occur in many tuples. Two sets of tuples
are equal if identifiers and marked texts are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.tree_pattern import Mark, PatternNode
from headgate.views.document import NUMBER
from headgate.views.pattern_arrays import Longs, preorder

Texts = dict[int, str]
"""From the number of a document's node to its val or cont."""

MARKS = (Mark.VAL, Mark.CONT)


@dataclass(frozen=True, slots=True, eq=False)
class ViewTuples:
    ids: Longs  # [tuple, node, 3]
    texts: dict[tuple[int, Mark], Texts]
    """For each marked node of the pattern."""

    def __len__(self) -> int:
        return len(self.ids)

    def size_bytes(self) -> int:
        """The size of a message: three numbers of four bytes for a node, and each text once."""
        texts = sum(len(text.encode()) for texts in self.texts.values() for text in texts.values())
        return int(12 * self.ids.shape[0] * self.ids.shape[1]) + texts

    def rows(self) -> set[tuple[object, ...]]:
        """The tuples as a set: identifiers, then texts in the order of nodes and marks."""
        columns = sorted(self.texts, key=lambda key: (key[0], MARKS.index(key[1])))
        return {
            (
                *(tuple(each) for each in row.tolist()),
                *(self.texts[node, mark][int(row[node, NUMBER])] for node, mark in columns),
            )
            for row in self.ids
        }


def marked_nodes(pattern: PatternNode) -> list[tuple[int, Mark]]:
    """The marks of a pattern, each with the place of its node in preorder."""
    nodes = enumerate(preorder(pattern))
    return [(at, mark) for at, (node, _) in nodes for mark in MARKS if mark in node.marks]
