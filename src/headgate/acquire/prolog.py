"""What stands before the root element, taken off: declarations, comments, document types.

    <?xml …?> <!-- … --> <!DOCTYPE rss [ <!ENTITY a "&b;&b;"> ]>   <rss …
    └──────────────────────── cut off ───────────────────────────┘

A document type is where entities are declared, and entities are how a document of a kilobyte
becomes one of a gigabyte, or reads a file of the machine. No feed needs them, but harmless feeds of
old have document types, so they are cut off rather than refused; that entities were declared is
told. Behind this point no parser sees a document type, and the scan asserts it.

The patterns never step back (`*+`), so a prolog of megabytes takes linear time.
"""

from __future__ import annotations

import re

from headgate.acquire.parsed import Problems
from headgate.model.errors import FeedError

_MISCELLANY = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_DOCTYPE = re.compile(
    r"""<!DOCTYPE
        (?: [^\[>"'] | "[^"]*+" | '[^']*+' )*+
        ( \[ (?: [^\]"'<] | "[^"]*+" | '[^']*+' | <!--.*?--> | <\?.*?\?> | < )*+ \] \s*+ )?
        >""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)


def without_prolog(text: str, problems: Problems) -> str:
    """The document from its root element on."""
    at = _skip(text, 0)
    if text[at : at + 9].upper() == "<!DOCTYPE":
        found = _DOCTYPE.match(text, at)
        if found is None:
            raise FeedError("its document type declaration cannot be read")
        if found[1] and "!ENTITY" in found[1].upper():
            problems.add("the entities that it declares are not used")
        at = _skip(text, found.end())
    return text[at:]


def _skip(text: str, at: int) -> int:
    found = _MISCELLANY.match(text, at)
    assert found is not None, "the pattern matches an empty text too"
    return found.end()
