"""Assert that a program agrees with the oracle on given atoms and items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.match.strategies import NOON

from headgate.match.batch import batch_of_items
from headgate.match.program import compile_groups
from headgate.model.atoms import Atom
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.model.values import Type, Value


def item(**attributes: Value) -> Item:
    return Item("x", "S", NOON, attributes)


def answers(
    atoms: Sequence[Atom], items: Sequence[Item], types: dict[str, Type]
) -> list[list[bool]]:
    """For each atom, of which items the groups say that it is true; all groups pass their check."""
    rows = np.zeros((len(atoms), (len(items) + 63) // 64), np.uint64)
    batch = batch_of_items(items, types)
    for group in compile_groups([(atom, row) for row, atom in enumerate(atoms)], types):
        group.check(len(atoms))
        group.fill(batch, rows)
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert not bits[:, len(items) :].any()
    return bits[:, : len(items)].tolist()


def assert_agrees(atoms: Sequence[Atom], items: Sequence[Item], types: dict[str, Type]) -> None:
    found = answers(atoms, items, types)
    for atom, own in zip(atoms, found, strict=True):
        for each, answer in zip(items, own, strict=True):
            assert answer == matches(atom, each), (atom, each)
