"""Each rule's golden file: plans before and after, and plans on which it must not fire."""

from collections.abc import Callable

import pytest
from tests.plan.cases import (
    join,
    join_condition,
    last,
    rated,
    reviews,
    s,
    stocks,
    t,
    u,
    union,
    where,
)

from headgate.model.duration import Duration, Unit
from headgate.model.filters import FALSE, TRUE
from headgate.model.tree_pattern import PatternNode
from headgate.plan.algebra import EMPTY, Filter, Join, Match, Plan, Window
from headgate.plan.plan_text import plan_text
from headgate.plan.rules import RULES, Rule

SIMILAR = "title similar window.title"
EXPLODING = " or ".join(f"a{n} = 1 and b{n} = 1" for n in range(7))


def match(input_: Plan) -> Match:
    return Match("F#match", PatternNode("topic"), input_)


CASES: dict[str, dict[str, Plan]] = {
    "drop_true_filters": {
        "a filter that is always true": Filter(TRUE, s),
        "must not fire: a filter that may be false": where("a = 1", s),
        "must not fire: a join that only wants an item": Join("F#1", TRUE, s, last(1, t)),
    },
    "merge_filters": {
        "the inner filter comes first": where("a = 1", where("b = 2 or c = 3", s)),
        "variables of two scopes are renamed apart": where(
            "crowd(?p) and ?p < 9", where("mob(?p) and ?p > 50", s)
        ),
        "the same scope is kept once": where(
            "mob(?p) and ?p > 50 and a = 1", where("mob(?p) and ?p > 50", s)
        ),
        "also under another name": where("mob(?q) and ?q > 50", where("mob(?p) and ?p > 50", s)),
        "a scope that differs in one part is another": where(
            "mob(?p) and ?p > 60", where("mob(?p) and ?p > 50", s)
        ),
        "must not fire: something between the filters": where("a = 1", union(where("b = 2", s), t)),
    },
    "filter_to_cnf": {
        "clauses are sorted": where("title contains 'rock' and category = 'pop'", s),
        "or over and": where("a = 1 or b = 2 and c = 3", s),
        "not over or": where("not (a = 1 or b = 2)", s),
        "a not at an atom stays: x may be missing": where("not (x < 5 and a = 1)", s),
        "parts with variables stay whole, behind the others": where(
            "mob(?p) and (?p > 50 or a = 1 and b = 2) and not (a = 1 or b = 2)", s
        ),
        "beyond 64 clauses only the exploding part stays factored": where(
            f"not (x = 1 or y = 2) and ({EXPLODING})", s
        ),
        "contradictions": where("a = 1 and (b = 2 and not a = 1)", s),
        "the predicate of a join": join(s, f"not (a = 1 or not {SIMILAR})", last(1, t)),
        "must not fire: in normal form already": where("(a = 1 or b = 2) and c = 3", s),
    },
    "drop_false_branches": {
        "a filter that is never true": Filter(FALSE, union(s, t)),
        "a join that is never true": Join("F#1", FALSE, s, last(1, t)),
        "a window that stays empty": join(s, SIMILAR, last(1, EMPTY)),
        "a table that stays empty": rated(stocks, EMPTY),
        "must not fire: one empty input of a union is for flatten_unions": union(s, EMPTY),
        "must not fire: what is false for a deeper reason": where("a < 1 and a > 2", s),
    },
    "push_filter_through_union": {
        "into each input": where("a = 1", union(s, where("b = 2", t))),
        "into the empty union": where("a = 1", EMPTY),
        "must not fire: a filter over a join": where("a = 1", join(s, SIMILAR, last(1, t))),
        "must not fire: nothing to push": union(where("a = 1", s), t),
    },
    "push_filter_through_join": {
        "to the primary, never into the window": where("a = 1", join(s, SIMILAR, last(10, t))),
        "must not fire: a filter inside the window": join(s, SIMILAR, last(10, where("a = 1", t))),
        "must not fire: a filter over a window's union": where("a = 1", union(s, t)),
    },
    "push_filter_through_match": {
        "below the pattern": where("a = 1", match(s)),
        "must not fire: it is below already": match(where("a = 1", s)),
    },
    "push_filter_through_table_join": {
        "each clause to the side that owns it": where("PER > 45 and Rating > 6", rated()),
        "clauses over several sides stay above": where(
            "PER > 45 and (PER < 50 or Rating = 10)", rated()
        ),
        "a renamed attribute gets its own name again": where(
            "Stocks_Date = 1 and Reviews_Date = 2", rated()
        ),
        "a join attribute belongs to all sides": where("Symbol = 'ACME'", rated()),
        "but texts as they are written only to the first": where(
            "Symbol matches '^A' and (Symbol = 'ACME' or Rating = 10)", rated()
        ),
        "must not fire: an operator sees the whole item": where(
            "worth(?x) and ?x > 5 and cheap()", rated()
        ),
        "must not fire: the whole item": where("contains 'acme'", rated()),
        "must not fire: an attribute that no side declares": where("Date = 1", rated()),
        "must not fire: no filter above": rated(where("PER > 45", stocks), reviews),
    },
    "push_match_through_join": {
        "below the join": match(join(s, SIMILAR, last(1, t))),
        "must not fire: it is below already": join(match(s), SIMILAR, last(1, t)),
    },
    "split_join_predicate": {
        "what does not look at the window": join(s, f"{SIMILAR} and a = 1 and b = 2", last(1, t)),
        "all of it: the window must still hold an item": join(s, "a = 1", last(1, t)),
        "a scope of variables moves as a whole": join(
            s, f"{SIMILAR} and mob(?p) and ?p > 50", last(1, t)
        ),
        "must not fire: the scope looks at the window": join(
            s, "mob(?p) and (?p > 50 or title = window.title)", last(1, t)
        ),
        "must not fire: an or is no conjunction": join(s, f"{SIMILAR} or a = 1", last(1, t)),
        "must not fire: nothing left to split": Join("F#1", TRUE, s, last(1, t)),
    },
    "distribute_match_over_union": {
        "to each input": match(union(s, t)),
        "must not fire: no union below": match(s),
    },
    "distribute_join_over_union": {
        "the same id and the same window in each branch": join(union(s, t), SIMILAR, last(10, u)),
        "must not fire: a union in a count window": join(s, SIMILAR, last(10, union(t, u))),
        "must not fire: a union in a time window": Join(
            "F#1", join_condition(SIMILAR), s, Window(Duration(3, Unit.MONTH), union(t, u))
        ),
    },
    "flatten_unions": {
        "nested": union(union(s, t), u),
        "repeated": union(s, t, where("a = 1", s), s),
        "empty inside": union(s, EMPTY, t),
        "one input": union(s),
        "must not fire: two filters on one source": union(where("a = 1", s), where("a = 2", s)),
        "must not fire: the empty plan": EMPTY,
        "must not fire: a union below a filter": union(where("a = 1", union(s, t)), u),
    },
}


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def case_text(rule: Rule, title: str, before: Plan) -> str:
    after = rule(before)
    must_not_fire = title.startswith("must not fire")
    assert (after is None) is must_not_fire, f"{rule.__name__}: {title}"
    shown = "(does not fire)" if after is None else plan_text(after)
    return f"# {title}\n\n{indented(plan_text(before))}\n  →\n{indented(shown)}\n"


def test_every_rule_has_cases_of_both_kinds():
    assert list(CASES) == [rule.__name__ for rule in RULES]
    for name, cases in CASES.items():
        assert {title.startswith("must not fire") for title in cases} == {True, False}, name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule(rule: Rule, golden: Callable[[str, str], None]):
    texts = [case_text(rule, title, plan) for title, plan in CASES[rule.__name__].items()]
    golden(f"plan/{rule.__name__}.txt", "\n".join(texts))
