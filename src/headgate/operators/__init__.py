"""Operators: users' functions that filters call ([Operators §2]). No Spark.

To write one, this is all that is needed (docs/operators.md; forms.py describes the forms):

    from headgate.operators import batch_operator, binds

ask              predicates are asked of the items of a batch, and always answered
    question         one predicate for some rows, until each is answered or has failed
    workshop         the child, started again after it was killed
    child_process    the child as its parent sees it: asked, watched, killed
    breaker          when an operator is left alone for a while
    ledger           what is known of operators, in this process and others
    estimates        what calls cost and how often they are true
    failures         how often operators failed, and how
    answers          what comes back, as columns
    arrow_arrays     columns made without pandas

child            the process in which operators run
    load             from 'package.module:function' to a function, if it is allowed
    prepared         one call, made ready
    call_items       calling it; also in the same process, and for the naive evaluator
    check_answer, check_batch    is the answer what it should be?
    frames           what goes through the pipes

declaration      what `register operator` says, and limits, as plain values
forms            the forms in which operators are written
examples         operators to use and to learn from
"""

from headgate.operators.forms import batch_operator, binds

__all__ = ["batch_operator", "binds"]
