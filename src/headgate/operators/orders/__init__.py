"""Evaluation orders of expensive operators ([Operators]): which predicate to evaluate next.

A subscription whose filter calls operators becomes clauses over shared predicates. The evaluator
evaluates the predicates of each item in rounds, until every clause is satisfied or refuted; an
order chooses the predicates of each round. Entry points: `make_order` (methods),
`OperatorSubscriptions` (clause_table) and `Evaluator` (evaluator). In reading order:

    clauses             a filter as clauses: a guard, literals over predicates, a joint constraint
    predicates          distinct operator calls, and value tests on their answers
    clause_table        the clauses of all subscriptions as flat arrays
    methods             the table of orders by name: naive, sequential, sub-order, adaptive
    evaluator           the rounds of a batch, and the interface of an order
    item_evaluations    the evaluation state of several items
    item_kernels        its hot loops
    joint_constraints   constraints that several answers decide together
    estimates           costs and selectivities, learned while predicates are evaluated
    naive               one subscription after the other             [Operators §5.2]
    sequential          one marked subscription after the other      [Operators §4.1]
    sub_order           subscriptions in the sequence that saves most  [Operators §4.2]
    adaptive            what decides most for its cost, chosen after every answer: the default
    explain             the order as text
"""
