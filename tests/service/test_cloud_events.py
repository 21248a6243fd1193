"""CloudEvents that its own library sends, and what is wrong with others."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import compare_with_golden
from tests.service.test_api import Home, apply, problem_in

from headgate.acquire.spool import Spool
from headgate.model.errors import InvalidValue
from headgate.service import cloud_events
from headgate.service.cloud_events import BATCH, STRUCTURED, EventPost, read_cloud_events

SCRIPT = """
register stream Orders from post
  (id text, type text, subject text, time timestamp, title text, n int);
register stream Plain from post (title text, n int);
"""
EVENT = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/shop/1",
    "type": "shop.order",
    "subject": "orders/1",
    "time": "2026-11-16T12:00:00Z",
    "data": {"title": "loud rock", "n": 7},
}
names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20
)
values = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20)
data = st.dictionaries(st.text(max_size=8), values | st.lists(values, max_size=3), max_size=5)
times = st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1))


@st.composite
def events(draw: st.DrawFn) -> CloudEvent:
    optional = {
        "subject": draw(st.none() | names),
        "time": draw(st.none() | times),
        "datacontenttype": draw(st.none() | st.just("application/json")),
        "traceid": draw(st.none() | names),
    }
    attributes = {"id": draw(names), "source": draw(names), "type": draw(names)}
    given_ones = {name: value for name, value in optional.items() if value is not None}
    return CloudEvent({**attributes, **given_ones}, draw(data))


def expected_line(event: CloudEvent) -> dict[str, Any]:
    """What an item is made of, by the library's own accessors."""
    found: dict[str, Any] = {
        "id": event.get_id(),
        "source": event.get_source(),
        "type": event.get_type(),
    }
    time = event.get_time()
    assert time is not None, "the library sets it"
    found["time"] = time.isoformat()
    for name, value in (
        ("subject", event.get_subject()),
        ("traceid", event.get_extension("traceid")),
    ):
        if value is not None:
            found[name] = value
    body = event.get_data()
    assert isinstance(body, dict)
    return {**found, **body}


def lines(found: list[EventPost | InvalidValue]) -> list[dict[str, Any]]:
    assert all(isinstance(each, EventPost) for each in found), found
    return [json.loads(each.line) for each in found]  # type: ignore[union-attr]


@given(st.lists(events(), max_size=4))
def test_what_the_library_sends_is_read_in_every_mode(sent: list[CloudEvent]) -> None:
    expected = [expected_line(each) for each in sent]
    structured = [to_structured_event(each) for each in sent]
    for event, message, line in zip(sent, structured, expected, strict=True):
        assert lines(read_cloud_events(message.headers, message.body)) == [line]
        binary = to_binary_event(event)
        headers = {name.lower(): value for name, value in binary.headers.items()}
        assert lines(read_cloud_events(headers, binary.body)) == [line]
    batch = b"[" + b",".join(each.body for each in structured) + b"]"
    found = read_cloud_events({"content-type": f"{BATCH}; charset=utf-8"}, batch)
    assert lines(found) == expected
    keys = [each.key for each in found if isinstance(each, EventPost)]
    pairs = {(each.get_source(), each.get_id()) for each in sent}
    assert len(set(keys)) == len(pairs)


