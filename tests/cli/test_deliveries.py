"""`headgate deliveries` and `headgate replay`."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import NOON, SmallLog, ticket

from headgate.deliver.delivery_database import DeliveryChange, DeliveryDatabase
from headgate.deliver.delivery_tables import DeadLetter, LagRow
from headgate.deliver.subscription_table import slot_of

HOOK = 1
"""The first subscription of the script."""


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    for hour in range(3):
        # It expired after a day, but what arrived before is still delivered.
        arrived = NOON - timedelta(days=60) + timedelta(hours=hour + 1)
        made.put([ticket(f"t{hour}", 10, "Paris")], arrived=arrived)
    slot = slot_of(HOOK, "webhook", "https://example.org/hook")
    with DeliveryDatabase(made.folder.delivery_database) as database:
        database.lease("w", {}, now_s=0.0, lease_s=60.0)
        with database.changing() as connection:
            change = DeliveryChange(connection)
            change.move_cursors([slot], 2, seen_id=9)
            letter = DeadLetter(HOOK, 1, "m0", 0, 1, 10, '[{"id":"t0"}]', 1, "no \x1b", 1.0, slot)
            change.put_dead([letter])
            change.put_lags([LagRow(2, 1, 0, 0, 0.0, halted="it is gone")])
    return made


@pytest.mark.usefixtures("store")
def test_what_is_shown(headgate: Run) -> None:
    code, out, err = headgate("deliveries", "1")
    assert (code, err) == (0, "")
    assert out.startswith("subscription 1 is waiting: 1 items waiting, 0 messages retried, 1 dead")
    assert "\x1b" not in out
    assert "1970-01-01 00:00:01  1      10" in out
    found = json.loads(headgate("deliveries", "1", "--json")[1])
    assert (found["cursor"], found["dead"], found["letters"][0]["first"]) == (2, 1, 0)
    assert json.loads(headgate("deliveries", "2", "--json")[1])["state"] == "halted"
    code, _, err = headgate("deliveries", "99")
    assert (code, "there is no subscription 99" in err) == (3, True)


def test_sending_again(headgate: Run, store: SmallLog) -> None:
    would = headgate("replay", "1", "--dry-run")[1]
    assert would == "1 dead letters and 0 sent items would be sent again\n"
    assert headgate("replay", "1", "--letter", "7", "--since", "1")[0] == 2
    assert headgate("replay", "1", "--letter", "7")[1].startswith("0 dead letters")
    sent = json.loads(headgate("replay", "1", "--since", "0", "--json")[1])
    assert (sent["letters"], sent["items"], sent["next"]) == (1, 2, None)
    with DeliveryDatabase(store.folder.delivery_database) as database:
        retries = {each.first: each.items for each in database.retries_of(range(256))}
    assert retries.keys() == {0, 1}
    assert headgate("replay", "2")[1].endswith("it was halted and goes on\n")
    code, _, err = headgate("replay", "2", "--since", "0")
    assert (code, "cannot be replayed from a position" in err) == (3, True)
