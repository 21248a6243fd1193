"""What it costs to call an operator in a process of its own, and to survive one that misbehaves.

Batches of 4,096 items with a place and a text. The functions do next to nothing: what is measured
is the way to them: called here, without any protection; asked of the child, item by item and as a
batch form; plain and binding. Then what an operator costs that hangs, crashes or always fails.

The baseline is the same function, called in the same process. Where the target is a share, it is of
operators that take 100 µs for an item, which is cheap for what the paper has in mind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.workloads import operator_functions
from bench.workloads.operator_functions import DECLARATIONS, SCHEMA, items
from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Call, Variable
from headgate.operators.answers import Rows
from headgate.operators.call_items import RowItems, call_here
from headgate.operators.declaration import OperatorLimits
from headgate.operators.load import load_all
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls

BATCH, ROUND = 4_096, 64
CALLS = {
    "true or false, item by item": Call("is_even"),
    "true or false, batch form": Call("are_even"),
    "binding, item by item": Call("half_of", (Variable("x"),)),
    "binding, batch form": Call("halves", (Variable("x"),)),
}
PLACES = Call("locIn", ("Bronx",))
USEFUL_US = 100.0
LIMITS = OperatorLimits(item_s=1.0)


def run(*, quick: bool, say: Say) -> Result:
    rounds = 5 if quick else 50
    allowed = [operator_functions.__name__]
    rows: list[Row] = []
    with OperatorRuntime(DECLARATIONS, allowed=allowed, limits=LIMITS) as operators:
        say("starting the child")
        start_s = seconds(operators.refused)
        rows.append(Row("start of the child", "NumPy, Arrow, shapely", f"{start_s * 1e3:,.0f} ms"))
        for name, call in (*CALLS.items(), ("locIn('Bronx'), shapely, batch form", PLACES)):
            say(name)
            rows += _one_call(operators, name, call, rounds)
        say("items to the child")
        rows.append(_transfer(operators, rounds))
        plot = _plot(operators, rounds, say)
    say("misbehaviour")
    rows += _misbehaviour(allowed)
    return Result(rows, plot)


def _one_call(operators: OperatorRuntime, name: str, call: Call, rounds: int) -> list[Row]:
    loaded, _ = load_all(DECLARATIONS, [operator_functions.__name__])
    batch = items_to_arrow(items(BATCH), SCHEMA)
    here = RowItems(batch, SCHEMA)
    asking = BatchCalls(PlanCalls(operators, [call] * ROUND), batch, SCHEMA)
    every = np.arange(BATCH, dtype=np.int32)
    found = []
    for rows in (every, every[:1]):

        def called(rows: Rows = rows) -> None:
            call_here(loaded[call.operator], call, rows, here, LIMITS)

        def asked(rows: Rows = rows) -> None:
            asking.evaluate(0, rows)

        found.append((_best_us(called, rounds), _best_us(asked, rounds)))
    (here_us, child_us), (one_here_us, one_child_us) = found
    some, starts = np.arange(ROUND, dtype=np.int32), np.arange(ROUND + 1, dtype=np.int64)
    round_us = _best_us(lambda: asking.evaluate_round(some, starts, some), rounds) / ROUND
    extra_us = (child_us - here_us) / BATCH
    return [
        Row(
            f"{name}: an item",
            f"a question about {BATCH:,} items",
            f"{child_us / BATCH:.2f} µs",
            baseline=f"{here_us / BATCH:.2f} µs here",
            target=f"≤ {USEFUL_US / 100:g} µs more",
            met=extra_us <= USEFUL_US / 100,
        ),
        Row(
            f"{name}: a question",
            "about one item",
            f"{one_child_us:,.0f} µs",
            baseline=f"{one_here_us:,.0f} µs here",
        ),
        Row(
            f"{name}: a question in a round",
            f"about one item, {ROUND} of them asked together",
            f"{round_us:,.0f} µs",
            baseline=f"{one_here_us:,.0f} µs here",
        ),
    ]


def _plot(operators: OperatorRuntime, rounds: int, say: Say) -> Plot:
    """What the child adds to a call in this process, by the number of items in a question."""
    loaded, _ = load_all(DECLARATIONS, [operator_functions.__name__])
    batch = items_to_arrow(items(BATCH), SCHEMA)
    here = RowItems(batch, SCHEMA)
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, call in CALLS.items():
        asking = BatchCalls(PlanCalls(operators, [call]), batch, SCHEMA)
        for power in range(3, 13):
            say(f"{name}: {2**power} items")
            rows = np.arange(2**power, dtype=np.int32)

            def called(call: Call = call, rows: Rows = rows) -> None:
                call_here(loaded[call.operator], call, rows, here, LIMITS)

            def asked(asking: BatchCalls = asking, rows: Rows = rows) -> None:
                asking.evaluate(0, rows)

            extra_us = (_best_us(asked, rounds) - _best_us(called, rounds)) / len(rows)
            lines.setdefault(name, []).append((power, max(extra_us, 0.0)))
    return Plot(
        "What a process of its own adds to a call",
        "items in a question, as a power of two",
        "µs for an item",
        lines,
    )


def _transfer(operators: OperatorRuntime, rounds: int) -> Row:
    """A question about one item of a batch that the child does not have yet."""
    batch = items_to_arrow(items(BATCH), SCHEMA)
    predicates = PlanCalls(operators, [CALLS["true or false, batch form"]])
    one = np.zeros(1, np.int32)
    asking = BatchCalls(predicates, batch, SCHEMA)
    known_us = _best_us(lambda: asking.evaluate(0, one), rounds)
    new_us = _best_us(lambda: BatchCalls(predicates, batch, SCHEMA).evaluate(0, one), rounds)
    size = f"{BATCH:,} items, {batch.nbytes / 1e6:.1f} MB"
    return Row("items to the child: an item", size, f"{(new_us - known_us) / BATCH:.2f} µs")


def _misbehaviour(allowed: list[str]) -> list[Row]:
    batch = items_to_arrow(items(BATCH), SCHEMA)
    every = np.arange(BATCH, dtype=np.int32)
    rows = []
    for name, workload, bad in (
        ("hangs_once", "one item of 4,096 hangs, limit 1 s", 1),
        ("crashes_once", "one item of 4,096 crashes the process", 1),
        ("batch_raises_once", "batch form: one item of 4,096 raises", 1),
        ("always_raises", "every item raises", BATCH),
        ("always_hangs", "every item hangs, limit 1 s", BATCH),
    ):
        with OperatorRuntime(DECLARATIONS, allowed=allowed, limits=LIMITS) as operators:
            asking = BatchCalls(PlanCalls(operators, [Call(name)]), batch, SCHEMA)
            operators.refused()  # starts the child
            began = time.perf_counter()
            answers = asking.evaluate(0, every)
            took_s = time.perf_counter() - began
            lost = BATCH - int(answers.answered.sum())
            counted = json.dumps(operators.failures[name].to_json()["counts"])
        rows.append(
            Row(
                f"misbehaviour: {name}",
                workload,
                f"{took_s:.2f} s, {lost:,} items lost {counted}",
                target=f"{bad:,} lost",
                met=lost == bad,
            )
        )
    return rows


def _best_us(action: Callable[[], object], rounds: int) -> float:
    action()
    return min(seconds(action) for _ in range(rounds)) * 1e6
