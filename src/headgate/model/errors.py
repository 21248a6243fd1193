"""Every error that Headgate raises on purpose.

    HeadgateError
    ├── LanguageError        a statement is wrong; has a line, a column, the source line, a hint
    ├── InvalidValue         a value does not fit its type, or a constant does not fit its atom
    ├── CatalogError         the catalog refuses a statement or a query
    │   ├── UnknownName      … there is no such source, feed, operator or subscription
    │   ├── NameTaken        … the name is used by something else
    │   ├── FeedCycle        … a feed would be defined through itself
    │   ├── InUse            … something else uses what should be dropped
    │   ├── BadTicket        … no active subscription has this ticket
    │   ├── QuotaExceeded    … the tenant would have more than its quota
    │   ├── NotAllowed       … who acts does not have the scope or right for it
    │   ├── BadToken         … no subscription has this token of a link
    │   ├── KeyMissing       … the key of the installation is not here
    │   ├── SealBroken       … a sealed value was changed, or sealed with another key
    │   └── CatalogUnavailable  the database cannot be opened, read or written
    ├── PlanError            a feed cannot be planned within the limits
    ├── RoutingError         a routing table has no such key, or has it already
    ├── RelayError           a relay refuses a peer, a frame or its network file
    ├── FetchError           a feed cannot be fetched within the limits
    ├── FeedError            a fetched document is no feed, or exceeds the limits
    ├── StateError           the state of a source or the outbox cannot be read or written
    │   └── StateTaken       … another process writes to it
    ├── LogError             an entry or a segment of the log is damaged or of another version
    │   ├── LogFenced        … another process writes to the log
    │   └── LogUnavailable   … its storage cannot be reached, or refuses (also an OSError)
    ├── OperatorError        an operator is unknown, failed or gave an invalid answer
    │   └── WrongAnswer      … the answer has the wrong form or types (operators/check_answer.py)
    ├── PipelineError        the pipeline cannot run: no Java, a folder in use by another run
    ├── SnapshotError        a snapshot file is missing, damaged or of another version
    └── DeliveryError        a delivery failed (deliver/errors.py)
        ├── OutputError      … a file, mail or webhook call failed
        ├── LeaseLost        … another worker delivers these subscriptions now
        └── TransformError   … a stylesheet is wrong, refused or beyond its limits
            └── LimitBroken  … a limit of the transforming process (deliver/transform.py)

A message is lower-case, says what is wrong and where, and what to do about it.
A broken invariant is an assertion, never one of these.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class HeadgateError(Exception):
    """The root: catch this to catch everything that Headgate raises on purpose."""

    statement_number: int | None = None
    """Which statement of a script, counted from 1, the error is about, where that is known."""


class LanguageError(HeadgateError):
    """A statement that cannot be understood, with its place and a hint.

    >>> print(LanguageError("expected 'feed'", line=1, column=8, source="create fed X", hint="…"))
    line 1, column 8: expected 'feed'
      create fed X
             ^
    hint: …
    """

    def __init__(
        self, message: str, *, line: int = 1, column: int = 1, source: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = printable(without_tickets(message))
        self.line = line
        self.column = column
        self.source = without_tickets(source)
        self.hint = printable(hint)

    def within(self, text: str) -> LanguageError:
        """The same error, with its source line taken from this text."""
        lines = text.split("\n")
        if not self.source and self.line <= len(lines):
            self.source = without_tickets(lines[self.line - 1].rstrip("\r"))
        return self

    def __str__(self) -> str:
        text = f"line {self.line}, column {self.column}: {self.message}"
        if self.source:
            text += "\n" + caret_line(self.source, column=self.column)
        if self.hint:
            text += f"\nhint: {self.hint}"
        return text


class InvalidValue(HeadgateError):
    """A value that does not fit its type, or a constant that does not fit its atom.

    The subject is the name that caused it, if there is one.
    """

    def __init__(self, message: str, *, subject: str | None = None) -> None:
        super().__init__(message)
        self.subject = subject


class CatalogError(HeadgateError):
    """The catalog refuses a statement or a query."""


class UnknownName(CatalogError):
    """There is no such source, feed, operator or subscription."""


class NameTaken(CatalogError):
    """The name is used by something else."""


class FeedCycle(CatalogError):
    """A feed would be defined through itself."""


class InUse(CatalogError):
    """Something else uses what should be dropped."""


class BadTicket(CatalogError):
    """No active subscription has this ticket."""


class QuotaExceeded(CatalogError):
    """The tenant would have more of something than its quota."""


class NotAllowed(CatalogError):
    """Who acts does not have the scope or right for it."""


class BadToken(CatalogError):
    """No subscription has this token of a link in a mail."""


class KeyMissing(CatalogError):
    """The key of the installation, which secrets are made with, is not here or is another one."""


class SealBroken(CatalogError):
    """A sealed value of the catalog cannot be opened (catalog/sealed.py)."""


class CatalogUnavailable(CatalogError):
    """The catalog's database cannot be opened, read or written."""


