"""A service over a small log of three tenants, which use the same names for their own things."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from tests.service.test_api import Home
from tests.store.small_log import NOON, SmallLog

from headgate.api.headgate import Headgate
from headgate.model.items import Item

TENANTS = ("acme", "globex", "initech")
SCRIPT = """
register stream {0}.News from post (title text, n int);
create feed {0}.Rock from {0}.News where title contains 'rock';
create feed {0}.Big from {0}.News where n > 5;
create feed {0}.Pairs from {0}.News as $a join last 10 items on {0}.News with $a[n = window.n];
create feed {0}.Loud from {0}.Rock where title contains 'loud';
"""


class StoredHome(Home):
    """The catalog's clock stands still, weeks before the items of the log arrived."""

    def __init__(self, folder: Path) -> None:
        script = "".join(SCRIPT.format(each) for each in TENANTS)
        self.stored = SmallLog(folder, script, TENANTS)
        self.catalog = self.stored.catalog()
        self.folder = self.stored.folder.path
        self.headgate = Headgate(self.catalog, self.folder)
        self.url = ""

    def put(self, tenant: str, title: str, n: int = 0, *, id_: str = "", hours: float = 0) -> int:
        """An item of the tenant's source; its position."""
        time = NOON + timedelta(hours=hours)
        item = Item(id_ or title, f"{tenant}.News", time, {"title": title, "n": n})
        self.stored.items.append(item)
        return self.stored.put([item], arrived=time).first

    def put_pair(self, tenant: str, title: str, other: str, *, hours: float = 0) -> int:
        """What a join has found for an item: another one of the same source."""
        time, source = NOON + timedelta(hours=hours), f"{tenant}.News"
        item = Item(title, source, time, {"title": title, "n": 0})
        joined = {"id": other, "source": source, "attributes": []}
        annotations = json.dumps([{"join": "j", "items": [joined]}])
        return self.stored.put_joined(
            item, f"{tenant}.Pairs", arrived=time, annotations=annotations
        ).first
