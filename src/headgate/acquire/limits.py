"""Every limit on what a feed may cost, and on the lines of files, in one place.

A limit on a fetch ends it with an error. A limit on a document leaves out as little as possible (an
entry, the end of a text), and is recorded among the document's problems.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What one feed may cost. Sizes are in bytes, lengths of texts in characters."""

    total_s: float = 30.0
    """Wall-clock time of a whole fetch, with name resolution and redirects."""
    connect_s: float = 10.0
    """Time to connect to one host, TLS included."""
    redirects_max: int = 5
    body_bytes_max: int = 10_000_000
    """Size of a body, both as sent and decompressed."""
    header_bytes_max: int = 64_000
    url_length_max: int = 2_000
    retry_after_max_s: float = 86_400.0
    connections_max: int = 64
    connections_per_host: int = 2
    host_delay_s: float = 1.0
    """Least time between the starts of two fetches from one host."""

    entries_max: int = 1_000
    entry_bytes_max: int = 1_000_000
    elements_max: int = 200_000
    """Elements of all entries of a document together; each takes the feed parser about 10 µs."""
    nesting_max: int = 100
    attribute_length_max: int = 256 * 1024
    text_length_max: int = 20_000_000
    """Length of all texts of a document together, after each was truncated."""
    problems_max: int = 100

    seen_min: int = 200
    """The least number of seen entries kept per feed; three times its document if that is more."""
    outlines_max: int = 100_000


DEFAULT_LIMITS = FeedLimits()
LINE_BYTES_MAX = 1_000_000
"""Size of a line or of a CSV record in a file."""
