"""Requests to fetch a web feed now: files beside the inbox, since that belongs to one process.

    service  ── request_retry ──►  retry/<hash of the name>  ── take_retries ──►  acquirer

The process that fetches looks at the folder with every batch, a second or less apart. A request
that it has taken is gone: the feed is fetched as soon as its host and the budget allow. Asking
twice makes one request. A crash between taking and fetching loses the request and nothing else: the
feed is still fetched at its own time.

Rejected: a change of the inbox's database, which has one writer (inbox.py); a table of the catalog,
which the process that fetches does not open.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from headgate.store.whole_files import write_whole

FOLDER = "retry"
NAME_BYTES_MAX = 4_000


def request_retry(inbox: Path, feed: str) -> None:
    """Ask the process that owns this inbox to fetch a feed now."""
    path = _path(inbox, feed)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, feed.encode("utf-8", "surrogatepass"))


def is_retry_requested(inbox: Path, feed: str) -> bool:
    """Whether a request waits to be taken."""
    return _path(inbox, feed).exists()


def take_retries(inbox: Path) -> list[str]:
    """The feeds that are to be fetched now; their requests are removed."""
    try:
        # Names with a dot are of files that are being written.
        paths = [
            Path(each.path) for each in os.scandir(inbox / FOLDER) if not each.name.startswith(".")
        ]
    except FileNotFoundError:
        return []
    feeds = []
    for path in paths:
        with suppress(OSError, UnicodeDecodeError):
            content = path.read_bytes()[:NAME_BYTES_MAX]
            path.unlink()
            feeds.append(content.decode("utf-8", "surrogatepass"))
    return feeds


def _path(inbox: Path, feed: str) -> Path:
    digest = hashlib.sha256(feed.encode("utf-8", "surrogatepass")).hexdigest()
    return inbox / FOLDER / digest[:32]
