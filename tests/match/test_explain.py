"""The program as text."""

from __future__ import annotations

from collections.abc import Callable

from tests.match.strategies import SCHEMA

from headgate.match.explain import counts_text, program_text
from headgate.match.program import atoms_of, compile_program
from headgate.model.atoms import Comparison, Contains, Relation
from headgate.model.filters import TRUE, And, Filter, Not, Or

more = Comparison("i", Relation.GREATER, 5)
less = Comparison("i", Relation.LESS, 9)
rock, pop = Contains("w", "rock"), Contains("w", "pop")


def explained(filters: dict[str, Filter]) -> str:
    found = list(filters.values())
    program = compile_program(found, SCHEMA)
    names = {more: "i > 5", less: "i < 9", rock: "rock", pop: "pop"}
    text = program_text(program, [names[each] for each in atoms_of(found)], list(filters))
    return f"{counts_text(program)}\n{text}\n"


def test_programs(golden: Callable[[str, str], None]) -> None:
    shared = {"A": And((rock, more)), "B": And((more, rock, less)), "C": rock, "D": rock}
    nested = {"A": Or((rock, And((more, Not(pop))))), "B": Not(Or((rock, pop))), "All": TRUE}
    golden("match/program.txt", "\n".join([explained(shared), explained(nested), explained({})]))
