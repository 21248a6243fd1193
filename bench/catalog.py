"""Loading 100,000 subscriptions into the catalog, and listing them page by page.

The script holds 1,000 feeds over one source and subscriptions to them, each with its own mail
address. Loading is everything that `headgate apply` does: cut, parse, check, insert, make tickets.
The baseline is the same catalog given one statement at a time, a transaction each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import Plot, Result, Row, Say, seconds
from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script

FEEDS = 1_000
TARGET_S = 20.0
PAGE = 1_000
ONE_BY_ONE = 200


def run(*, quick: bool, say: Say) -> Result:
    sizes = [1_000, 3_000, 10_000] if quick else [10_000, 25_000, 50_000, 100_000]
    points: list[tuple[float, float]] = []
    rows: list[Row] = []
    for size in sizes:
        say(f"{size:,} subscriptions")
        with new_catalog() as catalog:
            text = script(size)
            points.append((size, seconds(lambda t=text, c=catalog: c.apply(parse_script(t)))))
            if size == sizes[-1]:
                rows += [_load_row(size, points[-1][1]), *_page_rows(catalog, size)]
    say("one statement at a time")
    rows[0] = _with_baseline(rows[0], _one_by_one_s() * sizes[-1])
    plot = Plot(
        "Loading subscriptions", "subscriptions", "seconds", {"one script": [(0.0, 0.0), *points]}
    )
    return Result(rows, plot)


@contextmanager
def new_catalog() -> Iterator[Catalog]:
    with tempfile.TemporaryDirectory() as folder, Catalog.open(str(Path(folder) / "a.db")) as made:
        yield made


def script(subscriptions: int) -> str:
    lines = ["register feed https://news.example/rss as S;"]
    lines += [f"create feed F{n} from S where title contains 'w{n}';" for n in range(FEEDS)]
    lines += [
        f"subscribe to F{n % FEEDS} output mail 'user{n}@mail.example' every 3 hours for 30 days;"
        for n in range(subscriptions)
    ]
    return "\n".join(lines)


def _load_row(size: int, took_s: float) -> Row:
    # A smaller run is held to its share of the target.
    target_s = TARGET_S * size / 100_000
    return Row(
        "load",
        f"{size:,} subscriptions in one script",
        f"{took_s:.1f} s ({took_s / size * 1e6:.0f} µs each)",
        target=f"≤ {target_s:g} s",
        met=took_s <= target_s,
    )


def _with_baseline(row: Row, baseline_s: float) -> Row:
    return Row(
        row.figure, row.workload, row.ours, row.target, row.met, baseline=f"{baseline_s:.0f} s"
    )


def _one_by_one_s() -> float:
    """Seconds for each statement when each is applied by itself."""
    with new_catalog() as catalog:
        catalog.apply(parse_script(script(0)))
        texts = script(ONE_BY_ONE).split("\n")[1 + FEEDS :]
        return seconds(lambda: [catalog.apply(parse_script(text)) for text in texts]) / ONE_BY_ONE


def _page_rows(catalog: Catalog, size: int) -> list[Row]:
    took: list[float] = []
    after, listed = 0, 0
    while True:
        page = []
        took.append(seconds(lambda p=page, a=after: p.extend(_page(catalog, a))))
        if not page:
            break
        listed, after = listed + len(page), page[-1].id
    assert listed == size, "every subscription is listed once"
    first, last = min(took[:3]), min(took[-4:-1])
    return [
        Row("list", f"{size:,} subscriptions, {PAGE:,} a page", f"{sum(took):.2f} s"),
        Row(
            "last page",
            "time of the last page over that of the first",
            f"{last / first:.1f} ×",
            target="≤ 2 ×",
            met=last <= 2 * first,
        ),
    ]


def _page(catalog: Catalog, after: int) -> list:
    return catalog.list_subscriptions(after_id=after, limit=PAGE)