class PlanError(HeadgateError):
    """A feed cannot be planned within the limits."""


class RoutingError(HeadgateError):
    """A routing table has no such key, or has it already."""


class RelayError(HeadgateError):
    """A relay refuses a peer, a frame, or its network file."""


class FetchError(HeadgateError):
    """A feed cannot be fetched: refused, unreachable, too slow, too large, or an HTTP error.

    It has the server's status and `Retry-After`, if there are any.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(printable(message))
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def gone(self) -> bool:
        """The server says that the feed is gone for good."""
        return self.status == 410


class FeedError(HeadgateError):
    """A fetched document is no feed, or exceeds the limits."""


class StateError(HeadgateError):
    """The state that a source or the outbox keeps cannot be opened, read or written."""


class StateTaken(StateError):
    """Another process writes to it."""


class LogError(HeadgateError):
    """The log of a run has something that cannot be read."""


class LogFenced(LogError):
    """Another process has taken over the log: this one must stop writing."""


class LogUnavailable(LogError, OSError):
    """The storage of the log cannot be reached or refuses a request. Whether a request was carried
    out is not known."""


class OperatorError(HeadgateError):
    """An operator is unknown, failed, or gave an invalid answer."""


class PipelineError(HeadgateError):
    """The pipeline cannot run as it is set up."""


class SnapshotError(HeadgateError):
    """A snapshot file is missing, damaged or not for this version, or cannot be written."""


def nearest_name(wrong: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or an empty string.

    >>> nearest_name("titel", ["title", "link"])
    'title'
    """
    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(wrong.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or an empty string."""
    near = nearest_name(wrong, known)
    return f"did you mean '{near}'?" if near else ""


def alternatives(names: Sequence[str]) -> str:
    """'a, b or c'

    >>> alternatives(["mail", "file", "console"])
    'mail, file or console'
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def printable(text: str) -> str:
    """The text on one line, without control characters: it may go to a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text)


_TICKET = re.compile(r"(?<![A-Za-z0-9_-])([0-9]{1,18}-[A-Za-z0-9_-])([A-Za-z0-9_-]{12,})")


def without_tickets(text: str) -> str:
    """The text with only the beginning of each ticket, and as long as before: errors end up in
    logs, and whoever has a ticket can cancel the subscription.

    >>> without_tickets("renew '12-q7Yd4kXzP0wGtR5uVb' for 3 days")
    "renew '12-q·················' for 3 days"
    """
    return _TICKET.sub(lambda found: found[1] + "·" * len(found[2]), text)


def caret_line(source: str, *, column: int, width: int = 96) -> str:
    """The source line with a caret under the column; a long line is cut around it."""
    start = max(0, column - 1 - width // 2) if len(source) > width else 0
    shown = printable(source[start : start + width])
    cut_left, cut_right = "…" if start else "", "…" if start + width < len(source) else ""
    return f"  {cut_left}{shown}{cut_right}\n  {' ' * (len(cut_left) + column - 1 - start)}^"
