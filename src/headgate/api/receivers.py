"""What concerns receivers: secrets of webhooks, and mails that their readers confirm and end.

`IssuedTicket` is what `subscribe` returns; `ReceiverCalls` are methods of `Headgate`.
"""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.model.receiver_secrets import LinkPurpose


class IssuedTicket(str):
    """A ticket: its text, and what else is known of the subscription when it is made."""

    secret: str | None
    """What the receiver of a webhook verifies signatures with; None for other outputs."""
    subscription_id: int
    is_pending: bool
    """Whether nothing is sent before the reader of the mail confirms it."""
    __slots__ = ("is_pending", "secret", "subscription_id")

    @classmethod
    def of(cls, outcome: Outcome) -> IssuedTicket:
        assert outcome.ticket is not None
        assert outcome.subscription_id is not None
        ticket = cls(outcome.ticket)
        ticket.secret, ticket.is_pending = outcome.secret, outcome.is_pending
        ticket.subscription_id = outcome.subscription_id
        return ticket


class ReceiverCalls:
    catalog: Catalog

    def rotate_secret(self, ticket: str) -> str:
        """A new secret for the webhook of this ticket, which is shown only here. For a day calls
        are signed with the old one, too."""
        return self.catalog.rotate_secret(ticket).secret

    def confirm(self, subscription_id: int) -> bool:
        """Confirm a mail in place of its reader; whether it was waiting for that."""
        return bool(self.catalog.confirm(subscription_id).ids)

    def feeds_of_link(self, purpose: LinkPurpose, token: str) -> list[str]:
        """The feeds that the link of a mail is for; `BadToken` if it is for none."""
        return self.catalog.feeds_of_link(purpose, token)

    def confirm_link(self, token: str) -> list[str]:
        """Confirm what the link of a mail is for; the feeds that were waiting for it."""
        return list(self.catalog.confirm_link(token).feeds)

    def unsubscribe_link(self, token: str) -> str:
        """End the subscription that the link of a mail is for; the name of its feed."""
        return self.catalog.unsubscribe_link(token)
