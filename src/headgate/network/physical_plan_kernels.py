"""The hot loop over physical plans: the cheapest of each rewriting."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb

from headgate.network.configuration_problem import Floats, Ints
from headgate.network.wide_area import PROCESSING, READING, RECEIVING, SENDING

AT_VIEW = -1


class AreaArrays(NamedTuple):
    """What the kernels see of a WideArea."""

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
    """Utilisation and local latency of a join of members at a place, sent to its end."""
    price, slowest, total = 0.0, 0.0, 0.0
    for at in range(members.shape[0]):
        member = members[at]
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
    utilization, latency_s, join_at = out
    for view in range(view_start.shape[0] - 1):
        end, result = area.view_site[view], area.view_bytes[view]
        for r in range(view_start[view], view_start[view + 1]):
            own = members[member_start[r] : member_start[r + 1]]
            best, best_s = plan_cost(area, own, end, end, result)
            where = AT_VIEW
            for at in range(own.shape[0]):
                price, local_s = plan_cost(area, own, area.view_site[own[at]], end, result)
                if price < best or (price == best and local_s < best_s):
                    best, best_s, where = price, local_s, at
            utilization[r], latency_s[r], join_at[r] = best, best_s, where
