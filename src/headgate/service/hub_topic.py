"""Topics of the hub: the URLs of documents behind links, as their `self` has them.

https://news.example/f/hl_<id>_<secret>.atom
https://news.example/f/hl_<id>_<secret>.json?n=20
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from headgate.service.document_content import FORMATS, ITEMS_MAX, DocumentFormat

TOPIC_LENGTH_MAX = 2_000
_TOPIC = re.compile(
    r"(?P<base>.*)/f/(?P<token>hl_[a-z0-9]{12}_[A-Za-z0-9_-]{43})\.(?P<suffix>atom|rss|json)"
    r"(?:\?n=(?P<count>[1-9][0-9]{0,2}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class HubTopic:
    base: str
    """The public URL of the service that has it."""
    token: str = field(repr=False)
    format: DocumentFormat
    count: int | None
    """How many items the document shows; None: as many as without being asked."""


def read_topic(url: str) -> HubTopic | None:
    """None for a URL that is no document which the hub sends.

    >>> topic = read_topic("https://a.example/f/hl_abcdefghijkl_" + 43 * "x" + ".rss?n=5")
    >>> topic.base, topic.format.value, topic.count
    ('https://a.example', 'rss', 5)
    >>> read_topic("https://a.example/f/x.rss")
    """
    parsed = _TOPIC.fullmatch(url) if len(url) <= TOPIC_LENGTH_MAX else None
    if parsed is None:
        return None
    count = None if parsed["count"] is None else int(parsed["count"])
    if count is not None and count > ITEMS_MAX:
        return None
    return HubTopic(parsed["base"], parsed["token"], FORMATS[parsed["suffix"]], count)
