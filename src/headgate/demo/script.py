"""The address that scripts give the newsroom, and how to put another one in its place."""

from __future__ import annotations

import re

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"

_DEFAULT_URL = re.compile(rf"{re.escape(DEFAULT_URL)}(?!\d)")


def script_for(text: str, base_url: str) -> str:
    """The script, with the newsroom's actual address in place of the default one.

    >>> script_for("register feed http://localhost:8765/a.rss as A;", "http://localhost:4000")
    'register feed http://localhost:4000/a.rss as A;'
    """
    return _DEFAULT_URL.sub(lambda _: base_url, text)
