"""Every limit on what a feed may cost, in one place.

A limit on a fetch ends it with an error. A limit on a document leaves out as little as possible (an
entry, the end of a text), and is recorded among the document's problems.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What one feed may cost. Sizes are in bytes, lengths of texts in characters."""

    total_s: float = 30.0
    """For a whole fetch on the wall clock: names, connections, redirects and every byte."""
    connect_s: float = 10.0
    """For connecting to one host, TLS included."""
    redirects_max: int = 5
    body_bytes_max: int = 10_000_000
    """Of a body, as it is sent and after it is decompressed."""
    header_bytes_max: int = 64_000
    url_length_max: int = 2_000
    retry_after_max_s: float = 86_400.0
    connections_max: int = 64
    connections_per_host: int = 2
    host_delay_s: float = 1.0
    """Between the beginnings of two fetches from one host."""

    entries_max: int = 1_000
    entry_bytes_max: int = 1_000_000
    elements_max: int = 200_000
    """Of a document's entries together: each one costs the feed parser about 10 µs."""
    nesting_max: int = 100
    attribute_length_max: int = 256 * 1024
    text_length_max: int = 20_000_000
    """Of all texts of a document together, after they have been cut one by one."""
    problems_max: int = 100

    seen_min: int = 200
    """How many entries of a feed are remembered at least; three times its document if more."""
    outlines_max: int = 100_000


DEFAULT_LIMITS = FeedLimits()
