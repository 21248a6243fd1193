"""The hot loops over encoded patterns: who is above whom, the embedding test, and what it covers.

Patterns are few large tables rather than many columns (encode_views.py names the columns), as every
array that is handed to a function costs more than a comparison. For the same reason what is called
in the innermost loops is inlined. A set of nodes of one view is a mask, a bit for each node.
"""

from __future__ import annotations

import numba as nb
import numpy as np

LABEL, IS_ATTRIBUTE, AXIS, MARKS, PARENT, ATTRIBUTE, PREDICATES, PREDICATES_END = range(8)
ANCESTORS, DESCENDANTS, CHILDREN = range(3)
KIND, IS_NOT, LOW, HIGH = range(4)

ANY_LABEL = 0
CHILD_AXIS = 1
VAL, CONT = 1, 2
NODES_MAX = 64

ONE = np.uint64(1)
NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@nb.njit(nogil=True, cache=True)
def fill_relatives(node_start, nodes, masks):  # type: ignore[no-untyped-def]
    """Of each node its ancestors, its descendants, and its children by '/'."""
    for view in range(node_start.shape[0] - 1):
        first = node_start[view]
        for n in range(1, node_start[view + 1] - first):
            above, own = nodes[first + n, PARENT], ONE << np.uint64(n)
            masks[first + n, ANCESTORS] = masks[first + above, ANCESTORS]
            masks[first + n, ANCESTORS] |= ONE << np.uint64(above)
            if nodes[first + n, AXIS] == CHILD_AXIS:
                masks[first + above, CHILDREN] |= own
            while above >= 0:
                masks[first + above, DESCENDANTS] |= own
                above = nodes[first + above, PARENT]


@nb.njit(nogil=True, cache=True, inline="always")
def implies_predicate(specifics, specific, generals, general):  # type: ignore[no-untyped-def]
    """Whether one predicate implies another, as sets of positions (encode_views.py)."""
    low, high, point = specifics[specific, LOW], specifics[specific, HIGH], generals[general, LOW]
    if generals[general, IS_NOT]:
        implied = high < point or low > point
        if specifics[specific, IS_NOT]:
            implied = low == point
    else:
        implied = point <= low and high <= generals[general, HIGH]
        implied = implied and not specifics[specific, IS_NOT]
    return implied and specifics[specific, KIND] == generals[general, KIND]


@nb.njit(nogil=True, cache=True)
def follow(general, generals, specific, specifics):  # type: ignore[no-untyped-def]
    """Whether each predicate at a view's node follows from one at a query's node.

    `general` and `specific` are the rows of the two nodes.
    """
    for g in range(general[PREDICATES], general[PREDICATES_END]):
        is_implied = False
        for s in range(specific[PREDICATES], specific[PREDICATES_END]):
            if implies_predicate(specifics, s, generals, g):
                is_implied = True
        if not is_implied:
            return False
    return True


@nb.njit(nogil=True, cache=True)
def embed(v, view, q, query, below, images):  # type: ignore[no-untyped-def]
    """Whether the view embeds into the query; `images[n]` is then where node n goes in all ways.

    A node goes to one of its label, a '*' to every element. Children come before their parents:
    `below[n]` is where n may go with all that is below it. Then parents come first, and leave of it
    what fits to a place of the parent. As children of a node are placed independently of each
    other, each pair that is left is in an embedding.
    """
    nodes = v.nodes[v.node_start[view] : v.node_start[view + 1]]
    places = q.nodes[q.node_start[query] : q.node_start[query + 1]]
    relatives = q.masks[q.node_start[query] : q.node_start[query + 1]]
    if nodes.shape[0] == 0 or places.shape[0] == 0:
        return False
    below[: nodes.shape[0]] = ALL
    for n in range(nodes.shape[0] - 1, -1, -1):
        mask, above, label = NONE, NONE, nodes[n, LABEL]
        is_child = nodes[n, AXIS] == CHILD_AXIS
        has_predicates = nodes[n, PREDICATES] < nodes[n, PREDICATES_END]
        for m in range(places.shape[0]):
            if places[m, LABEL] != label and (label != ANY_LABEL or places[m, IS_ATTRIBUTE]):
                continue
            own = ONE << np.uint64(m)
            if not below[n] & own:
                continue
            if has_predicates and not follow(nodes[n], v.predicates, places[m], q.predicates):
                continue
            mask |= own
            if not is_child:
                above |= relatives[m, ANCESTORS]
            elif m > 0 and places[m, AXIS] == CHILD_AXIS:
                above |= ONE << np.uint64(places[m, PARENT])
        if n > 0:
            below[nodes[n, PARENT]] &= above
        elif is_child:
            mask &= np.uint64(places[0, AXIS] == CHILD_AXIS)
        if mask == NONE:
            return False
        below[n] = mask
    images[0] = below[0]
    for n in range(1, nodes.shape[0]):
        parents, found = images[nodes[n, PARENT]], NONE
        way = CHILDREN if nodes[n, AXIS] == CHILD_AXIS else DESCENDANTS
        for m in range(places.shape[0]):
            if parents & (ONE << np.uint64(m)):
                found |= relatives[m, way]
        images[n] = below[n] & found
    return True


@nb.njit(nogil=True, cache=True)
def covered(v, view, q, query, images):  # type: ignore[no-untyped-def]
    """The attributes of the query that the view has, in any of its embeddings.

    An identifier is covered only by a node of the same label, as it does not tell the label; a
    predicate if the view enforces it, or has the value so that it can be tested.
    """
    nodes = v.nodes[v.node_start[view] : v.node_start[view + 1]]
    places = q.nodes[q.node_start[query] : q.node_start[query + 1]]
    cover = NONE
    for n in range(nodes.shape[0]):
        marks, label = nodes[n, MARKS], nodes[n, LABEL]
        has_value = np.uint64((marks & VAL) != 0)
        for m in range(places.shape[0]):
            if not images[n] & (ONE << np.uint64(m)):
                continue
            at = np.uint64(places[m, ATTRIBUTE])
            cover |= np.uint64(label == places[m, LABEL]) << at
            at += ONE
            if places[m, MARKS] & VAL:
                cover |= has_value << at
                at += ONE
            if places[m, MARKS] & CONT:
                cover |= np.uint64((marks & CONT) != 0) << at
                at += ONE
            for asked in range(places[m, PREDICATES], places[m, PREDICATES_END]):
                cover |= has_value << at
                for own in range(nodes[n, PREDICATES], nodes[n, PREDICATES_END]):
                    is_enforced = implies_predicate(v.predicates, own, q.predicates, asked)
                    cover |= np.uint64(is_enforced) << at
                at += ONE
    return cover


@nb.njit(nogil=True, cache=True)
def popcount(mask):  # type: ignore[no-untyped-def]
    mask = mask - ((mask >> np.uint64(1)) & np.uint64(0x5555555555555555))
    mask = (mask & np.uint64(0x3333333333333333)) + (
        (mask >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((mask * np.uint64(0x0101010101010101)) >> np.uint64(56))
