"""Materialised feeds: items through a stylesheet are items of a source, in the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from bench.running.logged import LoggedRow, logged_rows

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import TransformError
from headgate.deliver.item_encoding import encode_annotations
from headgate.deliver.transform import Stylesheet, Transformer, TransformLimits
from headgate.match.batch import microseconds
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Annotation, Item
from headgate.model.schema import FEED_SCHEMA
from headgate.pipeline.batch_stage import BatchTask, PartitionSummary
from headgate.pipeline.materialise import (
    FEED_S_MIN,
    GROUP,
    ITEM_S,
    MaterialiseTask,
    SheetOfFeed,
    transformed,
)
from headgate.pipeline.snapshot import PlanSnapshot, write_snapshot
from headgate.store.data_folder import DataFolder
from headgate.store.log import Sequencer
from headgate.store.log_items import ANNOTATIONS
from headgate.store.log_state import Origin
from headgate.store.log_writer import JOINED, LogFileWriter

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
Y = 7
HEAD = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
LOUD = f"""{HEAD}<xsl:template match="/item"><item><title><xsl:value-of select="title"/>!</title>
</item></xsl:template></xsl:stylesheet>"""
TEXT = f"""{HEAD}<xsl:output method="text"/><xsl:template match="/item">only words</xsl:template>
</xsl:stylesheet>"""
COUNT = f"""{HEAD}<xsl:template match="/item"><item><title>
<xsl:value-of select="count(annotation/item)"/></title></item></xsl:template></xsl:stylesheet>"""

TWICE = f"""{HEAD}<xsl:template match="/item"><xsl:call-template name="t">
<xsl:with-param name="n" select="string-length(content)"/></xsl:call-template>
<item><title>Done</title></item></xsl:template><xsl:template name="t"><xsl:param name="n"/>
<xsl:if test="$n &gt; 0"><xsl:call-template name="t"><xsl:with-param name="n" select="$n - 1"/>
</xsl:call-template><xsl:call-template name="t"><xsl:with-param name="n" select="$n - 1"/>
</xsl:call-template></xsl:if></xsl:template></xsl:stylesheet>"""
"""Takes twice as long for each character of the content."""


class Home:
    """A log with items of feed 7, which is materialised as source Y."""

    def __init__(self, path: Path) -> None:
        self.folder = DataFolder(path).make()
        self.clock = NOON
        self.sequencer = Sequencer(self.folder.storage, now=lambda: self.clock)
        self.snapshot = write_snapshot(self.folder.plans, PlanSnapshot(0)).name
        self.batches = 0

    def add(self, items: Sequence[Item], *, kind: str = "feeds-") -> None:
        batch = items_to_arrow(items, FEED_SCHEMA)
        if kind == JOINED:
            texts = [encode_annotations(item) for item in items]
            batch = batch.append_column(ANNOTATIONS, pa.array(texts, pa.string()))
        writer = LogFileWriter(self.folder.storage, f"{kind}{group_of(FEED_SCHEMA)}")
        writer.write(batch, {"feeds": pa.array([[Y]] * len(items), pa.list_(pa.int32()))})
        self.sequencer.commit(Origin("g", "e", self.batches), writer.close())
        self.batches += 1
        self.clock += timedelta(hours=1)

    def run(
        self, stylesheet: str, *, since: datetime = NOON, start: int = 0
    ) -> list[PartitionSummary]:
        sheet = Stylesheet("x.xsl", stylesheet.encode())
        task = MaterialiseTask(
            BatchTask(self.folder, GROUP, self.snapshot),
            [SheetOfFeed("Y", Y, microseconds(since), sheet)],
            {group_of(FEED_SCHEMA): FEED_SCHEMA},
            start,
            self.sequencer.state.next_position,
            TransformLimits(),
        )
        summaries = [task.run(file) for file in self.sequencer.state.files]
        files = [file for summary in summaries for file in summary.files]
        self.sequencer.commit(Origin("stage", "e", self.batches), files)
        self.batches += 1
        return summaries

    def made(self) -> list[LoggedRow]:
        return [row for row in logged_rows(self.folder.path) if row.group == GROUP]


def test_an_item_of_the_stylesheet_is_an_item_of_the_source(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add([Item("1", "A", NOON, {"title": "Muse"}), Item("1", "B", NOON, {"title": "Rock"})])
    (summary,) = home.run(LOUD)
    assert summary.sources == {"Y": 2}
    assert [(row.id, row.source, row.columns["@time"]) for row in home.made()] == [
        ("A/1", "Y", NOON),
        ("B/1", "Y", NOON),
    ]
    assert [row.columns["title"] for row in home.made()] == ["Muse!", "Rock!"]


def test_free_text_is_the_content(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add([Item("1", "A", NOON, {"title": "Muse", "category": "rock"})])
    home.run(TEXT)
    (row,) = home.made()
    attributes = {name: value for name, value in row.columns.items() if value is not None}
    assert (attributes["title"], attributes["content"]) == ("Muse", "only words")
    assert "category" not in attributes


def test_results_of_joins_keep_their_partners(tmp_path: Path) -> None:
    home = Home(tmp_path)
    partners = frozenset(Item(str(n), "W", NOON, {"title": "w"}) for n in range(3))
    joined = Item("1", "A", NOON, {"title": "Muse"}).annotated(Annotation("J#1", partners))
    home.add([joined], kind=JOINED)
    home.run(COUNT)
    assert [str(row.columns["title"]).strip() for row in home.made()] == ["3"]


def test_only_new_items_that_arrived_since_it_was_registered(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number in range(4):
        home.add([Item(str(number), "A", NOON, {"title": str(number)})])
    home.run(LOUD, since=NOON + timedelta(hours=2))
    assert [row.id for row in home.made()] == ["A/2", "A/3"]
    home.run(LOUD, start=3)
    assert [row.id for row in home.made()] == ["A/2", "A/3", "A/3"]


def test_what_fails_is_counted_and_reported(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add([Item("1", "A", NOON, {}), Item("2", "A", NOON, {})])
    (summary,) = home.run("no stylesheet")
    assert home.made() == []
    assert summary.failed == 2
    assert "x.xsl" in summary.errors["Y"]


@pytest.mark.parametrize("source", ["Y", "A"])
def test_an_item_is_not_made_of_itself(tmp_path: Path, source: str) -> None:
    home = Home(tmp_path)
    home.add([Item("1", source, NOON, {"title": "Muse"})])
    home.run(LOUD)
    assert len(home.made()) == (source == "A")


class SlowTransformer(Transformer):
    """Every item takes so many seconds of CPU time."""

    def __init__(self, item_s: float) -> None:
        super().__init__()
        self.item_s = item_s

    def transform(self, stylesheet: Stylesheet, item: Item) -> Item | TransformedText:  # noqa: ARG002
        self.cpu_s += self.item_s
        return item


@pytest.mark.parametrize(("item_s", "count"), [(1.9, 1_000), (1.9, 3), (0.00025, 50_000)])
def test_a_slow_stylesheet_takes_a_bounded_time_of_a_task(item_s: float, count: int) -> None:
    """Each item is made, or is counted in the error."""
    slow = SlowTransformer(item_s)
    feed = SheetOfFeed("Y", Y, 0, Stylesheet("slow.xsl", b""))
    items = [Item(str(n), "X", NOON, {"title": "t"}) for n in range(count)]
    made, error = transformed(feed, items, slow)
    assert slow.cpu_s <= max(FEED_S_MIN, ITEM_S * count) + 2 * item_s
    if count == 1_000:
        assert error.startswith("slow.xsl")
        assert f"{count - len(made):,} of 1,000 items were left out after 100 s of CPU" in error
    else:
        assert (len(made), error) == (count, "")


def test_what_a_stylesheet_takes_is_charged_to_its_feed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add([Item(str(n), "A", NOON, {"title": "T", "content": 14 * "x"}) for n in range(5)])
    (plain,) = home.run(LOUD)
    (busy, _) = home.run(TWICE)
    assert busy.sources == {"Y": 5}
    assert [*busy.costs] == [str(Y)]
    assert busy.costs[str(Y)] > 5 * plain.costs.get(str(Y), 0)


def test_a_stylesheet_that_breaks_a_limit_is_charged_the_limit() -> None:
    with Transformer(TransformLimits(wall_s=0.3, cpu_s=0.2)) as transformer:
        endless = Stylesheet("endless.xsl", TWICE.encode())
        item = Item("1", "A", NOON, {"title": "T", "content": 60 * "x"})
        with pytest.raises(TransformError):
            transformer.transform(endless, item)
        assert transformer.cpu_s == 0.2
        with pytest.raises(TransformError, match="a moment ago"):  # it is not run
            transformer.transform(endless, item)
        assert transformer.cpu_s == 0.2
