"""Materialised feeds: items through a stylesheet are items of a source."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.deliver.transform import Transformer
from headgate.language.statements import MaterializeFeed
from headgate.model.items import Item
from headgate.pipeline.deliveries import FeedMatch
from headgate.pipeline.run_batch import Materialiser

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HEAD = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
LOUD = f"""{HEAD}<xsl:template match="/item"><item><title><xsl:value-of select="title"/>!</title>
</item></xsl:template></xsl:stylesheet>"""
TEXT = f"""{HEAD}<xsl:output method="text"/><xsl:template match="/item">only words</xsl:template>
</xsl:stylesheet>"""


def made(stylesheet: str, folder: Path, items: list[Item]) -> tuple[list[Item], Materialiser]:
    (folder / "x.xsl").write_text(stylesheet)
    with Transformer() as transformer:
        materialiser = Materialiser(transformer, folder)
        found = [FeedMatch("Y", item) for item in items]
        return materialiser.items(found, {"Y": MaterializeFeed("Y", "X", "x.xsl")}), materialiser


@pytest.mark.integration
def test_an_item_of_the_stylesheet_is_an_item_of_the_source(tmp_path: Path) -> None:
    items = [Item("1", "A", NOON, {"title": "Muse"}), Item("1", "B", NOON, {"title": "Rock"})]
    found, _ = made(LOUD, tmp_path, items)
    assert [(each.id, each.source, each.time) for each in found] == [
        ("A/1", "Y", NOON),
        ("B/1", "Y", NOON),
    ]
    assert [each.attributes["title"] for each in found] == ["Muse!", "Rock!"]


@pytest.mark.integration
def test_free_text_is_the_content(tmp_path: Path) -> None:
    item = Item("1", "A", NOON, {"title": "Muse", "category": "rock"})
    (found,), _ = made(TEXT, tmp_path, [item])
    assert found.attributes == {"title": "Muse", "content": "only words"}


@pytest.mark.integration
def test_what_fails_is_counted_and_told(tmp_path: Path) -> None:
    found, materialiser = made("no stylesheet", tmp_path, [Item("1", "A", NOON, {})])
    assert found == []
    assert materialiser.failed == 1
    assert "x.xsl" in materialiser.errors["Y"]
