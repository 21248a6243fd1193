"""Documents of pieces have the bytes of documents that are rendered as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliver.things import any_text, items

from headgate.deliver.entry import OutputDocument, TransformedText, entry_of, stable_id
from headgate.deliver.output_file import RENDERERS, format_of, renderer_of
from headgate.deliver.render_pieces import body_of, document_body_of, document_of, piece_of
from headgate.model.items import Item

TITLES = ["R", "é<", "<id>x</id><updated>", "<link>&</link>"]
outputs = st.one_of(st.none(), st.builds(TransformedText, any_text, st.booleans()))


@pytest.mark.parametrize("suffix", [*RENDERERS, ".csv"])
@given(
    given_items=st.lists(st.tuples(items, outputs), max_size=3),
    title=st.sampled_from(TITLES),
)
def test_pieces_give_the_bytes_of_the_whole_document(
    suffix: str, given_items: list[tuple[Item, TransformedText | None]], title: str
):
    entries = tuple(entry_of(item, output) for item, output in given_items)
    id_ = stable_id("subscription", "7")
    whole = renderer_of(f"a{suffix}", has_stylesheet=True)(OutputDocument(id_, title, entries))
    format_ = format_of(f"a{suffix}", has_stylesheet=True)
    pieces = [piece_of(entry, format_) for entry in entries]
    assert b"".join(document_of(title, id_, body_of(pieces, format_), format_)) == whole


def test_a_document_has_the_newest_entry_first_by_date():
    """Whatever the order of arrival; of equal dates the last to arrive comes first."""
    day = datetime(2026, 11, 16, tzinfo=UTC)
    arrived = [
        Item(name, "S", day, {"title": name, "published": day + timedelta(days=days)})
        for name, days in (("b", 1), ("a", 0), ("d", 2), ("c", 1))
    ]
    pieces = [piece_of(entry_of(each), "text") for each in reversed(arrived)]
    body = document_body_of(pieces, "text")
    assert [text.split(b"\n")[0] for text in body.content.split(b"\n\n")] == [
        b"d",
        b"c",
        b"b",
        b"a",
    ]
