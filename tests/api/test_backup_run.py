"""A backup of a folder whose run goes on, restored and run: nothing is lost, nothing is there
twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.deliver.servers import Receiver, receiver
from tests.pipeline.spark_session import spark
from tests.pipeline.test_run import OPTIONS
from tests.pipeline.waiting import until

from headgate.api import backup
from headgate.api.backup import back_up
from headgate.api.headgate import Headgate
from headgate.api.restore import restore
from headgate.catalog.catalog import Catalog
from headgate.deliver.output_webhook import WebhookSettings
from headgate.deliver.settings import DeliverySettings
from headgate.model.addresses import LOOPBACK
from headgate.pipeline.run import Run
from headgate.pipeline.run_context import RunSettings
from headgate.store.data_folder import find_folder
from headgate.store.log import LogReader
from headgate.store.log_state import LogState
from headgate.store.log_view import LogView

pytestmark = pytest.mark.integration
SCRIPT = """
register stream News from post (title text);
create feed All from News where title contains 'rock';
"""


@contextmanager
def running(catalog: Catalog, folder: Path) -> Iterator[None]:
    hooks = WebhookSettings(key=catalog.installation_key(), allowed=LOOPBACK)
    delivery = DeliverySettings(folder / "out", folder, webhook=hooks)
    run = Run(catalog, spark(), RunSettings(folder, delivery, options=OPTIONS, lateness_s=0.2))
    run.start()
    try:
        yield
    finally:
        run.stop()


class Poster:
    """Posts one numbered event after the other, and knows which were acknowledged."""

    def __init__(self, headgate: Headgate, name: str) -> None:
        self._headgate, self._name = headgate, name
        self._stop = threading.Event()
        self.acknowledged: list[str] = []
        self._thread = threading.Thread(target=self._post)
        self._thread.start()

    def _post(self) -> None:
        while not self._stop.wait(0.01):
            title = f"rock {self._name} {len(self.acknowledged)}"
            assert self._headgate.post("News", [{"title": title}]).accepted == 1
            self.acknowledged.append(title)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60.0)


def titles(folder: Path) -> Counter[str]:
    """Of the items of the source in the log."""
    view = LogView(find_folder(folder))
    places = view.index.since("News", 0, limit=100_000)
    return Counter(str(each.attributes["title"]) for each in view.read(places))


def delivered(hook: Receiver) -> set[str]:
    bodies = b"\n".join(body for _, _, body in hook.calls).decode()
    return {part.partition('"')[0] for part in bodies.split('"title":"')[1:]}


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some batches are finished before the state of the log is read, and some after it, before the
    rest is copied."""

    def go_on() -> None:
        count = len(titles(tmp_path / "data"))
        until(lambda: len(titles(tmp_path / "data")) > count + 10)

    def read(reader: LogReader) -> LogState:
        go_on()
        state = read_state(reader)
        go_on()
        return state

    read_state = backup._state_of
    monkeypatch.setattr(backup, "_state_of", read)


@pytest.mark.usefixtures("slow")
def test_a_restored_run_goes_on_without_loss(tmp_path: Path) -> None:
    with receiver() as hook:
        catalog = Catalog.open(str(tmp_path / "headgate.db"))
        headgate = Headgate(catalog, tmp_path / "data")
        headgate.execute(SCRIPT)
        headgate.subscribe("All", webhook=f"{hook.url}/x", for_="30 days")
        with running(catalog, tmp_path / "data"):
            poster = Poster(headgate, "old")
            until(lambda: len(hook.calls) >= 20)
            before = list(poster.acknowledged)
            manifest = back_up(catalog.url, tmp_path / "data", tmp_path / "backup")
            in_log = titles(tmp_path / "data")
            until(lambda: len(poster.acknowledged) >= len(before) + 50)
            poster.stop()
        catalog.close()
        assert manifest.position > 0
        restore(tmp_path / "backup", str(tmp_path / "new.db"), tmp_path / "new")
        restored = titles(tmp_path / "new")
        assert set(restored.values()) == {1}
        assert len(restored) == manifest.position
        assert restored.keys() <= in_log.keys()
        again = Catalog.open(str(tmp_path / "new.db"))
        with running(again, tmp_path / "new"):
            late = Poster(Headgate(again, tmp_path / "new"), "new")
            until(lambda: len(late.acknowledged) >= 30)
            late.stop()
            wanted = {*before, *late.acknowledged}
            until(lambda: wanted <= titles(tmp_path / "new").keys())
            until(lambda: wanted <= delivered(hook))
        found = titles(tmp_path / "new")
        again.close()
    assert set(found.values()) == {1}, "nothing is there twice"
    # One message for each item: a message that was sent again has the same id.
    by_id: dict[str, set[bytes]] = {}
    for _, headers, body in hook.calls:
        by_id.setdefault(headers["webhook-id"], set()).add(body.partition(b'"items":')[2])
    assert {len(bodies) for bodies in by_id.values()} == {1}, "an id is of one item"
