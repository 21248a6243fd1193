"""Links: the table at the top of links.py, and whatever else people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.links import extends, links_in, normal_link, references


@pytest.mark.parametrize(
    ("link", "target", "is_reference", "is_extension"),
    [
        ("https://muse.mu/news", "https://muse.mu/news", True, True),
        ("https://muse.mu/news/2026", "https://muse.mu/news", False, True),
        ("https://muse.mu/newsroom", "https://muse.mu/news", False, False),
        ("https://muse.mu/news?page=2", "https://muse.mu/news", False, True),
        ("https://muse.mu/news", "muse.mu", True, True),
        ("https://shop.muse.mu/", "muse.mu", False, True),
        ("https://amuse.mu/", "muse.mu", False, False),
        ("http://muse.mu/news", "https://muse.mu/news", False, False),
        ("HTTPS://MUSE.mu:443/news#top", "https://muse.mu/news", True, True),
        ("https://muse.mu:8080/news", "muse.mu", False, False),
        ("https://user:secret@muse.mu/", "muse.mu", True, True),
        ("https://muse.mu.evil.org/", "muse.mu", False, False),
        ("https://muse.mu/news/2026", "muse.mu/news", False, True),
        ("https://shop.muse.mu/news", "muse.mu/news", False, False),
        ("http://[broken", "http://[broken", True, True),
    ],
)
def test_links(link: str, target: str, is_reference: bool, is_extension: bool) -> None:
    assert references(link, target) == is_reference
    assert extends(link, target) == is_extension


@given(st.text())
def test_any_text_has_a_normal_form(text: str) -> None:
    assert normal_link(text) == normal_link(text.strip())


@given(st.text(), st.text())
def test_what_is_referenced_is_extended(link: str, target: str) -> None:
    assert not references(link, target) or extends(link, target)


def test_links_are_found_in_html() -> None:
    html = """<a href="https://a.org/x?y=1">x</a> and http://b.org/(z)."""
    assert links_in(html) == ["https://a.org/x?y=1", "http://b.org/(z"]
