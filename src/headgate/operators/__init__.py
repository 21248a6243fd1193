"""Operators: users' functions as predicates of filters, called in a sandbox ([Operators §2]).

The functions run in a child process with limits on time and memory, so that one that hangs, crashes
or returns nonsense does not stop the stream. An evaluation order decides which of them are called
for an item. Entry points: `OperatorRuntime` (runtime) calls operators; `make_order` and `Evaluator`
(orders/) decide which; `batch_operator` and `binds` below are for writing them (docs/operators.md).

    declaration       what `register operator` says, the limits, and the forms of a function
    load              from 'package.module:function' to a function, if its module is allowed
    runtime           the front: predicates evaluated for the rows of a batch
    round             one round of calls, with retries, until every row is answered or has failed
    child_supervisor  keeps a child process running, and replaces one that was killed
    child_process     the child as its parent sees it: started, watched, killed
    frames            the messages between the two
    child             the program that runs in the child process
    prepared_call     one call, made ready: arguments, bound values, constants to compare
    call_items        calls a function, item by item or for a batch
    check_answer      checks the form and types of what it returned
    answers           the answers as columns
    failures          kinds and counts of failures, and the circuit breaker
    statistics        cost, selectivity and failures, over all processes of a run

    orders/           evaluation orders by name: naive, sequential, sub-order, adaptive
    examples/         operators to use and to learn from
"""

from headgate.operators.declaration import batch_operator, binds

__all__ = ["batch_operator", "binds"]
