"""Frames between relays, and the file that they read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.relay.relay_networks import VIEWS, news_network, refusal
from tests.views.strategies import all_patterns

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.relay.deployment import Deployment, RelayView, json_of_pattern, pattern_of_json
from headgate.relay.deployment_file import address_of, read_deployment, write_deployment
from headgate.relay.streams import Position
from headgate.relay.wire import (
    pack_marks,
    pack_results,
    pack_resume,
    unpack_json,
    unpack_marks,
    unpack_number,
    unpack_results,
    unpack_resume,
)

views = st.integers(0, 2**31 - 1)
numbers = st.integers(-1, 2**62)


@given(st.lists(st.tuples(views, numbers)))
def test_marks_come_back(marks: list[tuple[int, int]]) -> None:
    assert unpack_marks(pack_marks(marks)) == marks


@given(st.lists(st.builds(Position, views, numbers, numbers)), st.integers(1, 99))
def test_positions_come_back(positions: list[Position], window: int) -> None:
    assert unpack_resume(pack_resume(positions, window=window)) == (positions, window)


@given(st.lists(st.tuples(views, numbers, st.binary(max_size=9))))
def test_results_come_back(results: list[tuple[int, int, bytes]]) -> None:
    assert unpack_results(pack_results(results)) == results


@given(
    st.binary(max_size=80),
    st.sampled_from([unpack_marks, unpack_resume, unpack_results, unpack_json, unpack_number]),
)
def test_any_bytes_are_taken_or_refused(content: bytes, unpack: Callable[[bytes], object]) -> None:
    assert refusal(lambda: unpack(content)) != ""


def test_more_results_than_there_are_bytes() -> None:
    with pytest.raises(RelayError, match="4,294,967,295 results are announced in 4 bytes"):
        unpack_results(b"\xff\xff\xff\xff")


@given(all_patterns)
def test_patterns_come_back(pattern: PatternNode) -> None:
    assert pattern_of_json(json.loads(json.dumps(json_of_pattern(pattern)))) == pattern


def test_a_network_comes_back_from_its_file(tmp_path: Path) -> None:
    deployment, path = news_network(), tmp_path / "network.json"
    write_deployment(path, deployment)
    back = read_deployment(path)
    assert back == deployment
    assert back.plan_id == deployment.plan_id
    moved = Deployment("news", "source", deployment.addresses, VIEWS[:4])
    assert moved.plan_id != deployment.plan_id


WRONG = {
    "{": "is no JSON",
    "[]": "expected format, network, source, sites and views",
    '{"format": "x", "network": "n", "source": "s", "sites": {}, "views": []}': "this is 'x'",
}


@pytest.mark.parametrize(("text", "reason"), WRONG.items())
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "network.json"
    path.write_text(text)
    with pytest.raises(RelayError, match=f"network.json.*{reason}"):
        read_deployment(path)


A = VIEWS[0].pattern
WRONG_VIEWS = {
    "needs site 'Pari', which is not among the sites: did you mean 'Paris'": (
        RelayView("v", "Pari", A),
    ),
    "there are two views v at Rome": (RelayView("v", "Rome", A), RelayView("v", "Rome", A)),
    "reads a view that is not among 0 … 0": (RelayView("v", "Rome", A, (1,)),),
    "reads a view twice": (RelayView("u", "Rome", A), RelayView("v", "Rome", A, (0, 0))),
    "there is a cycle": (RelayView("u", "Rome", A, (1,)), RelayView("v", "Rome", A, (0,))),
    "there are no views": (),
}


@pytest.mark.parametrize(("reason", "wrong"), WRONG_VIEWS.items())
def test_views_that_cannot_be_run_are_refused(reason: str, wrong: tuple[RelayView, ...]) -> None:
    with pytest.raises(RelayError, match=reason):
        Deployment("news", "source", news_network().addresses, wrong)


@pytest.mark.parametrize("text", ["", "7000", ":7000", "host:", "host:0", "host:99999", "a:b"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(RelayError, match="expected host:port"):
        address_of(text)
