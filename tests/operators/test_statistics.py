"""Estimates of cost and selectivity, before and after a call is measured; reports add up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.operators.declaration import Declaration
from headgate.operators.failures import Failure
from headgate.operators.statistics import (
    FORGET_ITEMS,
    UNIT_S,
    CallStatistics,
    OperatorStatistics,
    read_report,
)

DECLARED = [
    Declaration("near", "m:near", cost=40.0, selectivity=0.1),
    Declaration("mob", "m:mob", cost=200.0),
    Declaration("plain", "m:plain"),
]
CALL, OTHER = b'["near", ["Bronx"]]', b'["near", ["Queens"]]'


def test_declared_estimates_are_used_before_any_measurement() -> None:
    estimates = CallStatistics(DECLARED)
    near, plain = estimates.of_call("near", CALL), estimates.of_operator("plain")
    assert (near.cost_s, near.selectivity, near.items) == (pytest.approx(40 * UNIT_S), 0.1, 0)
    assert (plain.cost_s, plain.selectivity) == (pytest.approx(UNIT_S), 0.5)
    assert near.text() == "40.0 µs, true of 10 %, not measured"


def test_measurements_outweigh_declared_estimates() -> None:
    estimates = CallStatistics(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=9_000, seconds=20.0)
    found = estimates.of_call("near", CALL)
    assert found.selectivity == pytest.approx(0.9, abs=0.01)
    assert found.cost_s == pytest.approx(2e-3, rel=0.02)
    assert found.items == 10_000


def test_an_unmeasured_call_has_the_estimate_of_its_operator() -> None:
    estimates = CallStatistics(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=9_000, seconds=20.0)
    assert estimates.of_call("near", OTHER).selectivity > 0.85
    assert estimates.of_call("near", OTHER).items == 0


def test_the_unit_of_declared_costs_is_measured() -> None:
    estimates = CallStatistics(DECLARED)
    estimates.observe("near", CALL, items=10_000, true=10, seconds=4.0)  # 400 µs for 40 units
    assert estimates.of_operator("mob").cost_s == pytest.approx(2e-3, rel=0.01)


def test_old_observations_lose_weight() -> None:
    estimates = CallStatistics(DECLARED)
    for _ in range(20):
        estimates.observe("near", CALL, items=50_000, true=0, seconds=1.0)
    for _ in range(20):
        estimates.observe("near", CALL, items=50_000, true=50_000, seconds=1.0)
    found = estimates.of_call("near", CALL)
    assert found.selectivity > 0.99
    assert found.items <= FORGET_ITEMS


@given(
    st.lists(
        st.tuples(st.sampled_from([CALL, OTHER]), st.integers(0, 1000), st.floats(0, 1)), max_size=8
    )
)
def test_observations_of_other_processes_count_the_same(
    observed: list[tuple[bytes, int, float]],
) -> None:
    here, there = CallStatistics(DECLARED), CallStatistics(DECLARED)
    for call, items, seconds in observed:
        here.observe("near", call, items=items, true=items // 2, seconds=seconds)
        for operator, told, *counts in here.take_unsent():
            there.add(operator, told.encode(), *counts)
    assert here.take_unsent() == []
    calls = [CALL, OTHER, b"[]"]
    np.testing.assert_allclose(here.counts_of(calls), there.counts_of(calls))
    for name in ("near", "mob"):
        mine, theirs = here.of_operator(name), there.of_operator(name)
        assert mine.cost_s == pytest.approx(theirs.cost_s)
        assert 0 < mine.cost_s < np.inf
        assert mine.selectivity == pytest.approx(theirs.selectivity)


# What workers report adds up to what one process would have known.

REPORTED = [Declaration("near", "m:near", cost=40.0), Declaration("mob", "m:mob")]
CALLS = {"near": b'["near", ["Bronx"]]', "mob": b'["mob", [["0"]]]'}

names = st.sampled_from([each.name for each in REPORTED])
observed = st.tuples(names, st.integers(0, 100), st.integers(0, 50))
failed = st.tuples(names, st.sampled_from(Failure), st.integers(1, 9))
reporting = st.just(None)
events = st.lists(st.tuples(st.integers(0, 2), st.one_of(observed, failed, reporting)))


def note(
    ledger: OperatorStatistics, event: tuple[str, int, int] | tuple[str, Failure, int]
) -> None:
    name, what, count = event
    if isinstance(what, Failure):
        ledger.fail(name, what, count, f"{what} of {name}")
    else:
        items, seconds = what + count, count / 8  # eighths add up exactly
        ledger.estimates.observe(name, CALLS[name], items=items, true=count, seconds=seconds)


def known(ledger: OperatorStatistics) -> dict[str, object]:
    """Which failure was last depends on who reports when."""
    return {
        name: (ledger.estimates.of_operator(name), failures.counts)
        for name, failures in ledger.failures.items()
    }


@given(events)
def test_reports_add_up(events: list[tuple[int, object]]) -> None:
    alone, driver = OperatorStatistics(REPORTED), OperatorStatistics(REPORTED)
    workers = [OperatorStatistics(REPORTED) for _ in range(3)]
    for number, event in events:
        if event is None:
            driver.add(json.loads(json.dumps(workers[number].take_report())))
        else:
            note(alone, event)  # type: ignore[arg-type]
            note(workers[number], event)  # type: ignore[arg-type]
    for worker in workers:
        driver.add(json.loads(json.dumps(worker.take_report())))
        assert worker.take_report() == {}
    assert known(driver) == known(alone)
    new = OperatorStatistics(REPORTED)
    new.add(json.loads(json.dumps(driver.whole_report())))
    assert known(new) == known(alone)


def test_reports_of_undeclared_operators_are_ignored() -> None:
    old, new = OperatorStatistics(REPORTED), OperatorStatistics(REPORTED[:1])
    note(old, ("mob", 5, 5))
    note(old, ("mob", Failure.LATE, 1))
    new.add(old.take_report())
    assert set(new.failures) == {"near"}


def test_a_damaged_report_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "operators.json"
    assert read_report(path) == {}
    for content in (b"", b"[1", b"[1]", b"\xff"):
        path.write_bytes(content)
        assert read_report(path) == {}
    path.write_bytes(b'{"observed": []}')
    assert read_report(path) == {"observed": []}
