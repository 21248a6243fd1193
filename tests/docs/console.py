"""Console examples: what was typed, what came out, and whether it still does.

In an expected output, `…` stands for any characters within a line; a line that is only `…`
stands for any number of lines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

PROMPT = "$ "
ANY = "…"


@dataclass(frozen=True, slots=True)
class Command:
    typed: tuple[str, ...]  # with the prompt, and with its continuation lines
    expected: tuple[str, ...]

    @property
    def shell(self) -> str:
        return "\n".join(self.typed).removeprefix(PROMPT)


def read_commands(lines: Sequence[str]) -> list[Command]:
    commands: list[Command] = []
    typed: list[str] = []
    expected: list[str] = []
    for line in lines:
        if typed and not expected and typed[-1].endswith("\\"):
            typed.append(line)
        elif line.startswith(PROMPT):
            if typed:
                commands.append(Command(tuple(typed), tuple(expected)))
            typed, expected = [line], []
        else:
            assert typed, f"a console block begins with a command after '{PROMPT}', not {line!r}"
            expected.append(line)
    if typed:
        commands.append(Command(tuple(typed), tuple(expected)))
    return commands


def clean(output: str) -> tuple[str, ...]:
    """The lines of an output, without the blanks that nobody sees."""
    return tuple(line.rstrip() for line in output.rstrip().splitlines())


def line_matches(expected: str, actual: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.rstrip().split(ANY))
    return re.fullmatch(pattern, actual) is not None


def update(expected: Sequence[str], actual: Sequence[str]) -> tuple[str, ...]:
    """The actual lines, except that expected lines stay where they match through `…`.

    This is an edit distance in which a lone `…` takes lines for nothing. The result equals
    `expected` exactly where the whole output matches.
    """
    expected = clean("\n".join(expected))
    # best[j]: (edits, lines to show) for the expected lines so far and actual[:j]
    best = [(j, tuple(actual[:j])) for j in range(len(actual) + 1)]
    for want in expected:
        row: list[tuple[int, tuple[str, ...]]] = []
        for j, (edits, shown) in enumerate(best):
            if want.strip() == ANY:
                choices = [(edits, (*shown, want))]  # it begins here, with no line taken yet
                if j > 0:
                    choices.append(row[j - 1])  # or it takes one line more
                row.append(min(choices, key=lambda choice: choice[0]))
                continue
            choices = []
            if j > 0:
                before_edits, before = best[j - 1]
                if line_matches(want, actual[j - 1]):
                    choices.append((before_edits, (*before, want)))
                choices.append((before_edits + 1, (*before, actual[j - 1])))
                choices.append((row[j - 1][0] + 1, (*row[j - 1][1], actual[j - 1])))
            choices.append((edits + 1, shown))  # last, so that a changed line stays a line
            row.append(min(choices, key=lambda choice: choice[0]))
        best = row
    return best[-1][1]
