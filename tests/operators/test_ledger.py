"""What workers report adds up to what one process would have known."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.operators.declaration import Declaration
from headgate.operators.failures import Failure
from headgate.operators.ledger import Ledger, read_report

DECLARED = [Declaration("near", "m:near", cost=40.0), Declaration("mob", "m:mob")]
CALLS = {"near": b'["near", ["Bronx"]]', "mob": b'["mob", [["0"]]]'}

names = st.sampled_from([each.name for each in DECLARED])
observed = st.tuples(names, st.integers(0, 100), st.integers(0, 50))
failed = st.tuples(names, st.sampled_from(Failure), st.integers(1, 9))
reporting = st.just(None)
events = st.lists(st.tuples(st.integers(0, 2), st.one_of(observed, failed, reporting)))


def note(ledger: Ledger, event: tuple[str, int, int] | tuple[str, Failure, int]) -> None:
    name, what, count = event
    if isinstance(what, Failure):
        ledger.fail(name, what, count, f"{what} of {name}")
    else:
        items, seconds = what + count, count / 8  # eighths add up exactly
        ledger.estimates.observe(name, CALLS[name], items=items, true=count, seconds=seconds)


def known(ledger: Ledger) -> dict[str, object]:
    """Which failure was last depends on who reports when."""
    return {
        name: (ledger.estimates.of_operator(name), failures.counts)
        for name, failures in ledger.failures.items()
    }


@given(events)
def test_reports_add_up(events: list[tuple[int, object]]) -> None:
    alone, driver = Ledger(DECLARED), Ledger(DECLARED)
    workers = [Ledger(DECLARED) for _ in range(3)]
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
    new = Ledger(DECLARED)
    new.add(json.loads(json.dumps(driver.whole_report())))
    assert known(new) == known(alone)


def test_what_is_not_declared_any_more_is_left_out() -> None:
    old, new = Ledger(DECLARED), Ledger(DECLARED[:1])
    note(old, ("mob", 5, 5))
    note(old, ("mob", Failure.LATE, 1))
    new.add(old.take_report())
    assert set(new.failures) == {"near"}


def test_a_damaged_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "operators.json"
    assert read_report(path) == {}
    for content in (b"", b"[1", b"[1]", b"\xff"):
        path.write_bytes(content)
        assert read_report(path) == {}
    path.write_bytes(b'{"observed": []}')
    assert read_report(path) == {"observed": []}
