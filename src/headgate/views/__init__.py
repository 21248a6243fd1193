"""Tree patterns, their embeddings, and views that are rewritten from other views ([Delta §4]).

rewritings           the rewritability graph as arrays: what the network is configured from
equivalent_views     find_rewritings: views to rewritings, the same pattern once
    encode_views         patterns as arrays
    label_trie           which views may embed into a query
    embedding_graph      which do, and what they cover (Algorithm 3)
    rewrite_cgr          covers of a view's attributes (Algorithm 4)
rewriting_plan       from a cover to a plan, and the plan as text
    order_join           in which order it joins, and how
    run_rewriting        the plan over what views hold, at a site of its own
run_levels           a configuration over documents, level by level
    compile_levels       views and what they read as a level program
    level_program        its arrays
    document_arrays      a document as the kernels see it
    compare_held         do views hold the same, however they were served
evaluate_patterns    many patterns over one document: level 1 alone
    document             structural identifiers
    view_tuples          what a view holds of a document
    evaluate_naive       the judge
flat_feeds           conjunctions over items as views, and their rewritings over what feeds return
    flat_graph           their embedding graph
    flat_implications    which conditions imply which
canonical            one form for all patterns that are the same tree

*_kernels            the hot loops: pattern, trie, embedding, cover, equivalence, flat; step,
                     rewriting, mark, identifier, and table, which they share
"""
