"""`headgate check` lists operators that cannot run here; it imports allowed modules only."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.headgate_command import Run

CITY = Path(__file__).parents[2] / "examples" / "city" / "city.feeds"


def test_all_operators_of_the_city_example_can_run(headgate: Run) -> None:
    code, out, _ = headgate("check", str(CITY), "--json")
    assert code == 0
    assert "cannot_run" not in json.loads(out)


def test_operators_that_cannot_run_are_listed(headgate: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.feeds"
    script.write_text(
        """
        register stream Drones from json 'a.json' (n int);
        register operator strange(a text) from 'somebody.elses:module';
        register operator divides(divisor int) from 'tests.operators.functions:divide';
        register operator dividesAll(divisor int) from 'tests.operators.functions:divides_all';
        create feed A from Drones where dividesAll(?x) and ?x > 5;
        """,
        encoding="utf-8",
    )
    code, out, _ = headgate("check", str(script), "--operators", "tests.operators, other")
    assert code == 0
    lines = [each for each in out.splitlines() if each.startswith("cannot run here: ")]
    assert len(lines) == 3
    assert "module 'somebody.elses' is not allowed here" in lines[0]
    assert "has no function 'divide'; did you mean 'divides'" in lines[1]
    assert "feed 'A': operator 'dividesAll' finds no values for 'divisor'" in lines[2]
