"""Many subscriptions: loaded in one script, listed page by page."""

import time

import pytest

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.language.statements import Output, OutputKind, Subscribe

pytestmark = pytest.mark.integration

COUNT = 100_000
FEEDS = 100
# Parsing the text comes on top, with about 8 s; both together may take 20 s.
APPLY_S_MAX = 8.0


def test_100_000_subscriptions_load_and_list(catalog: Catalog):
    feeds = "".join(f"create feed F{n} from S;" for n in range(FEEDS))
    catalog.apply(parse_script("register feed https://a.b/c as S;" + feeds))
    statements = [
        Subscribe(f"F{n % FEEDS}", Output(OutputKind.MAIL, f"user{n}@example.org"))
        for n in range(COUNT)
    ]
    # Processor time, so that other work on the machine does not fail the test.
    began_s = time.process_time()
    outcomes = catalog.apply(statements)
    took_s = time.process_time() - began_s
    assert took_s < APPLY_S_MAX
    assert [outcome.subscription_id for outcome in outcomes] == list(range(1, COUNT + 1))
    assert len({outcome.ticket for outcome in outcomes}) == COUNT

    assert catalog.count_subscriptions() == COUNT
    last_page = catalog.list_subscriptions(after_id=COUNT - 100)
    assert [each.target for each in last_page] == [
        f"user{n}@example.org" for n in range(COUNT - 100, COUNT)
    ]
    one_feed = catalog.list_subscriptions("F7", after_id=COUNT // 2, limit=10_000)
    assert len(one_feed) == COUNT // 2 // FEEDS
