"""Tickets: the proof that a subscription is one's own ([Operators §5.1]).

The paper's server answers a subscription with an MD5 digest of its text and a random number, and
keeps it. Here the ticket is 256 random bits behind the subscription's id, it is shown once, and
only its SHA-256 hash is kept: who reads the catalog cannot renew or cancel anything.

    17-nX3…Qw   ──►  SHA-256  ──►  compared in constant time with the hash of subscription 17

Whatever is wrong with a ticket, the answer is the same, so that it teaches nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import timedelta

from headgate.model.errors import BadTicket

VALIDITY_DEFAULT = timedelta(days=1)
"""How long a subscription lives unless it says so itself (§5.1)."""

_SECRET_BYTES = 32
_FORM = re.compile(r"([1-9][0-9]{0,17})-[A-Za-z0-9_-]{43}", re.ASCII)
_LENGTH_MAX = 18 + 1 + 43


def new_ticket(subscription_id: int) -> str:
    return f"{subscription_id}-{secrets.token_urlsafe(_SECRET_BYTES)}"


def hash_ticket(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()


def subscription_of(ticket: str) -> int:
    """The id that the ticket claims to be for; nothing is proved by it."""
    # The length comes first: a ticket of many megabytes is not worth a look.
    form = _FORM.fullmatch(ticket) if len(ticket) <= _LENGTH_MAX else None
    if form is None:
        raise bad_ticket()
    return int(form[1])


def proves(ticket: str, stored_hash: str) -> bool:
    return hmac.compare_digest(hash_ticket(ticket), stored_hash)


def bad_ticket() -> BadTicket:
    return BadTicket(
        "no living subscription has this ticket: it is mistyped, expired or cancelled; "
        "subscribe again"
    )
