"""`/v1/system`, `/v1/tenants`, `/v1/accounts`: what the operator sees and does, and nobody else."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder
from tests.service.test_api import PATIENCE_S, serving

from headgate.api.headgate import open as open_headgate
from headgate.catalog.principals import OWNER, Principal, Scope
from headgate.catalog.tenants import LOCAL
from headgate.pipeline.heartbeat import Moment, StageProgress, read_heartbeat
from headgate.pipeline.metric_families import folder_families, heartbeat_families, run_families
from headgate.service import run_watch
from headgate.service.app import make_app


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request looks at the folder."""
    monkeypatch.setattr(run_watch, "LOOK_S", 0.0)


class OperatedService:
    def __init__(self, made: OperatedFolder, url: str) -> None:
        self.made, self.url = made, url
        self.opened = ExitStack()
        self.operator = self.client(LOCAL, *Scope)

    def client(self, tenant: str, *scopes: Scope) -> httpx.Client:
        owner = Principal(tenant, OWNER.actor, frozenset(Scope))
        issued = self.made.headgate.catalog.acting_as(owner).issue_token(scopes)
        headers = {"authorization": f"Bearer {issued.text}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)
        return self.opened.enter_context(client)

    def system(self) -> dict[str, Any]:
        answer = self.operator.get("/v1/system")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedService]:
    made = OperatedFolder(tmp_path)
    with serving(made.headgate) as url:
        service = OperatedService(made, url)
        with service.opened:
            yield service
    made.close()


# --- the run --------------------------------------------------------------------------------------


def test_before_the_first_run_it_says_so(operated: OperatedService) -> None:
    found = operated.system()
    assert found["sentence"] == "nothing was run in this folder yet"
    assert found["bottleneck"] == "Nothing flows: no run is on."
    assert "run" not in found
    assert "is_well" not in found


def test_a_run_is_shown_with_its_stages_and_history(operated: OperatedService) -> None:
    operated.made.world.publish(news("a"))
    now_s = time.time()
    history = tuple(Moment(now_s - 5 * n, 100 - n, 10, 5, 12.5) for n in (2, 1, 0))
    beat = operated.made.beat(
        items=100,
        batches=7,
        batch_p50_ms=12.5,
        memory={"driver": 1_000},
        history=history,
        stages={"feeds-a": StageProgress(now_s, items=100, batch_s=0.25)},
    )
    assert read_heartbeat(operated.made.folder) == beat
    found = operated.system()
    assert found["is_well"]
    assert found["sentence"].startswith("all is well")
    assert found["bottleneck"] == (
        "Nothing is behind. Half of the batches take less than 12 ms; the last one of feeds-a took "
        "250 ms."
    )
    assert [each["items"] for each in found["run"]["history"]] == [98, 99, 100]
    assert found["run"]["stages"][0]["batch_s"] == 0.25
    assert found["log"]["items"] == 1


def test_the_stage_that_is_behind_is_the_bottleneck(operated: OperatedService) -> None:
    stages = {
        "windows": StageProgress(None, lag_items=4_000, lag_s=90.0),
        "tables": StageProgress(None, lag_items=9_000, lag_s=3.0),
    }
    operated.made.beat(stages=stages)
    expected = "windows holds items up: it is 90 seconds behind, by 4,000 items."
    assert operated.system()["bottleneck"] == expected
    operated.made.beat(why_ended="Java has ended", ended_s=time.time())
    found = operated.system()
    assert found["bottleneck"] == "Nothing flows: no run is on."
    assert found["problems"][0]["kind"] == "run"


def test_figures_are_those_of_prometheus() -> None:
    """Every metric that a field names is one that there is."""
    with open_headgate("sqlite://") as h:
        schemas = make_app(h).openapi()["components"]["schemas"]
    named = {
        name
        for schema, content in schemas.items()
        if schema.startswith("System")
        for name in re.findall(r"headgate_\w+", str(content))
    }
    text = "".join(
        Path(each.__code__.co_filename).read_text()
        for each in (run_families, folder_families, heartbeat_families)
    )
    assert len(named) > 10
    for name in named:
        assert f'"{name.removeprefix("headgate_").removesuffix("_total")}"' in text, name


# --- who may --------------------------------------------------------------------------------------


def test_only_the_operator_sees_and_does_it(operated: OperatedService) -> None:
    operated.made.headgate.catalog.add_tenant("acme")
    for stranger in (operated.client("acme", *Scope), operated.client(LOCAL, Scope.READ)):
        requests = [
            stranger.get("/v1/system"),
            stranger.get("/v1/tenants"),
            stranger.post("/v1/tenants", json={"name": "mine"}),
            stranger.delete("/v1/tenants/acme"),
            stranger.put("/v1/tenants/acme/quotas", json={"quotas": {"statements": None}}),
            stranger.get("/v1/accounts"),
            stranger.post("/v1/accounts", json={"name": "eve"}),
            stranger.delete("/v1/accounts/owner"),
            stranger.put("/v1/accounts/eve/tenants/local", json={"scopes": ["admin"]}),
            stranger.post("/v1/accounts/owner/link"),
        ]
        assert {each.status_code for each in requests} == {403}
    assert operated.operator.get("/v1/accounts").json() == {"entries": []}


def test_the_operator_adds_tenants_and_people(operated: OperatedService) -> None:
    operator = operated.operator
    made = operator.post("/v1/tenants", json={"name": "acme"})
    assert (made.status_code, made.json()["may_use_machine"]) == (201, False)
    assert operator.post("/v1/tenants", json={"name": "acme"}).status_code == 409
    quotas = {"quotas": {"statements": 5, "subscriptions": 7}}
    assert operator.put("/v1/tenants/acme/quotas", json=quotas).status_code == 204
    (acme,) = [
        each for each in operator.get("/v1/tenants").json()["entries"] if each["name"] == "acme"
    ]
    assert acme["quotas"] == quotas["quotas"]
    assert acme["used"]["statements"] == 0
    operator.put("/v1/tenants/acme/quotas", json={"quotas": {"statements": None}})

    assert operator.post("/v1/accounts", json={"name": "ada"}).status_code == 204
    assert operator.post("/v1/accounts", json={"name": "Ada Lovelace"}).status_code == 422
    scopes = {"scopes": ["read", "write"]}
    assert operator.put("/v1/accounts/ada/tenants/acme", json=scopes).status_code == 204
    (ada,) = operator.get("/v1/accounts").json()["entries"]
    assert ada["tenants"] == {"acme": ["read", "write"]}
    link = operator.post("/v1/accounts/ada/link").json()["url"]
    assert link.startswith(f"{operated.url}/enter/")
    session = httpx.post(link, headers={"sec-fetch-site": "same-origin"}, timeout=PATIENCE_S)
    assert session.status_code == 303

    assert operator.delete("/v1/accounts/ada").status_code == 204
    assert operator.delete("/v1/accounts/ada").status_code == 404
    assert operator.delete("/v1/tenants/acme").status_code == 204
    who = operator.get("/v1/me").json()["actor"]
    audit = operator.get("/v1/audit").json()["entries"]
    done = {(each["action"], each["subject"]) for each in audit if each["actor"] == who}
    assert {
        ("added tenant", "acme"),
        ("set quotas", "acme"),
        ("added account", "ada"),
        ("removed account", "ada"),
        ("removed tenant", "acme"),
    } <= done
