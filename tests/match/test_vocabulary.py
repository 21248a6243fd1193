"""A hash table finds its keys, and hostile keys make no long runs."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.match.vocabulary import build_slots


def runs(slots: np.ndarray) -> list[int]:
    return [len(run) for run in "".join("x" if each >= 0 else " " for each in slots).split()]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 1_000, 50_000])
def test_every_key_is_in_the_table_and_half_of_it_is_free(count: int) -> None:
    def hashes(seed: np.uint64, into: np.ndarray) -> None:
        into[:] = np.random.default_rng(int(seed)).integers(0, 2**63, count, np.uint64)

    slots, seed = build_slots(count, hashes)
    assert seed == 0
    assert sorted(slots[slots >= 0]) == list(range(count))
    assert slots.size & (slots.size - 1) == 0
    assert 2 * count <= slots.size


def test_keys_that_collide_under_one_seed_get_another() -> None:
    def hashes(seed: np.uint64, into: np.ndarray) -> None:
        into[:] = 5 if seed < 3 else np.random.default_rng(9).integers(0, 2**63, into.size)

    slots, seed = build_slots(100_000, hashes)
    assert seed == 3
    assert max(runs(slots)) < 400


def test_keys_that_collide_under_all_seeds_are_still_found() -> None:
    slots, _ = build_slots(500, lambda _, into: into.fill(7))
    assert sorted(slots[slots >= 0]) == list(range(500))
