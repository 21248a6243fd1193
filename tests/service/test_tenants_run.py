"""Two tenants use the same names in one run: each gets its own items, posted and read by HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.deliver.servers import receiver
from tests.pipeline.spark_session import spark
from tests.pipeline.test_run import OPTIONS
from tests.pipeline.waiting import until
from tests.service.test_api import Home, apply
from tests.service.test_live import Events

from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.model.addresses import LOOPBACK
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings

pytestmark = pytest.mark.integration
SCRIPT = """
register stream News from post (title text, n int);
create feed Rock from News where title contains '{word}';
create feed Pairs from News as $a join last 10 items on News with $a[n = window.n];
"""


def posted(client: httpx.Client, titles: list[str]) -> None:
    events = [{"title": title, "n": n} for n, title in enumerate(titles)]
    answer = client.post("/v1/sources/News/items", json=events)
    assert answer.json()["accepted"] == len(titles)


def titles(client: httpx.Client, feed: str) -> list[str]:
    answer = client.get(f"/v1/feeds/{feed}/items", params={"since": 0, "limit": 1_000})
    if answer.status_code == 503:
        return []  # nothing was committed yet
    return sorted(each["attributes"]["title"] for each in answer.json()["items"])


def test_two_tenants_in_one_run(home: Home, tmp_path: Path) -> None:
    with home.client("acme") as acme, home.client("globex") as globex, receiver() as hook:
        apply(acme, SCRIPT.format(word="rock"))
        apply(globex, SCRIPT.format(word="jazz"))
        subscribed = {"feed": "Rock", "output": "webhook", "target": f"{hook.url}/acme"}
        assert acme.post("/v1/subscriptions", json=subscribed).status_code == 201
        hooks = WebhookSettings(key=home.catalog.installation_key(), allowed=LOOPBACK)
        settings = RunSettings(
            home.folder,
            DeliverySettings(tmp_path / "out", tmp_path, webhook=hooks),
            options=OPTIONS,
            lateness_s=0.2,
        )
        run = Run(home.catalog, spark(), settings)
        run.start()
        try:
            posted(acme, ["rock one", "jazz one"])
            posted(globex, ["rock two", "jazz two"])
            until(lambda: titles(acme, "Rock") == ["rock one"])
            until(lambda: titles(globex, "Rock") == ["jazz two"])
            until(lambda: len(hook.calls) == 1)
            assert b"rock one" in hook.calls[0][2]
            assert titles(acme, "News") == ["jazz one", "rock one"]
            # Sources, joins and grants follow the tenants.
            globex.put("/v1/grants", json={"definition": "Rock", "tenant": "acme", "right": "use"})
            apply(acme, "create feed Both from (Rock | globex.Rock);")
            until(lambda: "acme.Both" in run.plans.names.values())
            live = Events(acme, "/v1/feeds/Both/live?since=0")
            posted(globex, ["jazz three", "rock three"])
            posted(acme, ["rock four"])
            live.read(2)
            found = {
                each["attributes"]["title"]: each.get("source")  # type: ignore[index]
                for each in live.items
            }
            assert found == {"jazz three": None, "rock four": "News"}
            until(lambda: "rock four" in titles(acme, "Pairs"))
            assert not any("two" in each or "three" in each for each in titles(acme, "Pairs"))
        finally:
            run.stop()
