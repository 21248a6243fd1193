"""Routing to all zones that a region meets, each once ([Select-Joins Appendix A, Fig. 16]).

    server's zone ──► … ──► goal's zone ──► a tree over the zones that the region meets

The goal is the point of the region's heart that is nearest to the server's zone (`heart`, in
`region_kernels.py`). From there on each zone of the region has one parent: the neighbour on its own
way to the goal. A node forwards to those of its neighbours that the region meets and whose way to
the goal leads through it. It knows its neighbours' zones and the server's, and the message has its
region, so it needs nothing else: no list of nodes, no memory of messages.

Law: every zone that the region meets gets the message once from its parent, and no other zone does
but on the way to the goal. For let r be a point of the region in the zone. The zone's point nearest
to the goal lies between r and the goal in each coordinate, and so does the float step from there to
the goal; the region holds both, as the goal is in its heart. So the parent meets the region too,
and it is nearer to the goal.

Cost: a message goes to as many zones as it meets, plus the way to the goal, which is empty where
nothing is excluded. Rejected: flooding with a memory of what was seen, as a zone of 1,000 has 17
neighbours on average and would hear of a message from many of them; a walk to each zone by itself.

In this simulation a zone's parent is found when the zone is, which gives the same tree as
forwarding does.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import first_not_less
from headgate.simulate.arrivals import DEPTH, put_arrival
from headgate.simulate.region_kernels import heart, meets
from headgate.simulate.zone_kernels import next_zone


@nb.njit(nogil=True, cache=True)
def link_between(start, to, one, other):  # type: ignore[no-untyped-def]
    return first_not_less(to, start[one], start[one + 1], other)


@nb.njit(nogil=True, cache=True)
def choose_goal(regions, at, zones, server, goal, room):  # type: ignore[no-untyped-def]
    """The point of the region's heart nearest to the server's zone; False for an empty region."""
    least, most = room[0], room[1]
    if not heart(regions, at, least, most):
        return False
    for m in range(goal.shape[0]):
        goal[m] = min(max(least[m], zones.least[server, m]), most[m])
    return True


@nb.njit(nogil=True, cache=True)
def put_tree(zones, at, goal, parents, hit, count, arrival, depths, out, used, point):  # type: ignore[no-untyped-def]
    """Arrivals in the zones that were hit, parents first. That of the goal's zone is there."""
    for i in range(count):
        parents[hit[i]] = next_zone(zones, hit[i], goal, point)
        depths[hit[i]] = -1
    deepest = 0
    for i in range(count):
        zone, above = hit[i], 0
        while parents[zone] >= 0 and depths[zone] < 0:
            zone, above = parents[zone], above + 1
        depth = (0 if parents[zone] < 0 else depths[zone]) + above
        deepest, zone = max(deepest, depth), hit[i]
        while depths[zone] < 0:
            depths[zone] = depth
            depth -= 1
            if parents[zone] >= 0:
                zone = parents[zone]
    first = out[used - 1, DEPTH]
    for depth in range(1, deepest + 1):
        for i in range(count):
            zone = hit[i]
            if depths[zone] == depth:
                parent = parents[zone]
                link = link_between(zones.start, zones.to, parent, zone)
                arrival[zone] = used
                used = put_arrival(out, used, at, zone, arrival[parent], link, first + depth, 1)
    return used


@nb.njit(nogil=True, cache=True)
def route_regions(first, regions, zones, server, out, used):  # type: ignore[no-untyped-def]
    """Write the arrivals of messages from `first` on; which did not fit any more, and lines used.

    A message whose region is empty has none.
    """
    size, coordinates = zones.least.shape
    hit, parents, depths, arrival = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    goal, point, room = np.empty(coordinates), np.empty(coordinates), np.empty((2, coordinates))
    for at in range(first, regions.own.shape[0]):
        if used + 2 * size > out.shape[0]:
            return at, used
        if not choose_goal(regions, at, zones, server, goal, room):
            continue
        zone, depth, parent, link = server, 0, -1, -1
        while True:
            following = next_zone(zones, zone, goal, point)
            used = put_arrival(out, used, at, zone, parent, link, depth, following < 0)
            if following < 0:
                break
            link = link_between(zones.start, zones.to, zone, following)
            zone, depth, parent = following, depth + 1, used - 1
        arrival[zone] = used - 1
        count = 0
        for each in range(size):
            if meets(regions, at, zones.least, zones.most, each):
                hit[count] = each
                count += 1
        used = put_tree(zones, at, goal, parents, hit, count, arrival, depths, out, used, point)
    return regions.own.shape[0], used
