"""Select-joins over tables: one server for many, and the client that puts the join together.

server           changes of two tables in, messages out
    changes          what happened to rows: columns, and objects
    table            rows by key, slot and join value
        byte_codes       small numbers for keys and join values
        key_bytes        keys and join values as bytes
    audience         whom a server tells, and by which scheme
    box_tree         the subscriptions as points, and every question about them
    stabbing_sets    clusters of subscriptions and their anchors
    joined_rows      the rows of all tables that are joined in one place
    rows_state       rows as bytes, and back
        array_blob       arrays in one piece of bytes
schemes          the nine schemes of the paper, by name
messages         rows, and the region of the subscription space that they are for
dispatch         who is in a region, in one process; what a new client is to hold
client           holds the semijoins, puts the join together, notices gaps; plain Python
boxes            subscriptions as boxes
    compile_boxes    from plans to boxes
    stored_boxes     in files, mapped by all who use them
row_format       rows of a table between Arrow's columns and bytes
    change_pieces    cut by join value for buckets, and put together again

*_kernels        the hot loops: table, take, byte, row, box_tree, question, describe, change,
                 recipient

Multi-way joins (§4), made of semijoins:

join_graph           tables and edges; signatures of subscriptions, forms of semijoins
decompose_greedy     which semijoin stands for each table of a signature
    parametric_cost      what a form costs, from four numbers
    simulated_cost       what a form costs, from samples and a network
compile_multiway     from plans to a join graph and boxes over it
multiway_server      changes of any table in, messages of groups out
    multiway_rows        the rows of a table, once
    semijoin_edge        the indexes and both groups of an edge
    multiway_messages    rows that come and go, join values that become empty
    multiway_state       rows as bytes, and back
multiway_client      holds the semijoins and joins them; plain Python
semijoins            messages of one base, from two tables
whole_join           results of many tables, for those who want items
    versions             rows by some of their join values, by bisection
    whole_recipients     which subscriptions have a result, and what is part of none

The paper is [Select-Joins].
"""
