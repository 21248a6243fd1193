"""Tree patterns as views, and views that are computed from other views ([Delta §4]).

A view is a tree pattern over XML documents, or a conjunction over items (a flat feed). This room
finds which views can be computed from which others (`find_rewritings`, `rewrite_flat`) and runs
views over documents, directly or by rewritings (`LevelRunner`, `run_rewriting`). The choice among
rewritings is made in network/.

Tree patterns:

    document           a document as arrays, structural identifiers
    view_tuples        the tuples of a view for one document
    pattern_arrays     many patterns as arrays, the embedding test

Rewritings of tree patterns:

    label_trie         which views may embed into a query: a subset index
    embedding_graph    which views embed into which, and what they cover (Algorithm 3)
    rewrite_cgr        at most k rewritings for each view (Algorithm 4), the rewritability graph
    cover_search       the search for covers of one view
    equivalent_views   find_rewritings: equal patterns are rewritten once

Rewritings of flat feeds:

    flat_feeds         conjunctions as views, implications between conditions
    flat_graph         rewrite_flat: their embedding graph and rewritings

Running:

    rewriting_plan     from a cover to a plan, and the plan as text
    rewriting_joins    the order of its joins, and the join kernel
    run_rewriting      one rewriting over the tuples of its views
    level_program      a configuration of many views as arrays
    pattern_steps      the kernel of level 1: distinct pattern steps over a document
    tuple_tables       the tables and indexes that the kernels share
    run_levels         a level program over documents, level by level
"""
