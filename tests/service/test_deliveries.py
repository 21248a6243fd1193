"""What became of deliveries, and sending again, by HTTP: a receiver that fails, and then works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
from tests.deliver.log_world import news
from tests.deliver.servers import Receiver, receiver
from tests.deliver.things import settings
from tests.service.test_api import SCRIPT, Home, apply, problem_in, serving

from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.catalog.principals import Scope
from headgate.deliver.confirmations import address_key, ask_again, claim, settle
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_webhook import WebhookSettings
from headgate.model.addresses import LOOPBACK
from headgate.store.data_folder import DataFolder


class Delivering:
    """A feed of acme with a subscription, and a worker that delivers it."""

    def __init__(self, home: Home, client: httpx.Client, hook: Receiver) -> None:
        apply(client, SCRIPT)
        target = {"feed": "Rock", "output": "webhook", "target": f"{hook.url}/x"}
        made = client.post("/v1/subscriptions", json=target | {"valid_for": "90 days"})
        self.path = made.headers["location"]
        self.client, self.hook, self.log = client, hook, home.make_log()
        self.log.now = datetime.now(UTC) + timedelta(seconds=1)
        self.number = home.catalog.definitions().number_of("acme.Rock")
        self.database = DeliveryDatabase(DataFolder(home.folder).delivery_database)
        hooks = WebhookSettings(key=home.catalog.installation_key(), allowed=LOOPBACK)
        self.worker = DeliveryWorker(
            self.log.storage,
            DeliveryCatalog(home.catalog),
            self.database,
            settings(home.folder, webhook=hooks, attempts_max=2),
            now=lambda: self.log.now,
        )

    def publish(self, *names: str) -> None:
        self.log.publish(*(news(each, self.number, source="acme.News") for each in names))

    def deliver(self) -> None:
        while not self.worker.step(self.log.pass_time(1_000)).is_idle:
            pass

    def calls(self) -> list[tuple[str, str]]:
        """The item and the message id of each call, since the last time."""
        found = [
            (json.loads(body)["data"]["items"][0]["id"], headers["webhook-id"])
            for _, headers, body in self.hook.calls
        ]
        del self.hook.calls[:]
        return sorted(found)


@contextmanager
def delivering(home: Home, client: httpx.Client) -> Iterator[Delivering]:
    with receiver() as hook:
        found = Delivering(home, client, hook)
        try:
            yield found
        finally:
            found.worker.close()
            found.database.close()


@contextmanager
def delivering_at(home: Home, url: str) -> Iterator[Delivering]:
    """With another service over the same catalog."""
    headers = {"authorization": f"Bearer {home.token('acme')}"}
    with (
        httpx.Client(base_url=url, headers=headers, timeout=30) as client,
        delivering(home, client) as world,
    ):
        yield world


def test_dead_letters_are_listed_and_sent_again(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        world.hook.answer = lambda _, body: (500 if b'"bad' in body else 204, {})
        world.publish("bad1", "good", "bad2")
        waiting = acme.get(f"{world.path}/deliveries").json()
        assert (waiting["state"], waiting["waiting"], waiting["dead"]) == ("waiting", 3, 0)
        world.deliver()
        found = acme.get(f"{world.path}/deliveries").json()
        assert (found["state"], found["cursor"], found["waiting"]) == ("current", 3, 0)
        assert found["dead"] == 2
        assert "500" in found["last_error"]
        ids = dict(world.calls())
        letters = found["letters"]  # in the order in which they died
        bad = {0: "bad1", 2: "bad2"}
        assert {each["position"]: each["attempts"] for each in letters} == {0: 2, 2: 2}
        assert all(each["message"] == ids[bad[each["position"]]] for each in letters)
        page = acme.get(f"{world.path}/deliveries", params={"limit": 1}).json()
        assert page["letters"] == letters[:1]
        page = acme.get(f"{world.path}/deliveries", params={"after": page["next"]}).json()
        assert page["letters"] == letters[1:]
        # It works now: first one letter, then all, then everything once more.
        world.hook.answer = lambda *_: (204, {})
        replay, dry = f"{world.path}/replay", {"dry_run": True}
        plan = acme.post(replay, json={}, params=dry).json()
        assert plan == {"letters": 2, "letters_left": 0, "items": 0, "resumed": False}
        world.deliver()
        assert world.calls() == []
        one = {"letter": letters[1]["number"]}
        assert acme.post(replay, json=one).json()["letters"] == 1
        world.deliver()
        first, second = (bad[each["position"]] for each in letters)
        assert world.calls() == [(second, ids[second])]
        assert acme.post(replay, json={}).json()["letters"] == 1
        world.deliver()
        assert world.calls() == [(first, ids[first])]
        assert acme.post(replay, json={"since": 1}, params=dry).json()["items"] == 2
        assert acme.post(replay, json={"since": 1}).json()["items"] == 2
        world.deliver()
        assert world.calls() == [("bad2", ids["bad2"]), ("good", ids["good"])]
        assert acme.get(f"{world.path}/deliveries").json()["letters"] == []
        assert acme.get("/v1/audit").text.count('"replayed"') == 3
        problem_in(acme.post(replay, json={"letter": 1, "since": 1}), 422)


def test_a_receiver_that_is_away_or_gone(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        world.hook.answer = lambda *_: (503, {})
        world.publish("n1")
        world.worker.step(world.log.now)
        found = acme.get(f"{world.path}/deliveries").json()
        assert (found["state"], found["failures"], found["waiting"]) == ("failing", 1, 1)
        assert found["next_attempt"] > "2026"
        world.hook.answer = lambda *_: (410, {})
        world.deliver()
        world.calls()
        assert acme.get(f"{world.path}/deliveries").json()["state"] == "halted"
        world.hook.answer = lambda *_: (204, {})
        assert acme.post(f"{world.path}/replay", json={}).json()["resumed"]
        world.deliver()
        assert [item for item, _ in world.calls()] == ["n1"]
        assert acme.get(f"{world.path}/deliveries").json()["state"] == "current"


def test_only_the_tenant_and_the_scope(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        with home.client("globex") as globex:
            for path in (world.path, "/v1/subscriptions/99"):
                number = path.rpartition("/")[2]
                for answer in (
                    globex.get(f"{path}/deliveries"),
                    globex.post(f"{path}/replay", json={}),
                ):
                    problem = problem_in(answer, 404)
                    assert problem["detail"] == f"there is no active subscription {number}"
        with home.client("acme", Scope.READ) as reader:
            problem_in(reader.get(f"{world.path}/deliveries"), 403)
            problem_in(reader.post(f"{world.path}/replay", json={}), 403)


def test_before_the_first_delivery(home: Home) -> None:
    with home.client("acme") as acme:
        apply(acme, SCRIPT)
        mail = {"feed": "Rock", "output": "mail", "target": "a@b.org"}
        path = acme.post("/v1/subscriptions", json=mail).headers["location"]
        problem_in(acme.get(f"{path}/deliveries"), 503)  # there was no run
        home.make_log()
        found = acme.get(f"{path}/deliveries").json()
        assert (found["state"], found["waiting"], found["letters"]) == ("unconfirmed", 0, [])
        assert acme.post(f"{path}/replay", json={}).json()["letters"] == 0


def test_all_subscriptions_those_with_problems_first(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        apply(acme, "create feed Jazz from News where title contains 'jazz';")
        more = {"feed": "Jazz", "output": "cloudevents", "target": "https://a.example/Jazz.json"}
        other_path = acme.post("/v1/subscriptions", json=more).headers["location"]
        mail = {"feed": "Rock", "output": "mail", "target": "a@b.org"}
        acme.post("/v1/subscriptions", json=mail)
        world.hook.answer = lambda *_: (410, {})
        world.publish("n1")
        world.deliver()
        page = acme.get("/v1/deliveries").json()
        states = [(each["feed"], each["output"], each["state"]) for each in page["entries"]]
        assert states == [
            ("Rock", "webhook", "halted"),
            ("Rock", "mail", "unconfirmed"),
            ("Jazz", "cloudevents", "current"),
        ]
        totals = {state: many for state, many in page["totals"].items() if many}
        assert totals == {"halted": 1, "unconfirmed": 1, "current": 1}
        halted = page["entries"][0]
        assert (halted["waiting"], halted["dead"]) == (1, 0)
        assert "410" in halted["last_error"]
        first = acme.get("/v1/deliveries", params={"limit": 2}).json()
        rest = acme.get("/v1/deliveries", params={"after": first["next"]}).json()
        assert [*first["entries"], *rest["entries"]] == page["entries"]
        for query, many in (
            ({"state": "halted"}, 1),
            ({"feed": "Rock"}, 2),
            ({"words": "JAZZ.json"}, 1),
            ({"has_dead": True}, 0),
            ({"state": "paused"}, 0),
        ):
            assert acme.get("/v1/deliveries", params=query).json()["matching"] == many
        problem_in(acme.get("/v1/deliveries", params={"after": "x"}), 422)
        assert acme.delete(other_path).status_code == 204
        assert acme.get("/v1/deliveries").json()["totals"]["current"] == 0
        with home.client("globex") as globex:
            assert globex.get("/v1/deliveries").json()["entries"] == []
        with home.client("acme", Scope.READ) as reader:
            problem_in(reader.get("/v1/deliveries"), 403)


def test_before_the_first_run_subscriptions_are_listed(home: Home) -> None:
    with home.client("acme") as acme:
        apply(acme, SCRIPT)
        hook = {"feed": "Rock", "output": "webhook", "target": "https://a.example/"}
        acme.post("/v1/subscriptions", json=hook)
        assert [each["state"] for each in acme.get("/v1/deliveries").json()["entries"]] == [
            "current"
        ]


def test_paused_and_resumed(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        world.publish("n1")
        world.deliver()
        assert [item for item, _ in world.calls()] == ["n1"]
        paused = acme.post(f"{world.path}/pause").json()
        assert paused["paused_at"] > "2026"
        assert acme.post(f"{world.path}/pause").json() == paused
        world.publish("n2", "n3")
        world.deliver()
        assert world.calls() == []
        found = acme.get(f"{world.path}/deliveries").json()
        assert (found["state"], found["waiting"], found["cursor"]) == ("paused", 2, 1)
        listed = acme.get("/v1/deliveries", params={"state": "paused"}).json()["entries"]
        assert [(each["id"], each["waiting"]) for each in listed] == [(paused["id"], 2)]
        assert "paused_at" not in acme.post(f"{world.path}/resume").json()
        world.deliver()
        assert [item for item, _ in world.calls()] == ["n2", "n3"]
        found = acme.get(f"{world.path}/deliveries").json()
        assert (found["state"], found["waiting"]) == ("current", 0)
        assert [each["status"] for each in found["attempts"]] == [204, 204, 204]
        audit = acme.get("/v1/audit").text
        assert (audit.count('"paused"'), audit.count('"resumed"')) == (1, 1)
        with home.client("globex") as globex:
            problem_in(globex.post(f"{world.path}/pause"), 404)
            problem_in(globex.post(f"{world.path}/resume"), 404)
        with home.client("acme", Scope.READ) as reader:
            problem_in(reader.post(f"{world.path}/pause"), 403)


def test_a_test_call_shows_what_the_receiver_answers(home: Home) -> None:
    home.headgate.catalog.installation_key()
    with serving(home.headgate, allowed=LOOPBACK) as url, delivering_at(home, url) as world:
        acme = world.client
        world.hook.answer = lambda *_: (418, {})
        found = acme.post(f"{world.path}/test").json()
        assert (found["taken"], found["status"]) == (False, 418)
        ((_, headers, body),) = world.hook.calls
        assert headers["webhook-id"] == found["message"]
        assert headers["webhook-signature"].startswith("v1,")
        assert json.loads(body)["type"] == "headgate.test"
        world.hook.answer = lambda *_: (204, {})
        assert acme.post(f"{world.path}/test").json()["taken"]
        assert acme.get(f"{world.path}/deliveries").json()["attempts"] == []
        mail = {"feed": "Rock", "output": "mail", "target": "a@b.org"}
        path = acme.post("/v1/subscriptions", json=mail).headers["location"]
        problem_in(acme.post(f"{path}/test"), 422)
        with home.client("globex") as globex:
            problem_in(globex.post(f"{world.path}/test"), 404)
        answers = [acme.post(f"{world.path}/test").status_code for _ in range(12)]
        assert answers[-1] == 429


def test_a_test_call_goes_to_no_private_address(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        found = acme.post(f"{world.path}/test").json()
        assert (found["taken"], "status" in found) == (False, False)
        assert "not connected to" in found["error"]
        assert world.hook.calls == []


def test_several_letters_are_sent_again(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        world.hook.answer = lambda *_: (500, {})
        world.publish("a", "b", "c")
        world.deliver()
        world.calls()
        letters = acme.get(f"{world.path}/deliveries").json()["letters"]
        some = {"letters": [letters[0]["number"], letters[2]["number"]]}
        plan = acme.post(f"{world.path}/replay", json=some, params={"dry_run": True}).json()
        assert (plan["letters"], plan["resumed"]) == (2, False)
        world.hook.answer = lambda *_: (204, {})
        assert acme.post(f"{world.path}/replay", json=some).json()["letters"] == 2
        world.deliver()
        left = acme.get(f"{world.path}/deliveries").json()["letters"]
        assert [each["number"] for each in left] == [letters[1]["number"]]
        assert len(world.calls()) == 2


def test_a_reader_is_asked_once_more_after_a_day(home: Home) -> None:
    with home.client("acme") as acme, delivering(home, acme) as world:
        mail = {"feed": "Rock", "output": "mail", "target": "a+x@b.org"}
        path = acme.post("/v1/subscriptions", json=mail).headers["location"]
        number = int(path.rpartition("/")[2])
        again, now_s = f"{path}/confirmation", datetime.now(UTC).timestamp()
        assert acme.post(again).status_code == 202  # the first mail is still to come
        key = address_key("a@b.org", "acme")
        assert claim(world.database, key, newest=number, now_s=now_s)
        settle(world.database, key, newest=number)
        refused = acme.post(again)
        problem_in(refused, 429)
        assert 86_000 < int(refused.headers["retry-after"]) <= 86_400
        assert not claim(world.database, key, newest=number, now_s=now_s + 90_000)
        assert ask_again(world.database, key, now_s=now_s + 90_000) == 0
        assert claim(world.database, key, newest=number, now_s=now_s + 90_000)
        problem_in(acme.post(f"{world.path}/confirmation"), 422)
        with home.client("globex") as globex:
            problem_in(globex.post(again), 404)
