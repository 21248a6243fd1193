"""Embeddings of tree patterns, decided by hand."""

import pytest

from headgate.language.parse import parse
from headgate.model.tree_pattern import PatternNode, matches_pattern

NEWS = """<?xml version="1.0" encoding="utf-8"?>
<news xmlns:dc="http://purl.org/dc/" day="3">
  <item id="1"><topic> ACME <!-- not the text --></topic><headline>Profit</headline></item>
  <item id="2" dc:lang="en"><topic>Other</topic><author>Ada</author><dc:date>2026</dc:date></item>
  <deep><item><price>12.50</price></item></deep>
</news>"""


def pattern(text: str) -> PatternNode:
    found = parse(f"create feed F from News match {text}").pattern
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text",
    [
        "//item",
        "/news",
        "/news/item/topic",
        "/news//price",
        "/*/*/topic",
        "//item[topic = 'acme']",
        "//item[topic = 'acme'][headline]",
        "//item[topic][author]/topic",
        "//price[. > 12]",
        "//price[. = 12.5]",
        "//item[@id = 2]/author",
        "//item[@id = '2']/author",
        "//@id",
        "/news[@day < 10]",
        "/news[//@id]",
        "//dc:date",
        "//item[@dc:lang = 'EN']",
    ],
)
def test_embeds(text: str):
    assert matches_pattern(pattern(text), NEWS)


@pytest.mark.parametrize(
    "text",
    [
        "/item",
        "/news/price",
        "//news//news",
        "//item[topic = 'acme'][author]",
        "//topic[. > 1]",
        "//topic[. < 1]",
        "//item[@id = 3]",
        "//@day2",
        "/@day",
        "//date",
        "//topic[. = 'ACME not the text']",
        "//Item",
    ],
)
def test_does_not_embed(text: str):
    assert not matches_pattern(pattern(text), NEWS)


@pytest.mark.parametrize("document", ["", "<a", "no xml", "<a></b>"])
def test_text_that_is_no_xml_embeds_nothing(document: str):
    assert not matches_pattern(pattern("//*"), document)


def test_a_number_is_not_nan():
    assert not matches_pattern(pattern("//a[. != 1]"), "<a>nan</a>")
