"""From a name to a function: which modules are allowed, and the message for each mistake."""

from __future__ import annotations

import sys

import pytest

from headgate.model.errors import OperatorError
from headgate.model.values import Type
from headgate.operators.declaration import Declaration
from headgate.operators.load import load, load_all

ALLOWED = ["tests.operators"]
HERE = "tests.operators.functions"


def declared(target: str, *parameters: str) -> Declaration:
    return Declaration("p", target, tuple((each, Type.INT) for each in parameters))


def test_a_function_is_loaded_with_its_form() -> None:
    found = load(declared(f"{HERE}:divided", "by", "quotient", "rest"), ALLOWED)
    assert (found.form.batch, found.form.binds) == (False, ("quotient", "rest"))
    assert load(declared(f"{HERE}:divides_all", "divisor"), ALLOWED).form.batch


def test_the_bundled_examples_are_always_allowed() -> None:
    assert load(Declaration("in", "headgate.operators.examples.places:loc_in", (("a", Type.TEXT),)))


@pytest.mark.parametrize(
    ("target", "parameters", "message"),
    [
        ("os:system", ["command"], "module 'os' is not allowed here; .* --operators os"),
        ("tests.operatorsx:f", [], "module 'tests.operatorsx' is not allowed"),
        ("tests:f", [], "module 'tests' is not allowed"),
        ("tests.operators:", [], "not written as 'package.module:function'"),
        ("tests..operators:f", [], "not written as"),
        (".tests.operators:f", [], "not written as"),
        ("tests.operators.functions:a.b", [], "not written as"),
        ("tests.operators.functoins:f", [], "no module .*; did you mean 'tests.operators.functi"),
        (f"{HERE}.deeper:f", [], f"no module '{HERE}.deeper'"),
        (f"{HERE}:devides", [], "has no function 'devides'; did you mean 'divides'"),
        (f"{HERE}:CONSTANT", [], "is of type int, not a function"),
        (f"{HERE}:Item", [], "is a class, not a function"),
        (f"{HERE}:asynchronous", [], "is asynchronous"),
        (f"{HERE}:divides", [], r"takes \(item: .*\) -> .*, but will be called with \(item\)"),
        (f"{HERE}:divides", ["a", "b"], r"will be called with \(item, a, b\)"),
        (f"{HERE}:divided", ["by"], "it binds 'quotient', which is not among the declared"),
        (f"{HERE}:divides_all", [], r"will be called with \(batch\)"),
        ("tests.operators.broken_module:f", [], "cannot be imported: ZeroDivisionError"),
        ("tests.operators.incomplete_module:f", [], "cannot be imported: ModuleNotFound.*nowhere"),
    ],
)
def test_load_errors_say_what_is_wrong(target: str, parameters: list[str], message: str) -> None:
    with pytest.raises(OperatorError, match=message) as caught:
        load(declared(target, *parameters), ALLOWED)
    assert str(caught.value).startswith("operator 'p': ")


def test_nothing_is_imported_that_is_not_allowed() -> None:
    target = "tests.operators.hanging_module:f"
    with pytest.raises(OperatorError, match="not allowed"):
        load(declared(target), ["tests.operators.functions"])
    assert "tests.operators.hanging_module" not in sys.modules


def test_an_operator_that_cannot_be_loaded_does_not_stop_the_others() -> None:
    good = Declaration("good", f"{HERE}:divides", (("divisor", Type.INT),))
    loaded, refused = load_all([declared("os:system"), good], ALLOWED)
    assert (set(loaded), set(refused)) == ({"good"}, {"p"})
