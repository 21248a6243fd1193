"""A shelf takes each view and document once, and keeps the last ones."""

from __future__ import annotations

from pathlib import Path

from headgate.relay.received_store import Delivery, Shelf, read_shelf


def delivery(view: str, document: int, content: bytes = b"x") -> Delivery:
    return Delivery(0, view, document, content)


def test_what_comes_again_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    with Shelf(path) as shelf:
        shelf.keep([delivery("v", 2), delivery("u", 2), delivery("v", 1)])
    with Shelf(path) as shelf:
        shelf.keep([delivery("v", 2, b"again"), delivery("v", 3)])
        assert list(read_shelf(path, view="v")) == [("v", 1, b"x"), ("v", 2, b"x"), ("v", 3, b"x")]
    assert [(view, document) for view, document, _ in read_shelf(path)] == [
        ("v", 1),
        ("u", 2),
        ("v", 2),
        ("v", 3),
    ]


def test_the_last_documents_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    with Shelf(path, documents_max=2) as shelf:
        for document in range(5):
            shelf.keep([delivery("v", document)])
    assert [document for _, document, _ in read_shelf(path)] == [3, 4]
