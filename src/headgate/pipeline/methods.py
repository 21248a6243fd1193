"""The algorithms that the operator of a run can choose, by name, and the choice as text.

    choice            table of names                  default        others
    factorize         factor/methods.py               auto           naive, prefix, prefix-by-use,
                                                                     vca, vcb, sta
    operator_order    operators/orders/methods.py     adaptive       naive, sequential, sub-order
    join_scheme       tables/schemes.py               Ref-SJ-Clu+    Ref-SJ-Sub, -Tup, -Clu

No choice changes what a run matches or delivers; it changes what that costs. Where each is used:

    factorize         LayerBuilder ──► PlanTask.method ──► write_plans
    operator_order    OperatorRules.order ──► OperatorSetup ──► OperatorTester
    join_scheme       TableJoinQuery ──► BucketProcessor ──► the regions of messages
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.factor.methods import AUTO, COMPARED, check_method
from headgate.operators.orders.explain import RULES as ORDER_RULES
from headgate.operators.orders.methods import DEFAULT_ORDER, make_order
from headgate.pipeline.snapshot import read_current
from headgate.store.data_folder import DataFolder
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme, find_run_scheme

FACTORIZE_RULES = {
    AUTO: f"the plan with the fewest expected node visits, of {', '.join(COMPARED)}",
    "naive": "every filter is evaluated by itself",
    "prefix": "filters share their common beginnings, the rarest clauses first",
    "prefix-by-use": "filters share their common beginnings, the most used clauses first",
    "vca": "Algorithm 1 of [RoSeS §5] on the subsumption graph",
    "vcb": "Algorithm 1 of [RoSeS §5] without the graph, then improved",
    "sta": "a Steiner tree of the subsumption graph, by density",
}
SCHEME_RULES = {
    JoinScheme.REF_SJ_SUB: "the region of a message is the skyline of the affected ranges",
    JoinScheme.REF_SJ_TUP: "the region of a message lists the joining rows",
    JoinScheme.REF_SJ_CLU: "the region of a message lists the joining rows next to an anchor",
    JoinScheme.REF_SJ_CLU_PLUS: "the region of a message is made of runs of joining rows",
}


@dataclass(frozen=True, slots=True)
class Methods:
    """The chosen methods. An unknown name raises an error that offers the nearest one."""

    factorize: str = AUTO
    operator_order: str = DEFAULT_ORDER
    join_scheme: str = DEFAULT_SCHEME
    """In any case; `ref-sj-` may be left out."""

    def __post_init__(self) -> None:
        check_method(self.factorize)
        make_order(self.operator_order)
        find_run_scheme(self.join_scheme)

    @property
    def scheme(self) -> JoinScheme:
        return find_run_scheme(self.join_scheme)


DEFAULT_METHODS = Methods()


def describe_methods(methods: Methods = DEFAULT_METHODS) -> list[str]:
    """One line for each choice.

    >>> print(describe_methods(Methods(operator_order="naive"))[1])
    operator order naive (chosen): one subscription after the other, as registered
    """
    lines = (
        ("factorize", methods.factorize, AUTO, FACTORIZE_RULES[methods.factorize]),
        (
            "operator order",
            methods.operator_order,
            DEFAULT_ORDER,
            ORDER_RULES[methods.operator_order],
        ),
        ("join scheme", methods.scheme, DEFAULT_SCHEME, SCHEME_RULES[methods.scheme]),
    )
    return [
        f"{choice} {name} ({'default' if name == default else 'chosen'}): {rule}"
        for choice, name, default, rule in lines
    ]


def describe_factorized(folder: DataFolder) -> list[str]:
    """For each source plan of the last snapshot of a run: the method that made it, and why. Empty
    if there has been no run in this folder.

    `Tickets: 1,204 filters by vcb: 812 expected node visits for a batch, the fewest of …`
    """
    snapshot = read_current(folder.plans)
    layers = () if snapshot is None else snapshot.layers
    return [
        f"{source}: {text}" for layer in layers for source, text in sorted(layer.methods.items())
    ]
