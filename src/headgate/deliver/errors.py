"""Every error of this room.

HeadgateError
└── DeliveryError
    ├── OutputError      a file, mail or call failed; says whether to try again, and when
    ├── LeaseLost        another worker holds the slot now; this one must leave it alone
    └── TransformError   a stylesheet is wrong, refused or too costly; says which and where
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.model.errors import HeadgateError, printable

ERROR_LENGTH_MAX = 500


class DeliveryError(HeadgateError):
    """What goes wrong between a match and its subscriber."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class OutputError(DeliveryError):
    """An output did not take what it was given.

    lasting      trying the same again cannot help: the deliveries become dead letters at once
    unreachable  nothing got through: nothing else is tried now that goes to the same receiver
    busy         no more for now: the other messages of this subscription are not tried
    gone         the receiver wants nothing any more: the subscription is halted
    ambiguous    the receiver may have taken it: the connection ended before the answer
    status       that of the answer, of a call that was answered
    """

    def __init__(
        self,
        message: str,
        *,
        lasting: bool = False,
        unreachable: bool = False,
        busy: bool = False,
        gone: bool = False,
        ambiguous: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.lasting = lasting or gone
        self.unreachable = unreachable
        self.ends_run = unreachable or busy or gone
        self.gone = gone
        self.ambiguous = ambiguous
        self.retry_after_s = retry_after_s
        self.status = status


class LeaseLost(DeliveryError):
    """Another worker has taken these slots, since this one did not renew its lease in time."""

    def __init__(self, slots: Iterable[int]) -> None:
        self.slots = frozenset(slots)
        shown = ", ".join(map(str, sorted(self.slots)[:5]))
        more = ", …" if len(self.slots) > 5 else ""
        super().__init__(f"another worker delivers the slots {shown}{more} now")


class TransformError(DeliveryError):
    """A stylesheet that is wrong, refused, or beyond its limits.

    >>> print(TransformError("xsl:include is refused", stylesheet="Title.xsl", line=3))
    Title.xsl, line 3: xsl:include is refused
    """

    def __init__(self, message: str, *, stylesheet: str, line: int = 0) -> None:
        place = f"{stylesheet}, line {line}" if line else stylesheet
        super().__init__(f"{place}: {message}")
        self.stylesheet = stylesheet
        self.line = line


def shown_error(error: DeliveryError) -> str:
    """An error as rows keep it."""
    return printable(str(error))[:ERROR_LENGTH_MAX].encode("utf-8", "replace").decode()
