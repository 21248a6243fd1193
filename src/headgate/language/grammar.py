"""The grammar's text, and the words that it reserves."""

from __future__ import annotations

import re
from importlib.resources import files

GRAMMAR = files("headgate.language").joinpath("grammar.lark").read_text(encoding="utf-8")

KEYWORDS = frozenset(re.findall(r"/([a-z-]+)\\b/i$", GRAMMAR, re.MULTILINE))
"""As a name, such a word stands in backticks."""

TYPE_WORDS = frozenset({"timestamp", "link", "bytes", "xml"})
"""Before a text in quotes, such a word makes it a typed constant; elsewhere it is a name."""
