"""The program as text: derived rows are bound once, then the forest, a node on each line.

    r0 := destination starts with 'London' or shop extends 'resale.example'
    r1 := not r0
    price between 150 and 300
      time.weekday in (6, 7)
        r1                          → WeekendTrips

An arrow leads from the end of a conjunction to its subscriptions. Subscriptions that every item
matches are listed at the end, after `true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.match.bit_rows import NOT, OR
from headgate.match.program import Program

INDENT = "  "


def program_text(program: Program, atoms: Sequence[str], owners: Sequence[str]) -> str:
    """The program in lines, given the text of each atom and the name of each subscription."""
    rows = [*atoms, *(f"r{at}" for at in range(program.derived_operators.size))]
    lines = [*_bindings(program, rows), *_forest(program, rows, owners)]
    if program.always.size:
        lines.append(("true", ", ".join(owners[at] for at in program.always)))
    width = max((len(line) for line, to in lines if to), default=0)
    return "\n".join(f"{line:<{width}}    → {to}" if to else line for line, to in lines)


def counts_text(program: Program) -> str:
    """`3 filters, 5 atoms, 2 derived rows, 5 nodes`"""
    counts = {
        "filter": program.subscription_count,
        "atom": program.atom_count,
        "derived row": program.derived_operators.size,
        "node": program.forest.node_row.size,
    }
    return ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for word, n in counts.items())


def _bindings(program: Program, rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, operator in enumerate(program.derived_operators.tolist()):
        start, end = program.operand_start[number : number + 2].tolist()
        parts = [rows[row] for row in program.operands[start:end].tolist()]
        word = " or " if operator == OR else " and "
        text = f"not {parts[0]}" if operator == NOT else word.join(parts)
        yield f"{rows[program.atom_count + number]} := {text}", ""


def _forest(
    program: Program, rows: Sequence[str], owners: Sequence[str]
) -> Iterator[tuple[str, str]]:
    forest = program.forest
    nodes = zip(*(array.tolist() for array in forest.nodes), strict=True)
    for row, depth, _, end in nodes:
        names = ""
        if end >= 0:
            start, stop = forest.end_start[end : end + 2].tolist()
            names = ", ".join(owners[at] for at in forest.subscriptions[start:stop].tolist())
        yield INDENT * depth + rows[row], names
