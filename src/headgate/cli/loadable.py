"""Which operators of a script cannot run here: for `headgate check`.

That is no error of the script: it may be applied on one machine and run on another. Modules are
imported to find out, but none that is not allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headgate.language.statements import CreateFeed, RegisterOperator, Statement
from headgate.model.atoms import Call
from headgate.model.errors import OperatorError
from headgate.model.filters import atoms_of
from headgate.operators.load import check_call, load_all
from headgate.pipeline.layer_builder import declaration_of


def problems(statements: Iterable[Statement], allowed: Sequence[str]) -> list[str]:
    """What cannot be loaded, and what is loaded but cannot be called as feeds call it."""
    known = list(statements)
    declared = [declaration_of(each) for each in known if isinstance(each, RegisterOperator)]
    loaded, refused = load_all(declared, allowed)
    found = list(refused.values())
    for feed, call in _calls(known):
        operator = loaded.get(call.operator)
        if operator is not None:
            try:
                check_call(operator.declaration, operator.form, call)
            except OperatorError as error:
                found.append(f"feed '{feed}': {error}")
    return found


def _calls(statements: Iterable[Statement]) -> Iterator[tuple[str, Call]]:
    for statement in statements:
        if isinstance(statement, CreateFeed):
            for condition in statement.where:
                for atom in atoms_of(condition.filter):
                    if isinstance(atom, Call):
                        yield str(statement.name), atom
