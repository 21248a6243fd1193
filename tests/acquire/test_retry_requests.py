"""Somebody asks for a feed to be fetched now, in another process than the one that fetches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.acquire.acquirer_process import QUICK
from tests.acquire.hostile_server import Server, answer, says
from tests.acquire.rss import rss, wait_for
from tests.acquire.test_acquirer import acquiring
from tests.acquire.test_fetch_scheduler import feed, taken, turns

from headgate.acquire.inbox_tables import broken_feeds, feed_table
from headgate.acquire.refresh_queue import RefreshPolicy
from headgate.acquire.refresh_state import RefreshState
from headgate.acquire.retry_requests import is_retry_requested, request_retry, take_retries


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    assert take_retries(tmp_path) == []
    for name in ("acme.News", "acme.News", "Ünï / ..", "lone \ud800"):
        request_retry(tmp_path, name)
    (tmp_path / "retry" / ".half").write_bytes(b"being written")
    assert is_retry_requested(tmp_path, "acme.News")
    assert not is_retry_requested(tmp_path, "News")
    assert sorted(take_retries(tmp_path)) == sorted(["acme.News", "Ünï / ..", "lone \ud800"])
    assert take_retries(tmp_path) == []
    assert not is_retry_requested(tmp_path, "acme.News")


def test_a_feed_that_waits_is_fetched_before_its_time() -> None:
    one = feed("a")
    scheduler = turns(one)
    assert taken(scheduler, 0.0) == ["a"]
    scheduler.done(one, RefreshState(failures=3, not_before=10_000.0), 1.0)
    assert taken(scheduler, 100.0) == []
    scheduler.retry("a", 100.0)
    scheduler.retry("a", 100.0)
    scheduler.retry("unknown", 100.0)
    assert taken(scheduler, 100.0) == ["a"]
    scheduler.retry("a", 100.0)  # it is being fetched
    assert taken(scheduler, 100.0) == []


def test_hosts_and_skip_hours_are_respected() -> None:
    one, two = feed("a", "host"), feed("b", "host")
    scheduler = turns(one, two, delay_s=5.0)
    (first,) = taken(scheduler, 0.0)
    assert taken(scheduler, 4.0) == []
    scheduler.retry("b" if first == "a" else "a", 4.0)
    assert taken(scheduler, 4.0) == []  # its host is busy
    night = feed("n")
    scheduler = turns(night)
    assert taken(scheduler, 3_600.0) == ["n"]
    scheduler.done(night, RefreshState(not_before=1e6, skip_hours=(2,)), 3_601.0)
    scheduler.retry("n", 7_200.0)
    assert taken(scheduler, 7_300.0) == []
    assert taken(scheduler, 10_800.0) == ["n"]


def test_a_broken_feed_is_repaired_and_retried(tmp_path: Path, server: Server) -> None:
    url = server.on("/a", says(b"", status="500 Oh no"))
    patient = replace(QUICK, policy=RefreshPolicy(3_600.0, 7_200.0, backoff_first_s=3_600.0))
    with acquiring(tmp_path, [url], patient) as (acquirer, _):
        wait_for(lambda: len(broken_feeds(tmp_path)) == 1)
        (broken,) = broken_feeds(tmp_path)
        server.on("/a", lambda request: request.send(answer(rss(["1"]))))
        request_retry(tmp_path, broken.name)
        acquirer.retry(take_retries(tmp_path))
        wait_for(lambda: not broken_feeds(tmp_path))
        assert [each.items for each in feed_table(tmp_path)] == [1]
        assert len(server.requests) == 2