json_values = st.recursive(
    values | st.floats(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(st.dictionaries(st.sampled_from([*EVENT, "data_base64", "x-y", ""]), json_values))
def test_anything_is_read_or_refused_with_a_reason(changes: dict[str, Any]) -> None:
    event = {**EVENT, **changes}
    body = json.dumps([event, EVENT]).encode()
    found, good = read_cloud_events({"content-type": BATCH}, body)
    assert isinstance(good, EventPost)
    if isinstance(found, InvalidValue):
        assert 0 < len(str(found)) <= cloud_events.REASON_LENGTH_MAX
    else:
        assert isinstance(json.loads(found.line), dict)


@pytest.fixture
def acme(home: Home) -> Iterator[httpx.Client]:
    with home.client("acme") as client:
        assert apply(client, SCRIPT).status_code == 200
        yield client


def post(
    client: httpx.Client, body: object, media_type: str = STRUCTURED, source: str = "Orders"
) -> dict[str, Any]:
    headers = {"content-type": media_type}
    content = json.dumps(body).encode()
    answer = client.post(f"/v1/sources/{source}/items", content=content, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()  # type: ignore[no-any-return]


def spooled(home: Home) -> list[dict[str, Any]]:
    """The lines of all spools, in order."""
    found = []
    for folder in sorted(home.folder.glob("sources/*/spool")):
        spool = Spool(folder)
        for frame in spool.frames(spool.first(), spool.end()):
            found += [json.loads(each) for each in frame.lines.split(b"\n")]
    return found


def test_the_three_modes_give_the_same_item(home: Home, acme: httpx.Client) -> None:
    event = CloudEvent(
        {**{name: value for name, value in EVENT.items() if name != "data"},
         "time": datetime(2026, 11, 16, 12, tzinfo=UTC)},
        dict(EVENT["data"]),  # type: ignore[call-overload]
    )  # fmt: skip
    first = post(acme, EVENT)
    assert (first["accepted"], first["rejected"]) == (1, 0)
    for message in (to_binary_event(event), to_structured_event(event)):
        answer = acme.post(
            "/v1/sources/Orders/items", content=message.body, headers=message.headers
        )
        assert answer.json() == first, "the same event comes again"
    assert post(acme, [EVENT, EVENT], BATCH) == {**first, "accepted": 2}
    zipped = {"content-type": STRUCTURED, "content-encoding": "gzip"}
    content = gzip.compress(json.dumps(EVENT).encode())
    assert acme.post("/v1/sources/Orders/items", content=content, headers=zipped).json() == first
    (line,) = spooled(home)
    compare_with_golden(
        "service/cloud-event.json", json.dumps(line, indent=2, sort_keys=True) + "\n"
    )


def test_an_event_with_the_id_of_another_is_refused(home: Home, acme: httpx.Client) -> None:
    post(acme, EVENT)
    other = {**EVENT, "data": {"title": "other", "n": 1}}
    answer = post(acme, [other, {**other, "source": "/shop/2"}, {**other, "id": "A-2"}], BATCH)
    assert (answer["accepted"], answer["rejected"]) == (2, 1)
    assert answer["reasons"] == [
        {"event": 1, "reason": "another event with this source and id was posted before"}
    ]
    assert len(spooled(home)) == 3
    # Another source of the tenant has ids of its own.
    assert post(acme, EVENT, source="Plain")["accepted"] == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "attribute 'id' is missing or empty"),
        ({"id": ""}, "attribute 'id' is missing or empty"),
        ({"source": None}, "attribute 'source' is missing or empty"),
        ({"type": []}, "attribute 'type' is missing or empty"),
        ({"id": 7}, "attribute 'id': Attribute 'id' must be a <class 'str'>"),
        ({"specversion": "0.3"}, "attribute 'specversion': Attribute 'specversion' must be '1.0'"),
        ({"time": "yesterday"}, "the event cannot be read: Invalid isoformat string: 'yesterday'"),
        ({"time": "2026-11-16"}, "attribute 'time': Attribute 'time' must be timezone aware"),
        ({"data": [1]}, "attribute 'data': expected a JSON object, as application/json it is none"),
        ({"data": "x", "datacontenttype": "text/plain"},
         "attribute 'data': expected a JSON object, as text/plain it is none"),
        ({"data_base64": "e30="}, "an event has 'data' or 'data_base64', not both"),
        ({"data": {"n": "seven"}}, "attribute 'n': expected an int, found the text 'seven'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_event_is_said_of_it(
    acme: httpx.Client, changes: dict[str, Any], reason: str
) -> None:
    wrong = {name: value for name, value in {**EVENT, **changes}.items() if value is not None}
    answer = post(acme, [{**EVENT, "id": "good"}, wrong], BATCH)
    assert (answer["accepted"], answer["reasons"]) == (1, [{"event": 2, "reason": reason}])


def test_bytes_are_read_where_they_are_json(acme: httpx.Client, home: Home) -> None:
    event = {name: value for name, value in EVENT.items() if name != "data"}
    good = base64.b64encode(b'{"n": 5}').decode()
    assert post(acme, {**event, "data_base64": good})["accepted"] == 1
    assert spooled(home)[0]["n"] == 5
    bad = {**event, "id": "B"}
    for wrong in (base64.b64encode(b"\xff\x00").decode(), "%%%", 5, "é"):
        assert post(acme, {**bad, "data_base64": wrong})["rejected"] == 1
    assert post(acme, bad)["accepted"] == 1, "an event may have no data"


def test_bodies_that_are_no_events_are_refused(
    home: Home, acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/v1/sources/Orders/items"

    def refused(content: bytes, media_type: str, status: int = 422) -> str:
        headers = {"content-type": media_type}
        return str(problem_in(acme.post(path, content=content, headers=headers), status)["detail"])

    assert refused(b"{", STRUCTURED) == "the body is no JSON"
    assert refused(b"[" * 100_000, BATCH) == "the body is no JSON"
    assert refused(b"{}", BATCH) == "a batch of CloudEvents is a JSON array"
    assert refused(b"<a/>", "application/cloudevents+xml").startswith("CloudEvents are posted as")
    refused(b"x" * 10_000_001, STRUCTURED, 413)
    assert post(acme, [1, None, "x"], BATCH)["rejected"] == 3
    monkeypatch.setattr(cloud_events, "EVENTS_MAX", 2)
    assert "post at most 2" in refused(json.dumps([EVENT] * 3).encode(), BATCH)
    headers = {"ce-specversion": "1.0", **{f"ce-x{n}": "y" for n in range(101)}}
    answer = acme.post(path, content=b"{}", headers=headers).json()
    assert answer["reasons"][0]["reason"] == "an event has at most 100 attributes"
    with home.client("globex") as globex:
        answer = globex.post(path, content=json.dumps(EVENT), headers={"content-type": STRUCTURED})
        assert "acme" not in problem_in(answer, 404)["detail"]  # type: ignore[operator]
