"""What sanitising a piece of HTML may cost, bounded by one linear scan, before it is parsed.

An HTML parser takes time proportional to the number of *open* elements for each tag, and to the
number of attributes for each attribute of a tag. Some 60 kB suffice for 17 s:

    <p><i class=x0><p><i class=x1><p><i class=x2> …     each <p> opens all <i> again

The scan adds up, for each tag, the elements that may be open, and the square of its attributes. An
end tag closes only an element of its own name; everything in doubt counts as open. Ordinary
pages cost two or three a tag. What costs more than `COST_MAX` is not parsed by a process that has
other work: it goes to a sandboxed process with a time limit (acquire/), or is shown as text
(deliver/).
"""

from __future__ import annotations

import re

COST_MAX = 100_000
"""One is about 0.25 µs of nh3, so this is some 25 ms."""
SMALL_TAGS, SMALL_LENGTH = 64, 1_024
GROWTH_MAX = 4
_ATTRIBUTES_PER_UNIT = 64
_LONG_TAG = 512

_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/<>]*)((?:[^<>"']|"[^"]*"|'[^']*')*)""")
_SEPARATORS = re.compile(r"""[\s/"']+""")
# Elements without an end tag, or which the next of their kind closes.
_UNNESTED_NAMES = """
    area base br col embed hr img input link meta source track wbr
    p li dt dd tr td th thead tbody tfoot option rt rp
"""
_UNNESTED = frozenset(_UNNESTED_NAMES.split())


def is_cheap(markup: str, cost_max: int = COST_MAX) -> bool:
    """Whether sanitising the markup takes time proportional to its length.

    >>> is_cheap("<p>Rock &amp; <b>Roll</b></p>" * 1000)
    True
    >>> is_cheap("".join(f"<i class=x{k}>y" for k in range(3999)))
    False
    """
    if len(markup) <= SMALL_LENGTH and markup.count("<") <= SMALL_TAGS:
        return True
    opened: dict[str, int] = {}
    count = cost = 0
    for tag in _TAG.finditer(markup):
        closing, name, rest = tag.groups()
        cost += 1 + count
        if len(rest) > _LONG_TAG:
            cost += len(_SEPARATORS.findall(rest)) ** 2 // _ATTRIBUTES_PER_UNIT
        if cost > cost_max or "<" in rest:  # a quote that a browser would not take for one
            return False
        name = name.lower()
        if name in _UNNESTED:
            continue
        if not closing:
            opened[name] = opened.get(name, 0) + 1
            count += 1
        elif opened.get(name):
            opened[name] -= 1
            count -= 1
    return True


def has_grown(sanitised: str, markup: str) -> bool:
    """Whether sanitising has multiplied the tags, so that work on the result is not bounded by the
    length of what was given."""
    return sanitised.count("<") > GROWTH_MAX * markup.count("<") + SMALL_TAGS
