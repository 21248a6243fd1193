"""Window joins and tree patterns over streams, as a data structure without Spark ([RoSeS §3.2]).

The join stage evaluates the part of all plans that lies above their leaves: joins of an item with a
window of earlier items, unions of them, and tree patterns on documents. Items go in as they arrive;
items of feeds come out when they are decided. The state is the items of windows, and can be rebuilt
from stored items.

Entry points: `stage.JoinStage` (push, advance), `rebuild.rebuild` (the state after a restart),
`describe.describe` (text for `headgate explain`), `progress` (how far a run has come).

Words:

    primary item     the item that looks for partners in a window
    instant          a point in time, in microseconds inside of the stage
    decided          a primary item is decided once its window is complete: time + lateness
    late             arrived after time + lateness
    retention        how long items are kept beyond their window for late primary items
    replay horizon   how far back stored items must be read to rebuild the state
    uncertain until  after a partial replay: the time until which a node's items may be incomplete

Files, in reading order:

    stage            items in as they arrive, items of feeds out as they are decided
    arrivals         what goes in and out; instants as integers
    graph            the plans of all feeds as one graph, and its replay horizons
    flow             the state of the graph, and one step through it
    rebuild          the same state from stored items, after a restart
    progress         the file that says how far the window joins of a run have come
    describe         the stage as text

    probe            one join predicate against one window, many primary items at a time
    access_path      which conjunct finds the candidates, and what remains to be evaluated
    window_state     the items of a window, their order and their expiry
    value_indexes    equality and order: from values to items of a window
    similar_index    word similarity: from words to items of a window
    find_pairs       pairs of a primary item and a row of the window; kernels
    growing_array    arrays that grow at their end

    embed_patterns   which of many tree patterns a document embeds
"""
