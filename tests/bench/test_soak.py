"""The soak: its server publishes by the clock, and delays are counted from that."""

from __future__ import annotations

import socket
import time
from datetime import datetime

import httpx
import pytest
from bench.running.soak_server import SLOW_ADDRESS, SoakServer, slow_names
from bench.soak import QUICK, PhaseFigures, _figures, _rows

from headgate.acquire.parse_feed import parse_feed


def test_feeds_publish_by_the_clock() -> None:
    with SoakServer(8, period_s=10.0, entries=5) as server:
        urls = server.urls()
        assert len({httpx.URL(each).host for each in urls}) == 3
        parsed = parse_feed(httpx.get(urls[3]).content, url=urls[3])
        assert len(parsed.entries) == 5
        times = [each.attributes["published"] for each in parsed.entries]
        newest = max(each.timestamp() for each in times if isinstance(each, datetime))
        assert -1.0 <= time.time() - newest <= 11.0
        with pytest.raises(httpx.TimeoutException):
            httpx.get(f"http://127.8.0.3:{server.port}/silent", timeout=0.2)
        assert server.requests == {"good": 1, "bomb": 1}


def test_the_names_of_the_slow_address_are_many_and_mean_it() -> None:
    names = slow_names(200)
    assert len(set(names)) == 200
    address = ".".join(map(str, SLOW_ADDRESS))
    assert {socket.getaddrinfo(each, 80)[0][4][0] for each in names} == {address}
    assert all(httpx.URL(f"http://{each}:80/").host == each for each in names)


def test_entries_of_a_phase_are_counted_whether_they_arrived_or_not() -> None:
    began = 1_000_000.0
    phase = (began, began + 100.0, 0.5)
    arrived = {f"0:{entry}": entry * QUICK.period_s + 2.0 for entry in range(100_001, 100_006)}
    figures = _figures(QUICK, arrived, phase)
    assert figures.published == pytest.approx(QUICK.feeds * 10, abs=1)
    assert figures.delays_s == pytest.approx([2.0] * 5)


@pytest.mark.parametrize(("after", "met"), [(1.05, True), (1.2, False)])
def test_a_rise_of_more_than_a_tenth_does_not_meet_the_target(after: float, met: bool) -> None:
    alone, mixed = PhaseFigures([1.0] * 9, 9, 0.3), PhaseFigures([after] * 9, 9, 0.3)
    rows = _rows(QUICK, alone, mixed, 7)
    assert [each.met for each in rows] == [met, met, True]
