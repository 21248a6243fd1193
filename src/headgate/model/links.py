"""How links are found and compared: `references`, `extends` and `shares-link` ([RoSeS §3.2]).

A target is a URL ('https://muse.mu/news') or, without a scheme, a host with or without a path
('muse.mu', 'muse.mu/news'), which then stands for any scheme.

    link                           target              references   extends
    https://muse.mu/news           https://muse.mu/news    yes        yes
    https://muse.mu/news/2026      https://muse.mu/news    no         yes
    https://muse.mu/newsroom       https://muse.mu/news    no         no
    https://muse.mu/news           muse.mu                 yes        yes
    https://shop.muse.mu/          muse.mu                 no         yes
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

_URL_IN_TEXT = re.compile(r"""\b(?:https?|ftp)://[^\s<>"'`{}|\\^]+""", re.IGNORECASE)
_DEFAULT_PORT = {"http": 80, "https": 443, "ftp": 21}


class NormalLink(NamedTuple):
    """A link taken apart into what is compared; the scheme is empty where none was given."""

    scheme: str
    host: str
    path: str


def normal_link(text: str) -> NormalLink:
    """Scheme and host in lower case, no default port, no user, no fragment, at least '/' as path.

    >>> normal_link("HTTPS://Muse.mu:443/News#top")
    NormalLink(scheme='https', host='muse.mu', path='/News')
    """
    text = text.strip()
    has_scheme = "://" in text
    try:
        parts = urlsplit(text if has_scheme else "//" + text)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        # Not a URL after all, such as 'http://[x': it is equal only to itself.
        return NormalLink("", text, "")
    if port is not None and port != _DEFAULT_PORT.get(parts.scheme):
        host = f"{host}:{port}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return NormalLink(parts.scheme if has_scheme else "", host, path)


def links_in(text: str) -> list[str]:
    """The URLs that stand in a text, without the punctuation of the sentence around them.

    >>> links_in("See https://muse.mu/news, or (http://a.org).")
    ['https://muse.mu/news', 'http://a.org']
    """
    return [url.rstrip(".,;:!?)]") for url in _URL_IN_TEXT.findall(text)]


def references(link: str, target: str) -> bool:
    """Whether the link leads to the target: the same URL, or, for a bare host, that host."""
    found, wanted = normal_link(link), normal_link(target)
    if wanted.scheme:
        return found == wanted
    return found.host == wanted.host and wanted.path in ("/", found.path)


def extends(link: str, target: str) -> bool:
    """Whether the link lies at or below the target; below a bare host lie its subdomains too."""
    found, wanted = normal_link(link), normal_link(target)
    if wanted.scheme and found.scheme != wanted.scheme:
        return False
    same_host = found.host == wanted.host
    if not wanted.scheme and wanted.path == "/":
        return same_host or found.host.endswith("." + wanted.host)
    return same_host and is_below(found.path, wanted.path)


def is_below(path: str, ancestor: str) -> bool:
    """Whether a path is the other one, or lies below it."""
    return path == ancestor or path.startswith((ancestor.rstrip("/") + "/", ancestor + "?"))
