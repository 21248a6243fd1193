"""Limits per host: few requests at once, a delay between them, and a longest wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from headgate.acquire import connections as hosts
from headgate.acquire.connections import AddressBusy, HostLimits


def test_a_request_gives_up_after_its_patience() -> None:
    gate = HostLimits(at_once=1, delay_s=0)
    began = time.monotonic()
    with (
        gate.slot("a", patience_s=1),
        pytest.raises(AddressBusy, match="'a' is busy"),
        gate.slot("a", patience_s=0.05),
    ):
        pass
    assert time.monotonic() - began < 0.5


def test_a_delay_longer_than_the_patience_fails_at_once() -> None:
    gate = HostLimits(at_once=2, delay_s=60)
    began = time.monotonic()
    with (
        gate.slot("a", patience_s=1),
        pytest.raises(AddressBusy, match="busy"),
        gate.slot("a", patience_s=30),
    ):
        pass
    assert time.monotonic() - began < 0.5


def test_hosts_do_not_wait_for_each_other() -> None:
    gate = HostLimits(at_once=1, delay_s=60)
    with gate.slot("a", patience_s=0.1), gate.slot("b", patience_s=0.1):
        pass
    with gate.slot("a", patience_s=0.1, continues=True):
        pass


def test_a_waiting_request_starts_when_another_ends() -> None:
    gate = HostLimits(at_once=1, delay_s=0)
    inside: list[int] = []

    def visit(number: int) -> None:
        with gate.slot("a", patience_s=10):
            inside.append(number)
            assert len(inside) == 1
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(visit, range(200)))) == 200


def test_idle_hosts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "HOSTS_MAX", 10)
    gate = HostLimits(at_once=1, delay_s=0)
    for number in range(100):
        with gate.slot(str(number), patience_s=1):
            assert len(gate._hosts) <= 12
