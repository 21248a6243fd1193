"""Select-joins over tables: one server for many, and the client that puts the join together.

server           changes of two tables in, messages out
    table            rows by key, slot and join value
    box_tree         the subscriptions as points, and every question about them
    stabbing_sets    clusters of subscriptions and their anchors
    server_state     rows as bytes, and back
schemes          the nine schemes of the paper, by name
messages         rows, and the region of the subscription space that they are for
dispatch         who is in a region, in one process; what a new client is to hold
client           holds the semijoins, puts the join together, notices gaps; plain Python
boxes            subscriptions as boxes
    compile_boxes    from plans to boxes

*_kernels        the hot loops: table, box_tree, question, describe, change, recipient

The paper is select-joins.txt; multi-way joins (§4) are made of semijoins of this room.
"""
