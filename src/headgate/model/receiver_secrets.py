"""What receivers are given: secrets of webhooks, and the tokens of links in mails.

    secret n of a webhook   HMAC(key, "webhook secret n of <id>", salt)     whsec_…
    token of a link         <id>[-<last>]-HMAC(key, purpose, numbers, salt)

The key is that of the installation (catalog/installation_key.py). The salt of a subscription is the
hash of its ticket, which the catalog stores: it is random, never changes, and differs between
catalogs that share a key. So nothing is stored for a secret or a token, and neither the catalog nor
the key alone gives any of them. Rotating a secret counts `n` up. Number 0 is the secret of
subscriptions made before secrets were shown; it has no salt.

A token is for one subscription and one purpose. One that confirms is for all subscriptions of an
address up to `last`: those that its mail lists.

Rejected: encrypted secrets in the catalog (they need the same key, and a way to encrypt them anew);
random tokens in a table (they need a row for each mail that was ever sent).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

CONFIRM_WITHIN = timedelta(days=7)
"""A subscription whose receiver has not confirmed it within this time is expired."""
ROTATION_GRACE = timedelta(days=1)
"""How long the secret before the last rotation is valid."""
_TOKEN = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?-([A-Za-z0-9_-]{43})", re.ASCII)
TOKEN_LENGTH_MAX = 18 + 1 + 18 + 1 + 43


class LinkPurpose(StrEnum):
    CONFIRM = "confirm"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True, slots=True)
class LinkToken:
    """What a token claims; it proves nothing until `proves` has compared it."""

    subscription: int
    last: int | None
    proof: str


def webhook_secret(key: bytes, subscription: int, *, number: int, salt: str) -> str:
    """What the receiver of a webhook verifies signatures with."""
    if number == 0:
        text = f"webhook secret of {subscription}"
    else:
        text = f"webhook secret {number} of {subscription} {salt}"
    return "whsec_" + base64.b64encode(_hmac(key, text)).decode()


def link_token(
    key: bytes, purpose: LinkPurpose, subscription: int, *, salt: str, last: int | None = None
) -> str:
    numbers = _numbers(subscription, last)
    return f"{numbers}-{_proof(key, purpose, numbers, salt)}"


def read_token(token: str) -> LinkToken | None:
    """None for a text that is no token."""
    # The length comes first, so that a text of many megabytes is not matched.
    parsed = _TOKEN.fullmatch(token) if len(token) <= TOKEN_LENGTH_MAX else None
    if parsed is None:
        return None
    return LinkToken(int(parsed[1]), None if parsed[2] is None else int(parsed[2]), parsed[3])


def proves(key: bytes, purpose: LinkPurpose, token: LinkToken, *, salt: str) -> bool:
    """Whether the token was made with this key, for this purpose and subscription."""
    made = _proof(key, purpose, _numbers(token.subscription, token.last), salt)
    return hmac.compare_digest(made, token.proof)


def _numbers(subscription: int, last: int | None) -> str:
    return str(subscription) if last is None else f"{subscription}-{last}"


def _proof(key: bytes, purpose: LinkPurpose, numbers: str, salt: str) -> str:
    digest = _hmac(key, f"link to {purpose} {numbers} {salt}")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
