"""Many subscriptions: loaded in one script, listed page by page."""

from itertools import count

import pytest
from tests.cpu_time import within_cpu

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
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
    attempts = count(1)

    def subscribe() -> list[Outcome]:
        attempt = next(attempts)
        return catalog.apply(
            [
                Subscribe(f"F{n % FEEDS}", Output(OutputKind.MAIL, f"user{n}-{attempt}@a.org"))
                for n in range(COUNT)
            ]
        )

    # A busy machine may need another attempt, which subscribes others.
    outcomes = within_cpu(APPLY_S_MAX, subscribe)
    last = next(attempts) - 1
    total = last * COUNT
    ids = [outcome.subscription_id for outcome in outcomes]
    assert ids == list(range(total - COUNT + 1, total + 1))
    assert len({outcome.ticket for outcome in outcomes}) == COUNT

    assert catalog.count_subscriptions() == total
    last_page = catalog.list_subscriptions(after_id=total - 100)
    assert [each.target for each in last_page] == [
        f"user{n}-{last}@a.org" for n in range(COUNT - 100, COUNT)
    ]
    one_feed = catalog.list_subscriptions("F7", after_id=total - COUNT // 2, limit=10_000)
    assert len(one_feed) == COUNT // 2 // FEEDS
