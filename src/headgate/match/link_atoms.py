"""Atoms on links: `references`, `extends` and `shares-link` ([RoSeS §3.2]).

An item has the links of its link attributes and the URLs within its texts and documents; an atom
refers to those of one attribute, or of all. Each distinct link of a batch is normalised once into
the forms of link_forms.py. An atom is a set of prefixes of such forms, found as in prefix_atoms.py.

Cost: for each distinct link its forms and three binary searches; nothing for each atom.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.match.batch import Batch
from headgate.match.bit_rows import Words
from headgate.match.link_forms import FORMS, forms_of_link, prefixes_of_atom
from headgate.match.prefix_atoms import Prefixes, build_prefixes
from headgate.match.texts import TEXT_TYPES, TextColumn, texts_of
from headgate.model.atoms import LinkAtom
from headgate.model.text import links_in
from headgate.model.values import Type


@dataclass(frozen=True, slots=True, eq=False)
class LinkAtoms:
    """The link atoms on an attribute, or on the whole item."""

    attribute: str | None
    prefixes: Prefixes

    def fill(self, batch: Batch, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        numbers: dict[str, int] = {}
        items: list[int] = []
        links: list[int] = []
        for column in batch.columns_of(self.attribute, Type.LINK, *TEXT_TYPES):
            for item, item_links in _links_of(column):
                for link in item_links:
                    items.append(item)
                    links.append(numbers.setdefault(link, len(numbers)))
        if items:
            forms = texts_of(form for link in numbers for form in forms_of_link(link))
            longest = self.prefixes.longest(forms).reshape(-1, FORMS)[links]
            self.prefixes.fill(np.repeat(np.array(items), FORMS), longest.reshape(-1), rows)

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.prefixes.check(row_count)


def _links_of(column: TextColumn) -> Iterable[tuple[int, Iterable[str]]]:
    """The items with links in this column, and the distinct links of each."""
    raw = column.raw
    if column.type is Type.LINK:
        for item in np.nonzero(column.valid)[0].tolist():
            yield item, (raw.text(item),)
        return
    # Few texts contain a URL, and a search for '://' is much faster than one for a URL.
    candidates = np.zeros(len(raw), bool)
    find_url_marks(raw.start, raw.data, candidates)
    for item in np.nonzero(candidates)[0].tolist():
        yield item, dict.fromkeys(links_in(raw.text(item)))


@nb.njit(nogil=True, cache=True)
def find_url_marks(start, data, has_url):  # type: ignore[no-untyped-def]
    """Out: has_url bool [texts], which texts contain '://'. In: start int64 [texts + 1], data
    uint8."""
    for text in range(start.shape[0] - 1):
        for place in range(start[text], start[text + 1] - 2):
            if data[place + 1] == 47 and data[place] == 58 and data[place + 2] == 47:
                has_url[text] = True
                break


def compile_links(atoms: Iterable[tuple[LinkAtom, int]]) -> list[LinkAtoms]:
    """The atoms, each with its row, in one group for each attribute."""
    by_attribute: dict[str | None, list[tuple[bytes, int]]] = {}
    for atom, row in atoms:
        name = None if atom.attribute is None else str(atom.attribute)
        pairs = by_attribute.setdefault(name, [])
        pairs += [(prefix, row) for prefix in prefixes_of_atom(atom)]
    return [LinkAtoms(name, build_prefixes(pairs)) for name, pairs in by_attribute.items()]
