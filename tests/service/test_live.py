"""Items as they arrive: with any disconnections, a client sees what the log has, each once."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator

import httpx
import pytest
from tests.deliver.log_world import news
from tests.service.test_api import PATIENCE_S, SCRIPT, Home, apply, problem_in

from headgate.service import live


@pytest.fixture
def acme(home: Home) -> Iterator[httpx.Client]:
    with home.client("acme") as client:
        apply(client, SCRIPT)
        yield client


class Events:
    """A client of server-sent events that notes the last id, as browsers do."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        self._client, self._path = client, path
        self.last_id: str | None = None
        self.items: list[dict[str, object]] = []

    def read(self, count: int) -> None:
        """Connect, read at least so many items, and disconnect."""
        headers = {} if self.last_id is None else {"last-event-id": self.last_id}
        with self._client.stream("GET", self._path, headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            read = 0
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    self.last_id = value
                elif name == "data":
                    self.items.append(json.loads(value))
                    read += 1
                if read >= count:
                    return


def test_a_client_that_comes_and_goes_sees_everything_once(home: Home, acme: httpx.Client) -> None:
    log, rng = home.make_log(), random.Random(7)
    number = home.catalog.definitions().number_of("acme.Rock")
    names = [f"n{n}" for n in range(300)]
    expected = [name for n, name in enumerate(names) if n % 3]
    events = Events(acme, "/v1/feeds/Rock/live?since=0")
    published = threading.Event()

    def publish() -> None:
        for n, name in enumerate(names):
            log.publish(news(name, number if n % 3 else 10_000, source="acme.News"))
        published.set()

    thread = threading.Thread(target=publish)
    thread.start()
    while len(events.items) < len(expected):
        left = len(expected) - len(events.items)
        events.read(min(rng.randint(1, 40), left))
    thread.join()
    assert [each["id"] for each in events.items] == expected
    positions = [each["position"] for each in events.items]
    assert positions == sorted(set(positions))
    assert published.is_set()


def test_many_clients_of_many_feeds_see_their_own(home: Home, acme: httpx.Client) -> None:
    apply(acme, "".join(f"create feed F{n} from News where n = {n};" for n in range(5)))
    log = home.make_log()
    numbers = {n: home.catalog.definitions().number_of(f"acme.F{n}") for n in range(5)}
    clients = [Events(acme, f"/v1/feeds/F{n % 5}/live?since=0") for n in range(15)]
    sources = [Events(acme, "/v1/feeds/News/live?since=0")]
    threads = [threading.Thread(target=each.read, args=[20]) for each in clients]
    threads += [threading.Thread(target=each.read, args=[100]) for each in sources]
    for each in threads:
        each.start()
    for n in range(100):
        log.publish(news(f"n{n}", numbers[n % 5], source="acme.News"))
    for each in threads:
        each.join(PATIENCE_S)
    for n, client in enumerate(clients):
        assert [each["id"] for each in client.items] == [f"n{k}" for k in range(n % 5, 100, 5)]
    assert len(sources[0].items) == 100


def test_lines_of_json(home: Home, acme: httpx.Client) -> None:
    log = home.make_log()
    number = home.catalog.definitions().number_of("acme.Rock")
    for name in ("a", "b"):
        log.publish(news(name, number, source="acme.News"))
    headers = {"accept": "application/x-ndjson"}
    with acme.stream("GET", "/v1/feeds/Rock/live?since=0", headers=headers) as response:
        lines = (line for line in response.iter_lines() if line)
        assert [json.loads(next(lines))["id"] for _ in range(2)] == ["a", "b"]


def test_without_a_position_it_begins_now(home: Home, acme: httpx.Client) -> None:
    log = home.make_log()
    number = home.catalog.definitions().number_of("acme.Rock")
    log.publish(news("old", number, source="acme.News"))
    with acme.stream("GET", "/v1/feeds/Rock/live") as response:
        lines = response.iter_lines()
        assert next(lines) == "id: 0"
        log.publish(news("new", number, source="acme.News"))
        data = next(line for line in lines if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["id"] == "new"


def test_a_quiet_stream_moves_on_and_ends_with_its_token(
    home: Home, acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BEAT_S", 0.2)
    monkeypatch.setattr("headgate.service.caller.PRINCIPAL_S", 0.0)
    log = home.make_log()
    token = acme.post("/v1/tokens", json={"scopes": ["read"]}).json()
    headers = {"authorization": f"Bearer {token['token']}"}
    with httpx.Client(base_url=home.url, headers=headers, timeout=PATIENCE_S) as reader:
        with reader.stream("GET", "/v1/feeds/Rock/live") as response:
            lines = response.iter_lines()
            next(lines)
            for n in range(3):
                log.publish(news(f"n{n}", 10_000, source="acme.News"))
            assert next(line for line in lines if line == "id: 2")  # others' items
            acme.delete(f"/v1/tokens/{token['entry']['id']}")
            assert [*lines][-1] in ("", "id: 2")  # it ends
        problem_in(reader.get("/v1/feeds/Rock/live"), 401)


def test_another_tenant_s_feed_cannot_be_followed(home: Home, acme: httpx.Client) -> None:
    home.make_log()
    assert acme.get("/v1/feeds/Nothing/live").status_code == 404
    with home.client("globex") as globex:
        problem_in(globex.get("/v1/feeds/acme.Rock/live"), 404)
