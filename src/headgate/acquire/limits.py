"""Every limit on what comes in, in whatever format, in one place.

A limit on a fetch ends it with an error. A limit on a document or a file leaves out as little as
possible (an entry, a record, the end of a text), and what was left out is recorded with its place
and the reason: `ParsedFeed.problems` for feeds, rejected.py for the rest.

A limit is checked before the work that it bounds, in linear time. So the cost of any input is
proportional to its size, and the memory is a small multiple of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.checked_xml import XML_LIMITS, XmlLimits


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """What one feed, file or post may cost. Sizes are in bytes, lengths of texts in characters."""

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
    tags_max: int = 800_000
    """Tags of a whole document, which is scanned once for its entries: about 1 µs each."""
    nesting_max: int = 100
    attribute_length_max: int = 256 * 1024
    text_length_max: int = 20_000_000
    """Length of all texts of a document together, after each was truncated."""
    sanitise_s: float = 0.5
    """Time for sanitising the expensive markup of a document; the rest of it becomes plain text."""
    problems_max: int = 100

    seen_min: int = 200
    """The least number of seen entries kept per feed; three times its document if that is more."""
    outlines_max: int = 100_000

    record_bytes_max: int = 1_000_000
    """Size of a line of JSON, of a CSV record, of a posted event."""
    array_bytes_max: int = 50_000_000
    """Size of a file that is one JSON array; its text and rows need about six times as much."""
    array_elements_max: int = 250_000
    json_nesting_max: int = 500
    part_lines_max: int = 30_000
    """Lines of a part of a file, which one task reads as a whole."""
    csv_search_bytes_max: int = 100_000_000
    """How far the end of a CSV record is looked for, so that it is rejected as one."""
    xml: XmlLimits = XML_LIMITS
    """XML documents, and values of the type xml in any format."""


DEFAULT_LIMITS = IntakeLimits()
