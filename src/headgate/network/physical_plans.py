"""The site where the join of a rewriting runs, and its cost ([Delta §2.2]).

    v5 from v2 and v3:    v2 ──► n5 ◄── v3         both are sent, n5 joins
                          v3 ──► n2 ──► n5         v3 is sent, n2 joins, the result is sent
                          v2 ──► n3 ──► n5

A rewriting of k views has k + 1 plans: the join runs at the view's own site, or at a member's. A
plan's utilisation is a matrix of sites and resources (`utilization_matrix`): each member is read at
its site, sent to the site of the join, and processed there; then the result is sent. U(a) is the
least weighted sum over all plans, and l(a) is the local latency of that plan: the time until the
slowest input is at the join, plus the join, plus sending the result. Ties go to the faster plan.

The source reads and processes the whole document for each view that it serves and sends the result.
Reading a view is cheaper because views are smaller than documents.

Cost: O(members²) for a rewriting, one to two seconds for 2.7 million. Rejected: trees of joins at
several sites, since most rewritings have two members, for which there are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.network.configuration_problem import Costs, Floats, Ints, Longs
from headgate.network.wide_area import PROCESSING, READING, RECEIVING, SENDING, WideArea
from headgate.views.rewrite_cgr import Rewritings


@dataclass(frozen=True, slots=True, eq=False)
class PricedPlans:
    """The costs of all rewritings; join_at[r] is the member at whose site the join runs, or
    AT_VIEW."""

    costs: Costs
    join_at: Ints


def price_rewritings(rewritings: Rewritings, area: WideArea) -> PricedPlans:
    count = len(rewritings.member_start) - 1
    utilization, latency_s = np.empty(count), np.empty(count)
    join_at = np.empty(count, np.int32)
    arrays = area_arrays(area)
    price_plans(
        rewritings.view_start,
        rewritings.member_start,
        rewritings.members,
        arrays,
        (utilization, latency_s, join_at),
    )
    source_utilization, source_latency_s = _price_source(area)
    costs = Costs(utilization, latency_s, source_utilization, source_latency_s)
    return PricedPlans(costs, join_at)


def area_arrays(area: WideArea) -> AreaArrays:
    return AreaArrays(
        area.view_site,
        area.view_bytes,
        area.prices,
        area.seconds_per_byte,
        area.region,
        area.delay_s,
        area.start_s,
    )


def _price_source(area: WideArea) -> tuple[Floats, Floats]:
    """Utilisation and latency of serving each view from the source. The source reads a document
    once for all views, so reading adds no latency (§3.3)."""
    source, sites = area.source_site, area.view_site
    away = sites != source
    prices, seconds = area.prices, area.seconds_per_byte
    utilization = area.document_bytes * (prices[source, READING] + prices[source, PROCESSING])
    sent = np.where(away, prices[source, SENDING] + prices[sites, RECEIVING], 0.0)
    delay = np.where(away, area.delay_s[area.region[source], area.region[sites]], 0.0)
    taken = np.where(away, seconds[source, SENDING] + seconds[sites, RECEIVING], 0.0)
    return utilization + area.view_bytes * sent, area.start_s + delay + area.view_bytes * taken


def utilization_matrix(area: WideArea, view: int, members: Longs, *, join_at: int) -> Floats:
    """u(p), float64 [site, resource]: the bytes that a plan reads, processes, sends, receives."""
    bytes_used = np.zeros((area.site_count, 4))
    end = int(area.view_site[view])
    place = end if join_at == AT_VIEW else int(area.view_site[members[join_at]])
    for member in members.tolist():
        site, size = int(area.view_site[member]), float(area.view_bytes[member])
        bytes_used[site, READING] += size
        bytes_used[place, PROCESSING] += size
        _send(bytes_used, size, site, place)
    _send(bytes_used, float(area.view_bytes[view]), place, end)
    return bytes_used


def _send(bytes_used: Floats, size: float, start: int, end: int) -> None:
    if start != end:
        bytes_used[start, SENDING] += size
        bytes_used[end, RECEIVING] += size


# Kernels.

AT_VIEW = -1


class AreaArrays(NamedTuple):
    """The arrays of a WideArea for the kernels."""

    view_site: Ints
    view_bytes: Floats
    prices: Floats
    seconds_per_byte: Floats
    region: Ints
    delay_s: Floats
    start_s: float


@nb.njit(nogil=True, cache=True)
def sending_price(area, size, start, end):  # type: ignore[no-untyped-def]
    if start == end:
        return 0.0
    return size * (area.prices[start, SENDING] + area.prices[end, RECEIVING])


@nb.njit(nogil=True, cache=True)
def sending_s(area, size, start, end):  # type: ignore[no-untyped-def]
    if start == end:
        return 0.0
    per_byte = area.seconds_per_byte[start, SENDING] + area.seconds_per_byte[end, RECEIVING]
    return area.start_s + area.delay_s[area.region[start], area.region[end]] + size * per_byte


@nb.njit(nogil=True, cache=True)
def plan_cost(area, members, place, end, result):  # type: ignore[no-untyped-def]
    """(utilisation, local latency) of joining members at site `place` and sending the result, of
    size `result`, to site `end`."""
    price, slowest, total = 0.0, 0.0, 0.0
    for position in range(members.shape[0]):
        member = members[position]
        site, size = area.view_site[member], area.view_bytes[member]
        price += size * area.prices[site, READING] + sending_price(area, size, site, place)
        way = size * area.seconds_per_byte[site, READING] + sending_s(area, size, site, place)
        slowest = max(slowest, way)
        total += size
    price += total * area.prices[place, PROCESSING] + sending_price(area, result, place, end)
    joined_s = area.start_s + total * area.seconds_per_byte[place, PROCESSING]
    return price, slowest + joined_s + sending_s(area, result, place, end)


@nb.njit(nogil=True, cache=True)
def price_plans(view_start, member_start, members, area, out):  # type: ignore[no-untyped-def]
    """Write the cheapest plan of each rewriting to out = (utilization, latency_s, join_at)."""
    utilization, latency_s, join_at = out
    for view in range(view_start.shape[0] - 1):
        end, result = area.view_site[view], area.view_bytes[view]
        for r in range(view_start[view], view_start[view + 1]):
            plan_members = members[member_start[r] : member_start[r + 1]]
            best, best_s = plan_cost(area, plan_members, end, end, result)
            where = AT_VIEW
            for position in range(plan_members.shape[0]):
                price, local_s = plan_cost(
                    area, plan_members, area.view_site[plan_members[position]], end, result
                )
                if price < best or (price == best and local_s < best_s):
                    best, best_s, where = price, local_s, position
            utilization[r], latency_s[r], join_at[r] = best, best_s, where
