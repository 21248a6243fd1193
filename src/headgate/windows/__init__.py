"""Window joins and tree patterns over streams, as a data structure without Spark ([RoSeS §3.2]).

The join stage evaluates the part of all plans that lies above their leaves: joins of an item with a
window of earlier items, unions of them, and tree patterns on documents. Items go in as they arrive;
items of feeds come out when they are decided. The state is the items of windows, and can be rebuilt
from stored items.

Joins with the same window and predicate on items of sources are *families*: they are evaluated on
columns, one lookup and one output for all their feeds, in any number of *buckets* that read ranges
of the log and write to it. All other plans go through the join stage, in one bucket.

Entry points: `join_plan_file.plan_joins` (all joins as a file), `join_bucket.JoinBucket` (a range
of the log), `bucket_process.ask` (the same in a resident process), `stage.JoinStage` (push,
advance), `rebuild.rebuild` (its state after a restart), `describe` (text for `headgate explain`).

Words:

    primary item     the item that looks for partners in a window
    instant          a point in time, in microseconds inside of the stage
    decided          a primary item is decided once its window is complete: time + lateness
    late             arrived after time + lateness
    retention        how long items are kept beyond their window for late primary items
    replay horizon   how far back stored items must be read to rebuild the state
    family           joins with the same window and predicate, whatever their primary items
    slot             a leaf as primary input of a family, with its feeds
    bucket           a share of windows and primary items: the work of one core
    uncertain until  after a partial replay: the time until which a node's items may be incomplete

Files, in reading order:

    stage            items in as they arrive, items of feeds out as they are decided
    arrivals         what goes in and out; instants as integers
    graph            the plans of all feeds as one graph, and its replay horizons
    flow             the state of the graph, and one step through it
    rebuild          the same state from stored items, after a restart
    describe         the stage as text

    probe            one join predicate against one window, many primary items at a time
    access_path      which conjunct finds the candidates, and what remains to be evaluated
    window_state     the items of a window, their order and their expiry
    value_indexes    equality and order: from values to items of a window
    similar_index    word similarity: from words to items of a window
    find_pairs       pairs of a primary item and a row of the window; kernels
    growing_array    arrays that grow at their end

    embed_patterns   which of many tree patterns a document embeds

    join_families    joins that are evaluated together, and how buckets split them
    join_plan_file   all joins of a snapshot as one file
    stored_nodes     plans as a table of nodes
    log_rows         items of the log as columns, by source
    column_window    the items of a window as columns; indexes, expiry, JSON
    family_lookup    lookups of many primary items in a window of columns
    family_output    the outputs of a family as flat arrays
    family_joins     the families of one bucket: windows, waiting items, decisions
    joined_writer    outputs as files of the log
    join_costs       which feeds pay for the CPU time of joins
    join_bucket      one bucket: a range of the log in, files out; its state from the log
    bucket_process   the resident process that keeps a bucket's state
"""
