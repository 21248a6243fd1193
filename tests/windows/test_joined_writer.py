"""How much a join writes behind an item."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headgate.deliver.item_encoding import decode_annotations, json_of_item
from headgate.model.items import Annotation, Item
from headgate.windows import joined_writer
from headgate.windows.joined_writer import annotation_text

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=12, unique=True))
def test_the_latest_partners_within_the_limit_are_kept(sizes: list[int]) -> None:
    partners = [
        Item(str(n), "S", NOON + timedelta(minutes=n), {"t": "x" * size})
        for n, size in enumerate(sizes)
    ]
    joined = Item("p", "P", NOON, {}, frozenset({Annotation("j", frozenset(partners))}))
    (annotation,) = json_of_item(joined)["annotations"]
    text = annotation_text(annotation)
    (found,) = decode_annotations(f"[{text}]")
    kept, total = [], 0
    for partner in reversed(partners):
        total += len(json.dumps(json_of_item(partner), separators=(",", ":")))
        if kept and total > joined_writer.PARTNERS_BYTES_MAX:
            break
        kept.append(partner)
    assert found == Annotation("j", frozenset(kept))
