"""Prices beside measurements, and what metering costs.

For each kind of atom, programs with many and with few atoms of it match the same batch; the
difference is what an atom adds to the CPU time of an item, and is compared with its price
(language/costs.py). Programs, not single atoms, because the price is that of one among many.
Wide patterns, patterns that remember places and low similarities may be slow, depending on texts
and on each other. They are priced by a bound: it may be far above the measurement, never far below.

Metering is compared with the same code and clocks that always say 0, in turns, by CPU time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

from bench import Result, Row, Say
from headgate.language.costs import TEXT_BYTES, atom_cpu_us
from headgate.match import pattern_atoms, similar_atoms
from headgate.match.batch import Batch, batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import Program, compile_program
from headgate.model.atoms import Atom, Comparison, Contains, Matches, Relation, Similar, StartsWith
from headgate.model.filters import And, Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

SCHEMA = Schema((Attribute("title", Type.TEXT), Attribute("price", Type.INT)))
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FACTOR = 20.0
"""A price may be so many times below or above the measurement; bounds may be above it."""
OVERHEAD_MAX = 0.02


def run(*, quick: bool, say: Say) -> Result:
    chance = random.Random(20)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(3, 9))) for _ in range(5_000)]
    items, repeats = (1_024, 3) if quick else (4_096, 7)
    titles = [" ".join(chance.choices(words, k=40))[: TEXT_BYTES["title"]] for _ in range(items)]
    batch = _batch(chance, titles)
    rows = []
    for kind, (atoms, is_bound) in _kinds(chance, words, titles, quick=quick).items():
        say(kind)
        rows.append(_price_row(kind, atoms, batch, repeats, is_bound=is_bound))
    say("metering")
    rows.append(_metering_row(chance, words, titles, batch, repeats, quick=quick))
    return Result(rows)


def _kinds(
    chance: random.Random, words: Sequence[str], titles: Sequence[str], *, quick: bool
) -> dict[str, tuple[list[Atom], bool]]:
    many, some = (2_000, 200) if quick else (20_000, 1_000)

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

    def part(count: int) -> str:
        """Some words of a title, so that a similar one exists."""
        return " ".join(chance.choice(titles).split()[:count])

    return {
        "comparison": (
            [Comparison("price", Relation.LESS, each) for each in range(many)],
            False,
        ),
        "contains": ([Contains("title", each) for each in words[:many]], False),
        "starts with": ([StartsWith("title", text(2)) for _ in range(many)], False),
        "similar(0.5)": ([Similar("title", part(8)) for _ in range(some)], False),
        "similar(0.2)": ([Similar("title", part(8), 0.2) for _ in range(some)], True),
        "matches, shared": ([Matches("title", text(1)) for _ in range(some)], False),
        "matches, alone": (
            [Matches("title", f"({each}|{text(1)}).*[0-9]") for each in words[:20]],
            True,
        ),
        "matches, remembers places": ([Matches("title", "[a-m].{40}[0-9]")], True),
    }


def _batch(chance: random.Random, titles: Sequence[str]) -> Batch:
    types = {str(each.name): each.type for each in SCHEMA.attributes}
    items = [
        Item(str(number), "S", NOON, {"title": title, "price": chance.randrange(20_000)})
        for number, title in enumerate(titles)
    ]
    return batch_of_items(items, types)


def _price_row(
    kind: str, atoms: Sequence[Atom], batch: Batch, repeats: int, *, is_bound: bool
) -> Row:
    few = atoms[: len(atoms) // 10]
    base: Filter = Comparison("price", Relation.LESS, -1)
    large = compile_program([And((base, each)) for each in atoms], SCHEMA)
    small = compile_program([And((base, each)) for each in few] or [base], SCHEMA)
    large_s, small_s = _least_s([_matching(large, batch), _matching(small, batch)], repeats)
    added = len(atoms) - len(few)
    measured_us = max((large_s - small_s) / added / batch.size * 1e6, 1e-6)
    price_us = sum(atom_cpu_us(each, {}) for each in atoms) / len(atoms)
    ratio = price_us / measured_us
    met = ratio >= 1 / FACTOR and (is_bound or ratio <= FACTOR)
    return Row(
        kind,
        f"{len(atoms):,} atoms, {batch.size:,} texts of {TEXT_BYTES['title']} bytes",
        f"price {1_000 * price_us:.3g} ns an item, {ratio:.2g} × the measurement",
        f"≥ 1/{FACTOR:.0f} ×" + ("" if is_bound else f", ≤ {FACTOR:.0f} ×"),
        met,
        baseline=f"measured {1_000 * measured_us:.3g} ns",
    )


def _metering_row(
    chance: random.Random,
    words: Sequence[str],
    titles: Sequence[str],
    batch: Batch,
    repeats: int,
    *,
    quick: bool,
) -> Row:
    kinds = _kinds(chance, words, titles, quick=quick)
    chosen = ("contains", "similar(0.5)", "similar(0.2)", "matches, shared", "matches, alone")
    literal = [Matches("title", f"{each}.*{chance.choice(words)}") for each in words[:200]]
    atoms = [*(atom for kind in chosen for atom in kinds[kind][0]), *literal]
    program = compile_program(list(atoms), SCHEMA)
    match = _matching(program, batch)
    match()  # sets of patterns are compiled, and split where they are slow

    def unmetered() -> None:
        with _stopped_clocks():
            match()

    metered_s, unmetered_s = _least_s([match, unmetered], 3 * repeats)
    overhead = metered_s / unmetered_s - 1
    return Row(
        "metering",
        f"{len(atoms):,} atoms, of them {sum(isinstance(each, Matches) for each in atoms):,} "
        "patterns",
        f"{overhead:+.1%}",
        f"≤ {OVERHEAD_MAX:.0%}",
        overhead <= OVERHEAD_MAX,
        baseline=f"{1e6 * unmetered_s / batch.size:.2f} µs an item without clocks",
    )


def _matching(program: Program, batch: Batch) -> Callable[[], object]:
    return lambda: ProgramMatcher(program).match(batch)


@contextmanager
def _stopped_clocks() -> Iterator[None]:
    stopped = SimpleNamespace(
        thread_time=lambda: 0.0,
        thread_time_ns=lambda: 0,
        perf_counter=time.perf_counter,  # sets of patterns look at it, metered or not
        perf_counter_ns=lambda: 0,
    )
    pattern_atoms.time = similar_atoms.time = stopped  # type: ignore[assignment]
    try:
        yield
    finally:
        pattern_atoms.time = similar_atoms.time = time


def _least_s(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The least CPU time of each, in turns."""
    least = [float("inf")] * len(works)
    for _ in range(repeats + 1):  # the first turn compiles
        for number, work in enumerate(works):
            began_s = time.thread_time()
            work()
            least[number] = min(least[number], time.thread_time() - began_s)
    return least
