"""100,000 mutated statements: each gives a result or a `LanguageError`, and none is slow."""

from __future__ import annotations

import random

import pytest
from tests.cpu_time import within_cpu
from tests.language.definitions import KNOWN
from tests.language.test_bad_statements import STATEMENTS
from tests.language.test_listings import DESIGN, LISTINGS

from headgate.language.parse import read_script
from headgate.language.unparse import unparse
from headgate.model.errors import LanguageError

SEEDS = [*STATEMENTS, *KNOWN.split(";\n"), *DESIGN.split(";\n"), *LISTINGS.values()]
PIECES = [
    *"()[]{}|,;.'\"`“”‘’$?/*+-=<>!@:\\",
    *("--", "//", "...", "…", "<>", "$x", "?x", "''", "\n", "\0", "\ud800", "\x1b[2J", "é", "🎸"),
    *(
        "and",
        "or",
        "not",
        "in",
        "is",
        "from",
        "window.title",
        "between 1 and",
        "timestamp '",
        "1e9",
    ),
    *("999999999999999999999", "not not", "((((((((", "))))))))", "-", "create feed", "'" * 7),
]
BATCHES, BATCH = 8, 12_500
SLOWEST_S = 0.1


def mutate(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(text))
        match chance.randrange(5):
            case 0:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.randint(1, 8) :]
            case 2:
                other = chance.choice(SEEDS)
                cut = chance.randint(0, len(other))
                text = text[:at] + other[cut : cut + 20] + text[at:]
            case 3:
                text = text[:at] + text[at : at + 12] * chance.randint(2, 5) + text[at + 12 :]
            case 4:
                words = text.split(" ")
                chance.shuffle(words)
                text = " ".join(words)
    return text


@pytest.mark.integration  # some seconds each
@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_statements_give_results_or_language_errors(batch: int) -> None:
    chance = random.Random(batch)
    for _ in range(BATCH):
        text = mutate(chance.choice(SEEDS), chance)
        for result in within_cpu(SLOWEST_S, lambda text=text: list(read_script(text))):
            if isinstance(result, LanguageError):
                assert result.line >= 1
                assert result.column >= 1
            else:
                assert unparse(result)


HOSTILE = {
    "parentheses": "create feed X from A where " + "(" * 30_000,
    "closed parentheses": "create feed X from A where " + "(" * 5_000 + "a" + ")" * 5_000,
    "negations": "create feed X from A where " + "not " * 16_000 + "a",
    "sums": "create feed X from A where p(?x) and ?x " + "+ 1 " * 12_000 + "> 3",
    "steps": "create feed X from A match " + "/a" * 30_000,
    "branches with steps": "create feed X from A match " + "/a[b/c/d/e/f" * 60 + "]" * 60,
    "union": "create feed X from (" + "a|" * 30_000 + "a)",
    "longest union": "create feed X from (" + "a|" * 1_240 + "a)",
    "longest filter": "create feed X from A where a" + " and b" * 1_240,
    "list": "create feed X from A where a in (" + "1," * 30_000 + "1)",
    "text": "create feed X from A where a contains '" + "x" * 200_000 + "'",
    "open text": "create feed X from A where a contains '" + "x''" * 20_000,
    "quotes": "'" * 60_001,
    "curly quotes": "“" * 60_000,
    "semicolons": ";" * 10_000,
    "comments": "--" * 30_000,
    "digits": "create feed X from A where a > " + "9" * 60_000,
    "exponent": "create feed X from A where a > 1e" + "9" * 60_000,
    "pattern": "create feed X from A where a matches '(((a{1,99}){1,99}){1,99})'",
    "similar": "create feed X from A where a similar '" + "a b " * 15_000 + "'",
    "wide text": "create feed X from A where a contains '" + "é" * 40_000 + "'",
    "url": "register feed http://" + "a" * 60_000,
    "ellipses": "create feed X from (" + "...|" * 2_000 + "a)",
    "backticks": "create feed `" + "a" * 60_000,
    "spaces": "show" + " " * 60_000 + "feeds",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_statements_are_answered_at_once(text: str) -> None:
    for result in within_cpu(SLOWEST_S, lambda: list(read_script(text))):
        assert isinstance(result, LanguageError) or unparse(result)
