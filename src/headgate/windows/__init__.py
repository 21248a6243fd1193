"""Joins over streams: what stands above the leaves of plans, as a data structure without Spark.

stage            the join stage: items go in as they arrive, items of feeds come out as decided
    arrivals         what goes in and what comes out, and moments as numbers
    graph            the plans of all feeds as one graph: equal parts once
    flow             the state, and how items go through the graph
    leaf_matcher     which leaves of the graph an item of a source is in
    rebuild, reach   the same state again from stored items, after a restart
    describe         what the stage holds, as text

probe            one join predicate against one window, many primary items at a time
    access_path      which conjunct finds the candidates, and what is left to be judged
    window_state     the items of a window, their order and their end
    equality_index, similar_index, ordered_index    from values to items of a window
    primary_words    the words that primary items ask with
    pairs            questions to a window and what they find
    join_kernels     the hot loops
    growing          arrays that grow at their end

embed_patterns   which of many tree patterns a document embeds

select/          joins of tables ([Select-Joins]): a server, its messages, and the client
"""
