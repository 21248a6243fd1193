"""How many documents a relay holds of a view: fewer, where recent ones are large.

Law: as long as documents are no larger than the largest of the last `documents_max`, what is held
is at most `bytes_max`; one document is always taken, or nothing would go on.

Bytes are those of results as they came or were made. Decoded for a rewriting they take up to four
times as much for a while.
"""

from __future__ import annotations


class DocumentWindow:
    def __init__(self, documents_max: int, bytes_max: int) -> None:
        self._documents_max, self._bytes_max = documents_max, bytes_max
        self._bytes_of: dict[int, int] = {}
        self.documents = documents_max

    def measure(self, document: int, size_bytes: int) -> None:
        """So much more has come of a document."""
        is_new = document not in self._bytes_of
        self._bytes_of[document] = found = self._bytes_of.get(document, 0) + size_bytes
        if is_new and len(self._bytes_of) > self._documents_max:
            del self._bytes_of[min(self._bytes_of)]
        if is_new or found * self.documents > self._bytes_max:
            fitting = self._bytes_max // max(1, *self._bytes_of.values())
            self.documents = max(1, min(self._documents_max, fitting))
