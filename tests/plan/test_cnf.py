"""Bounded conjunctive normal form: equivalent, canonical, and of bounded size."""

from hypothesis import given
from hypothesis import strategies as st
from tests.plan.strategies import OPERATORS, START, filters, small, texts

from headgate.model.atoms import Call, Comparison, Constraint, IsPresent, Relation, Variable
from headgate.model.evaluate import matches
from headgate.model.filters import FALSE, TRUE, And, Filter, Not, Or, conjuncts
from headgate.model.items import Item
from headgate.plan.cnf import CLAUSES_MAX, is_cnf, to_cnf

A, B, C, D = (IsPresent(name) for name in "abcd")


@st.composite
def items(draw: st.DrawFn) -> Item:
    attributes = draw(st.fixed_dictionaries({}, optional={"a": small, "b": small, "title": texts}))
    return Item("1", "s", START, attributes)


@given(filters, items())
def test_cnf_is_true_of_the_same_items(filter_: Filter, item: Item):
    normal = to_cnf(filter_)
    assert matches(normal, item, operators=OPERATORS) == matches(filter_, item, operators=OPERATORS)
    assert is_cnf(normal)


def pairs(count: int) -> Or:
    """(a0 and b0) or (a1 and b1) or …: 2^count clauses."""
    return Or(tuple(And((IsPresent(f"a{n}"), IsPresent(f"b{n}"))) for n in range(count)))


def test_clauses_up_to_the_limit_are_written_out():
    assert len(conjuncts(to_cnf(pairs(6)))) == CLAUSES_MAX


def test_beyond_the_limit_a_filter_stays_factored():
    assert to_cnf(pairs(7)) == pairs(7)
    assert to_cnf(pairs(1000)) == pairs(1000)


def test_only_the_exploding_part_stays_factored():
    small_part = Or((A, And((B, C))))
    assert to_cnf(And((pairs(7), small_part))) == And((Or((A, B)), Or((A, C)), pairs(7)))


def test_the_limit_holds_for_all_parts_together():
    both = And((pairs(5), Or(tuple(And((IsPresent(f"c{n}"), B, C)) for n in range(5))), D))
    assert len(conjuncts(to_cnf(both))) <= CLAUSES_MAX


def test_conjuncts_that_were_written_are_no_growth():
    many = And(tuple(IsPresent(f"x{n:03}") for n in range(200)))
    assert to_cnf(many) == many


def test_long_disjunctions_do_not_multiply():
    long = tuple(IsPresent(f"x{n}") for n in range(1000))
    filter_ = Or((*long, And((A, B, C, D, IsPresent("e")))))
    assert to_cnf(filter_) == filter_


def test_negations_go_down_to_atoms_and_stay():
    less = Comparison("x", Relation.LESS, 5)
    assert to_cnf(Not(Or((less, Not(A))))) == And((A, Not(less)))


def test_the_order_in_which_conditions_are_written_does_not_matter():
    assert to_cnf(And((Or((C, B)), A))) == to_cnf(And((A, Or((B, C)), A)))


def test_a_clause_that_another_implies_is_dropped():
    assert to_cnf(And((Or((A, B)), A, Or((A, C, B))))) == A


def test_constants_are_found():
    assert to_cnf(Or((A, Not(A)))) == TRUE
    assert to_cnf(And((A, B, Not(A)))) == FALSE
    assert to_cnf(Not(TRUE)) == FALSE


def test_parts_with_variables_stay_as_they_are():
    call = Call("below", (Variable("p"),))
    above = Constraint(Variable("p"), Relation.GREATER, 1)
    either = Or((And((call, above)), And((A, B))))
    assert to_cnf(And((either, And((above, call)), Or((C, And((A, B))))))) == And(
        (Or((A, C)), Or((B, C)), either, above, call)
    )


def test_the_same_object_comes_back():
    normal = to_cnf(And((B, A)))
    assert to_cnf(normal) is normal
