"""The server of multi-way select-joins in one process ([Select-Joins §4, Appendix D]).

A run serves each semijoin as a group of its own, partitioned by its join value (`headgate.tables`).
This server has all tables and edges of a join graph in one object, as the paper's has. It is the
baseline of `headgate bench joins-multiway`, and the oracle of clients in tests.

    graph            tables, and all edges that subscriptions may use
    compile          from select-joins to a graph and boxes
    rows             the rows of one table
    edge             the indexes and both semijoins of one edge
    group_messages   messages of one semijoin
    server           changes in, messages out
    state            the rows as bytes, and back
    simulated_cost   the cost of a semijoin from samples of subscriptions and events
"""
